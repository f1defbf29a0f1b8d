"""Placement `round_robin`: nodes in turn."""

from typing import Literal

import numpy as np

from agents.rule_kinds import PlacementRule
from agents.scheduler import Decision


class RoundRobin(PlacementRule):
    """Decision k goes to node k modulo N, or to the next one that is feasible."""

    name: Literal["round_robin"]

    def choose(self, decision: Decision) -> int:
        """The row of a feasible NUMA node."""
        feasible = np.flatnonzero(decision.rows["feasible"])
        turn = decision.env.decisions % len(decision.rows)
        return int(feasible[np.searchsorted(feasible, turn) % len(feasible)])
