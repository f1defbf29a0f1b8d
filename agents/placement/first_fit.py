"""Placement `first_fit`: the first node with room."""

from typing import Literal

import numpy as np

from agents.placement.rule import free_memory, smallest
from agents.scheduler import Decision
from env.base.schema import Strict


class FirstFit(Strict):
    """The first node, in the order of the config, with the memory and the cores free now.

    If there is none, the one with the lowest load.
    """

    name: Literal["first_fit"]

    def choose(
        self,
        decision: Decision,
        candidates: np.ndarray,
        memory_alloc: int,
        rng: np.random.Generator,
    ) -> int:
        """Index of the NUMA node; see `PlacementRule`."""
        nodes = decision.env.state.nodes
        load = (candidates["parallelism"] + decision.function.parallelism) / nodes["cpu"]
        room = (free_memory(decision, candidates) >= memory_alloc) & (load <= 1.0)
        return smallest(candidates, ~room, np.where(room, 0.0, load))
