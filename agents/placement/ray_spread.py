"""Placement `ray_spread`: nodes with room in turn, Ray's strategy SPREAD."""

import numpy as np
from pydantic import PrivateAttr

from agents.ray_nodes import Nodes, in_decision, one_of
from agents.rule_kinds import PlacementRule
from agents.scheduler import Decision


class RaySpread(PlacementRule):
    """The next node with room behind the last that was chosen, else the next that is large enough.

    Source: `src/ray/raylet/scheduling/policy/spread_scheduling_policy.cc`.
    """

    _first: int = PrivateAttr(default=0)

    def choose(self, decision: Decision) -> int:
        first = self._first if decision.env.decisions else 0
        node = one_of(decision, next_in_turn(*in_decision(decision), first))
        self._first = node + 1
        return node


def next_in_turn(
    nodes: Nodes, demand: np.ndarray, first: int, only_free: bool = False
) -> np.ndarray:
    """The node whose turn it is, or none, from index `first` on for a demand (L,).

    With `only_free` nodes without room now do not count.
    """
    turns = np.roll(np.arange(len(nodes.total)), -first)
    free = turns[nodes.free_for(demand)[turns]][:1]
    return free if len(free) or only_free else turns[nodes.feasible(demand)[turns]][:1]
