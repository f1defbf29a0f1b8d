"""Placement `cheapest`: the node that adds least rent."""

from typing import Literal

import numpy as np

from agents.placement.rule import smallest
from agents.scheduler import Decision
from env.base.schema import Strict


class Cheapest(Strict):
    """The smallest rise of rent; ties by finish time.

    Time counts for nothing: all functions queue up on the servers with the lowest hourly rate, for
    another hour there costs less than a first hour anywhere else.
    """

    name: Literal["cheapest"]

    def choose(
        self,
        decision: Decision,
        candidates: np.ndarray,
        memory_alloc: int,
        rng: np.random.Generator,
    ) -> int:
        """Index of the NUMA node; see `PlacementRule`."""
        return smallest(candidates, candidates["rent_increase"], candidates["finish_time"])
