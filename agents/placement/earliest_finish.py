"""Placement `earliest_finish`: the node where the function ends first (as in HEFT)."""

from typing import Literal

import numpy as np

from agents.placement.rule import smallest
from agents.scheduler import Decision
from env.base.schema import Strict


class EarliestFinish(Strict):
    """The smallest forecast finish time: cold start, transfer, waiting and sharing included.

    Source: Topcuoglu, Hariri, Wu, IEEE TPDS 13(3), 2002, processor selection.
    """

    name: Literal["earliest_finish"]

    def choose(
        self,
        decision: Decision,
        candidates: np.ndarray,
        memory_alloc: int,
        rng: np.random.Generator,
    ) -> int:
        """Index of the NUMA node; see `PlacementRule`."""
        return smallest(candidates, candidates["finish_time"])
