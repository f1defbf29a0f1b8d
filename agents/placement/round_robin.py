"""Placement `round_robin`: nodes in turn."""

from typing import Literal

import numpy as np

from agents.rule_kinds import PlacementRule, Question


class RoundRobin(PlacementRule):
    """Decision k goes to node k modulo N, or to the next one that is feasible."""

    name: Literal["round_robin"]

    def choose(self, asked: Question) -> int:
        """Index of a feasible NUMA node."""
        feasible = np.flatnonzero(asked.candidates["feasible"])
        turn = asked.decision.env.decisions % len(asked.candidates)
        return int(feasible[np.searchsorted(feasible, turn) % len(feasible)])
