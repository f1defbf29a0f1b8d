"""Placement `ray_random`: any node with room, as Ray placed in 2019."""

import numpy as np

from agents.ray_nodes import Nodes, in_decision, one_of
from agents.rule_kinds import PlacementRule
from agents.scheduler import Decision


class RayRandom(PlacementRule):
    """One of the nodes with room beside all that waits there, else one that has enough in total.

    What is placed counts to the load of its node at once. Source: `Schedule` in
    `src/ray/raylet/scheduling_policy.cc` of 2019.
    """

    def choose(self, decision: Decision) -> int:
        return one_of(decision, fitting(*in_decision(decision)))


def fitting(nodes: Nodes, demand: np.ndarray) -> np.ndarray:
    """Indices of the nodes of which one is drawn for a demand (L,); empty: it stays."""
    free = nodes.free_for(demand)
    return np.flatnonzero(free if free.any() else nodes.feasible(demand))


def spill_over(
    total: np.ndarray, infeasible: np.ndarray, ready: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Who moves to a node that joins or grows: all that fitted nowhere, and one that is ready.

    Source: `SpillOver` in `src/ray/raylet/scheduling_policy.cc` of 2019.

    Args:
        total: (L,) of the node.
        infeasible: (I, L) demands that no node held.
        ready: (R, L) demands that wait on other nodes, in their order.

    Returns:
        indices into `infeasible`; at most one index into `ready`.
    """
    held = np.flatnonzero((infeasible <= total).all(axis=1))
    return held, np.flatnonzero((ready <= total).all(axis=1))[:1]
