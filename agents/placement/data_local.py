"""Placement `data_local`: where the predecessors' data is."""

from typing import Literal

import numpy as np

from agents.placement.rule import smallest
from agents.scheduler import Decision
from env.base.schema import Strict


class DataLocal(Strict):
    """The smallest transfer time; ties by finish time."""

    name: Literal["data_local"]

    def choose(
        self,
        decision: Decision,
        candidates: np.ndarray,
        memory_alloc: int,
        rng: np.random.Generator,
    ) -> int:
        """Index of the NUMA node; see `PlacementRule`."""
        return smallest(candidates, candidates["data_transfer_time"], candidates["finish_time"])
