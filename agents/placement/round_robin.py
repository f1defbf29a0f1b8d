"""Placement `round_robin`: nodes in turn."""

import numpy as np

from agents.rule_kinds import PlacementRule
from agents.scheduler import Decision


class RoundRobin(PlacementRule):
    """Decision k goes to node k modulo N, or to the next one that is feasible."""

    def choose(self, decision: Decision) -> int:
        feasible = np.flatnonzero(decision.rows["feasible"])
        turn = decision.env.decisions % len(decision.rows)
        return int(feasible[np.searchsorted(feasible, turn) % len(feasible)])
