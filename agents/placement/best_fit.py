"""Placement `best_fit`: the fullest node with room (bin packing)."""

from typing import ClassVar, Literal

import numpy as np

from agents.rule_kinds import Fit, PlacementRule, Question


class BestFit(PlacementRule):
    """The node whose free memory is left smallest; without room anywhere, the least short of it."""

    name: Literal["best_fit"]
    fit: ClassVar[Fit] = "best_fit"

    def choose(self, asked: Question) -> int:
        """Index of a feasible NUMA node."""
        left = asked.free_memory - asked.memory_alloc
        return asked.smallest(left < 0, np.abs(left))
