"""Placement `best_fit`: the fullest node with room (bin packing)."""

import numpy as np

from agents.rule_kinds import PlacementRule
from agents.scheduler import Decision


class BestFit(PlacementRule):
    """The node whose free memory is left smallest; without room anywhere, the least short of it."""

    def choose(self, decision: Decision) -> int:
        left = decision.free_memory - decision.memory_alloc
        return decision.smallest(decision.lacks_resources | (left < 0), np.abs(left))
