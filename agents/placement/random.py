"""Placement `random`: any node that is feasible."""

import numpy as np

from agents.rule_kinds import PlacementRule
from agents.scheduler import Decision


class Random(PlacementRule):
    """Every feasible node with the same probability: the floor that any rule has to beat."""

    def choose(self, decision: Decision) -> int:
        return int(decision.rng.choice(np.flatnonzero(decision.rows["feasible"])))
