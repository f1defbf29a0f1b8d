"""Placement `ray_node_affinity`: functions want a node, as by NodeAffinitySchedulingStrategy."""

import numpy as np

from agents.placement.ray_hybrid import HybridSettings
from agents.ray_nodes import Nodes, in_decision, nearest_to_data, one_of, wanted_by
from agents.rule_kinds import PlacementRule
from agents.scheduler import Decision
from env.base.schema import Strict


class Affinity(Strict):
    """The node that a function wants.

    Attributes:
        node: server type, server and NUMA node.
        soft: whether it goes elsewhere if the node is unknown or too small.
        spill_on_unavailable: with `soft`, whether it goes elsewhere if the node has no room now.
        fail_on_unavailable: without `soft`, whether it fails if the node has no room now.
    """

    node: tuple[str, int, int]
    soft: bool = False
    spill_on_unavailable: bool = False
    fail_on_unavailable: bool = False


class RayNodeAffinity(HybridSettings, PlacementRule):
    """Functions go to the nodes that they want; all others, and those that may, as `ray_hybrid`.

    Attributes:
        functions: by name, or by pattern with *.

    Raises:
        InputError: a function may only go to a node that cannot take it.
    """

    functions: dict[str, Affinity]

    def choose(self, decision: Decision) -> int:
        """The row of a feasible NUMA node."""
        wish = wanted_by(decision, self.functions)
        if wish is None:
            return self.chosen(decision)
        nodes, demand = in_decision(decision)
        target = decision.env.cluster_config.places.get(wish.node)
        preferred = nearest_to_data(decision)
        return one_of(decision, affine(nodes, demand, wish, target, self, preferred))


def affine(
    nodes: Nodes,
    demand: np.ndarray,
    wish: Affinity,
    target: int | None,
    otherwise: HybridSettings,
    preferred: int | None = None,
) -> np.ndarray:
    """Indices of the nodes of which one is drawn; empty where it may go nowhere.

    Source: `src/ray/raylet/scheduling/policy/node_affinity_scheduling_policy.cc`.

    Args:
        nodes: of the cluster.
        demand: (L,).
        wish: of the function.
        target: index of the node that it wants; None: there is no such node.
        otherwise: how it goes elsewhere.
        preferred: index of the node that is preferred elsewhere.
    """
    if target is not None:
        waits = not (wish.spill_on_unavailable or wish.fail_on_unavailable)
        takes = nodes.feasible(demand) if waits else nodes.free_for(demand)
        if takes[target]:
            return np.array([target])
    return otherwise.best(nodes, demand, preferred) if wish.soft else np.array([], np.int64)
