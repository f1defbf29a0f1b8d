"""Placement `round_robin`: nodes in turn."""

from typing import Literal

import numpy as np

from agents.scheduler import Decision
from env.base.schema import Strict


class RoundRobin(Strict):
    """Decision k goes to node k modulo N, or to the next one that is feasible."""

    name: Literal["round_robin"]

    def choose(
        self,
        decision: Decision,
        candidates: np.ndarray,
        memory_alloc: int,
        rng: np.random.Generator,
    ) -> int:
        """Index of the NUMA node; see `PlacementRule`."""
        feasible = np.flatnonzero(candidates["feasible"])
        turn = decision.env.decisions % len(candidates)
        return int(feasible[np.searchsorted(feasible, turn) % len(feasible)])
