"""Order `pcaps`: while electricity is dirty only those start that others wait for longest."""

from typing import Annotated

import numpy as np
from pydantic import Field

from agents.held_back import HeldBack
from agents.rule_kinds import QueueOrder
from agents.scheduler import Decision
from env.sim.declared.ordering import DeclaredFunctions


class Pcaps(HeldBack, QueueOrder):
    """PCAPS: one is drawn, and starts if the intensity is at most the threshold of its importance.

    A function is drawn in proportion to its share of what is left of the longest path through it,
    itself included, when it starts: 1 for the first of a workflow. Its importance is this share
    over the largest of those that fit. The paper takes the probabilities of a learned scheduler,
    and also limits how many executors a stage gets; a function has no such number here.

    Attributes:
        gamma: 0 holds nobody back, 1 most.
    """

    gamma: Annotated[float, Field(ge=0, le=1)]

    def rank(self, functions: DeclaredFunctions) -> np.ndarray:
        """(D,) see `Order` in env/sim/declared/ordering.py: minus that share."""
        upward = np.maximum(functions.upward_rank, np.finfo(float).tiny)
        return -upward / (upward + functions.downward_rank)

    def pick(
        self, decision: Decision, waiting: np.ndarray, now: float, least: float, most: float
    ) -> tuple[int, bool]:
        """One that is drawn."""
        share = -waiting["rank"]
        drawn = int(decision.rng.choice(len(share), p=share / share.sum()))
        importance = share[drawn] / share.max()
        lowest = self.gamma * least + (1 - self.gamma) * most
        grown = np.expm1(self.gamma * importance) / np.expm1(self.gamma) if self.gamma else 1.0
        return drawn, now <= lowest + (most - lowest) * grown
