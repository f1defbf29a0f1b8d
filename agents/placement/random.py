"""Placement `random`: any node that is feasible."""

from typing import Literal

import numpy as np

from agents.scheduler import Decision
from env.base.schema import Strict


class Random(Strict):
    """Every feasible node with the same probability: the floor that any rule has to beat."""

    name: Literal["random"]

    def choose(
        self,
        decision: Decision,
        candidates: np.ndarray,
        memory_alloc: int,
        rng: np.random.Generator,
    ) -> int:
        """Index of the NUMA node; see `PlacementRule`."""
        return int(rng.choice(np.flatnonzero(candidates["feasible"])))
