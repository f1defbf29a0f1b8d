"""Placement `random`: any node that is feasible."""

from typing import Literal

import numpy as np

from agents.rule_kinds import PlacementRule, Question


class Random(PlacementRule):
    """Every feasible node with the same probability: the floor that any rule has to beat."""

    name: Literal["random"]

    def choose(self, asked: Question) -> int:
        """Index of a feasible NUMA node."""
        return int(asked.rng.choice(np.flatnonzero(asked.candidates["feasible"])))
