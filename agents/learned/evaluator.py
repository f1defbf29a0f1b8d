"""Evaluates the policies of a run while they learn, in a share of its time."""

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from ray.rllib.algorithms import Algorithm

from agents.learned.algorithms import policy_networks
from agents.learned.checkpoint import RunState
from agents.learned.network import SetPolicyNetwork


class Evaluated(NamedTuple):
    """What policies come to in held-out episodes.

    Attributes:
        J: mean over the episodes.
        J_rule: that of the best hand-written scheduler.
        difference: mean paired difference to it, percent of `J_rule`; below 0 is better.
        difference_low, difference_high: its interval.
    """

    J: float
    J_rule: float
    difference: float
    difference_low: float
    difference_high: float

    def as_text(self) -> str:
        """`+5.6% [+1.2, +10.0]`."""
        return f"{self.difference:+.1f}% [{self.difference_low:+.1f}, {self.difference_high:+.1f}]"


Evaluate = Callable[[Mapping[str, SetPolicyNetwork]], Evaluated]
"""Has policies play the held-out episodes."""


class Evaluator:
    """Decides when the policies of a run are evaluated, which may take a share of its seconds."""

    def __init__(self, evaluate: Evaluate, share: float) -> None:
        self._evaluate = evaluate
        self._share = share
        self._cost = 0.0  # seconds that the last time took
        self._last: Evaluated | None = None

    def is_due(self, state: RunState) -> bool:
        """Whether there is time for it: at first, and again if it will take as long as before."""
        spent = state.evaluating + self._cost
        return state.evaluated == 0 or spent <= self._share * state.seconds

    def evaluate(self, algorithm: Algorithm, state: RunState) -> Evaluated:
        """Evaluates the policies as they are now, once an iteration, and notes it in the state."""
        if self._last is None or state.evaluated < state.iteration:
            started = time.monotonic()
            self._last = self._evaluate(policy_networks(algorithm))
            self._cost = time.monotonic() - started
            state.evaluated, state.difference = state.iteration, self._last.difference
            state.evaluating += self._cost
            if state.best is None or state.difference < state.best:
                state.best = state.difference
        return self._last
