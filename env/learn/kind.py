"""A kind of decision: who is asked, turn by turn, what they see, and what becomes of the answer.

An answer is a row of what the kind offers. A kind is written for one simulator, see
env/learn/sight.py for what its compiled functions get; env/learn/decisions.py plays many at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from env.base.jit import compiled
from env.learn.agent import Agent, Observation

NOBODY: Final = -1
"""Of a row at a turn that is nobody's in its environment."""


@compiled
def answer(agent, sight, choice, action, bid):
    """`Turn.decide` where the action is the row."""
    choice[0].row = action


@compiled
def itself(agent, state, choice):
    """`Turn.acting` where all act at once."""
    return agent


@dataclass(frozen=True, eq=False)
class Turn:
    """A turn of a decision: agents of one space see and act, all at once or one of them.

    Attributes:
        agents: who can act at it.
        see: compiled, `see(agent, state, sight, choice, context, items, mask)` writes what the
            agent of that place sees; the mask is 0 before.
        decide: compiled, `decide(agent, sight, choice, action, bid)` notes in `choice`, CHOICE
            (1,), what an action decides.
        acting: compiled, `acting(agent, state, choice)`: which agent acts.
    """

    agents: list[Agent]
    see: Any
    decide: Any = answer
    acting: Any = itself

    @property
    def together(self) -> int:
        """A, how many agents act at once in an environment."""
        return len(self.agents) if self.acting is itself else 1

    def room(self, environments: int) -> Observation:
        """Zeros for what its agents see in so many environments: E * A rows of each part."""
        rows, parts = environments * self.together, self.agents[0].parts
        return {part: np.zeros((rows, *shape), np.float32) for part, shape in parts.items()}


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of decision.

    Attributes:
        code: what `play` returns where one is due.
        turns: until a row has been chosen.
        apply: compiled, `apply(state, sight, choice)` carries it out; returns 0, ASIDE where
            another decision of this moment may be due, or an error code.
        actions: what agents do, turn by turn, where a row is to be chosen: of a row and the
            `Sight.first_node` of the episode; integers (A,), or (A, 2) of bids and places.
        due: of a kind beside the engine's own, see `DecisionKind`.
    """

    code: int
    turns: tuple[Turn, ...]
    apply: Any
    actions: Callable[[int, np.ndarray], list[np.ndarray]] = lambda row, _: [np.array([row])]
    due: Any = None
