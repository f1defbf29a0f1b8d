"""Placement `worst_fit`: the emptiest node (load balancing by memory)."""

from typing import Literal

import numpy as np

from agents.placement.rule import free_memory, smallest
from agents.scheduler import Decision
from env.base.schema import Strict


class WorstFit(Strict):
    """The node whose free memory is left largest."""

    name: Literal["worst_fit"]

    def choose(
        self,
        decision: Decision,
        candidates: np.ndarray,
        memory_alloc: int,
        rng: np.random.Generator,
    ) -> int:
        """Index of the NUMA node; see `PlacementRule`."""
        return smallest(candidates, -free_memory(decision, candidates))
