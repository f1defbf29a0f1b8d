"""Placement `best_fit`: the fullest node with room (bin packing)."""

from typing import Literal

import numpy as np

from agents.placement.rule import free_memory, smallest
from agents.scheduler import Decision
from env.base.schema import Strict


class BestFit(Strict):
    """The node whose free memory is left smallest; without room anywhere, the least short of it."""

    name: Literal["best_fit"]

    def choose(
        self,
        decision: Decision,
        candidates: np.ndarray,
        memory_alloc: int,
        rng: np.random.Generator,
    ) -> int:
        """Index of the NUMA node; see `PlacementRule`."""
        left = free_memory(decision, candidates) - memory_alloc
        return smallest(candidates, left < 0, np.abs(left))
