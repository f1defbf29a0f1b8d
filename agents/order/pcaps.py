"""Order `pcaps`: while electricity is dirty only those start that much waits for."""

from typing import Annotated, Final

import numpy as np
from pydantic import Field

from agents.held_back import HeldBack
from agents.rule_kinds import QueueOrder
from agents.scheduler import Decision
from env.sim.declared.ordering import DeclaredFunctions

LEAST: Final = 1e-3
"""s that functions take at least here."""


class Pcaps(HeldBack, QueueOrder):
    """PCAPS: one is drawn, and starts if the intensity is at most the threshold of its importance.

    Functions are drawn in proportion to their upward rank: what of their workflow waits for them.
    Importance is that probability over the largest of those that fit. The paper takes both from a
    learned scheduler, and also limits how many executors a stage gets; a function has no such
    number here.

    Attributes:
        gamma: 0 holds nobody back, 1 most.
    """

    gamma: Annotated[float, Field(ge=0, le=1)]

    def rank(self, functions: DeclaredFunctions) -> np.ndarray:
        """(D,) see `Order` in env/sim/declared/ordering.py: minus that, in seconds."""
        return -np.maximum(functions.upward_rank, LEAST)

    def pick(
        self, decision: Decision, waiting: np.ndarray, now: float, least: float, most: float
    ) -> tuple[int, bool]:
        """One that is drawn."""
        weight = -waiting["rank"]
        drawn = int(decision.rng.choice(len(weight), p=weight / weight.sum()))
        importance = weight[drawn] / weight.max()
        grown = np.expm1(self.gamma * importance) / np.expm1(self.gamma) if self.gamma else 1.0
        # Exact where nobody is to be held back.
        return drawn, now <= most - self.gamma * (most - least) * (1.0 - grown)
