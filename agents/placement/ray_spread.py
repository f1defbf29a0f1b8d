"""Placement `ray_spread`: nodes with room in turn, Ray's strategy SPREAD."""

from __future__ import annotations

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

    def reset(self) -> None:
        """A new episode begins with the first node."""
        self._first = 0

    def choose(self, decision: Decision) -> int:
        """The row of a feasible NUMA node."""
        nodes, demand = in_decision(decision)
        node = one_of(decision, next_in_turn(nodes, demand, self._first))
        self._first = node + 1
        return node


def next_in_turn(
    nodes: Nodes, demand: np.ndarray, first: int, only_free: bool = False
) -> np.ndarray:
    """The index of the node whose turn it is, as an array of one or none.

    Args:
        nodes: of the cluster.
        demand: (L,).
        first: index of the node behind the last choice.
        only_free: whether nodes without room now do not count.
    """
    turns = np.roll(np.arange(len(nodes.total)), -first)
    free = turns[nodes.free_for(demand)[turns]][:1]
    if len(free) or only_free:
        return free
    return turns[nodes.feasible(demand)[turns]][:1]
