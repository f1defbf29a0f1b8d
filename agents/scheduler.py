"""The one protocol of every decision maker, learned or not, and the loop that plays an episode."""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np

from env.learn.layouts import Placement
from env.score.reward import Objective
from env.sim.forecast import forecast_placements
from env.sim.rules import Order
from env.sim.rules import Placement as Fit
from env.sim.view.function import Function
from env.sim.view.raw_env import RawEnv

Kind = Literal["learned", "baseline", "reference"]
"""What a scheduler is: learned, hand-written, or a reference that knows more or tries it all."""


class Decision:
    """What a scheduler may look at: the current function and the whole cluster at this moment.

    Attributes:
        env: the simulator; to be read only.
        objective: what J is made of.
    """

    def __init__(self, env: RawEnv, objective: Objective) -> None:
        self.env = env
        self.objective = objective
        self._candidates: dict[int, np.ndarray] = {}

    @property
    def function(self) -> Function:
        """The function to be placed."""
        function = self.env.current_function
        assert function is not None
        return function

    def candidates(self, memory_alloc: int) -> np.ndarray:
        """CANDIDATE (N,): what placing it with `memory_alloc` MB on each NUMA node would do."""
        if memory_alloc not in self._candidates:
            self._candidates[memory_alloc] = forecast_placements(self.env.state, memory_alloc)
        return self._candidates[memory_alloc]


class Scheduler(Protocol):
    """Places functions.

    Attributes:
        name: what tables call it.
        kind: what it is compared as; references are never the best baseline.
        order: who goes next where functions wait centrally; None: in the order of submission.
        fit: who places there: the engine by one of its rules, or `asked`, the scheduler.
    """

    name: str
    kind: Kind
    order: Order | None
    fit: Fit

    def reset(self, env: RawEnv, objective: Objective, seed: np.random.SeedSequence) -> None:
        """Turns to a new episode; everything random comes from `seed`."""

    def place(self, decision: Decision) -> Placement:
        """NUMA node and MB for the current function."""


def play(
    env: RawEnv, scheduler: Scheduler, objective: Objective, seed: np.random.SeedSequence
) -> None:
    """Lets a scheduler place every function of an episode."""
    scheduler.reset(env, objective, seed)
    while not env.done:
        node, memory_alloc = scheduler.place(Decision(env, objective))
        env.step(*env.place_of(node), memory_alloc)
