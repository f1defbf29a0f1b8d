"""Placement `ray_random`: any node with room, as Ray placed in 2019."""

from collections.abc import Sequence

import numpy as np

from agents.ray_nodes import Nodes, in_decision, one_of
from agents.rule_kinds import PlacementRule
from agents.scheduler import Decision


class RayRandom(PlacementRule):
    """One of the nodes with room beside all that waits there, else one that has enough in total.

    The engine counts a placed function to the load of its node at once. Source: `Schedule` of
    `src/ray/raylet/scheduling_policy.cc` of 2019.
    """

    def choose(self, decision: Decision) -> int:
        """The row of a feasible NUMA node."""
        nodes, demand = in_decision(decision)
        return one_of(decision, fitting(nodes, demand))


def fitting(nodes: Nodes, demand: np.ndarray) -> np.ndarray:
    """Indices of the nodes of which one is drawn for a demand (L,); empty: it stays."""
    free = nodes._replace(available=nodes.available - nodes.load).free_for(demand)
    return np.flatnonzero(free if free.any() else nodes.feasible(demand))


def schedule(
    nodes: Nodes, demands: Sequence[np.ndarray], rng: np.random.Generator
) -> list[int | None]:
    """The node of each demand (L,), one after the other; None for those that stay.

    The load of a node rises with every demand that it gets.
    """
    load = nodes.load.copy()
    chosen: list[int | None] = []
    for demand in demands:
        fit = fitting(nodes._replace(load=load), demand)
        node = int(rng.choice(fit)) if len(fit) else None
        if node is not None:
            load[node] += demand
        chosen.append(node)
    return chosen


def spill_over(
    total: np.ndarray, infeasible: np.ndarray, ready: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Who moves to a node that joins or grows: all that fitted nowhere, and one that is ready.

    Source: `SpillOver` of `src/ray/raylet/scheduling_policy.cc` of 2019.

    Args:
        total: (L,) of the node.
        infeasible: (I, L) demands that no node held.
        ready: (R, L) demands that wait on other nodes, in their order.

    Returns:
        indices into `infeasible`; at most one index into `ready`.
    """
    held = np.flatnonzero((infeasible <= total).all(axis=1))
    return held, np.flatnonzero((ready <= total).all(axis=1))[:1]
