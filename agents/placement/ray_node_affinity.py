"""Placement `ray_node_affinity`: functions want a node, as by NodeAffinitySchedulingStrategy."""

import numpy as np

from agents.placement.ray_hybrid import RayHybrid
from agents.ray_nodes import Nodes, in_decision, one_of, wish_for
from agents.rule_kinds import PlacementRule
from agents.scheduler import Decision
from env.base.schema import Strict


class Affinity(Strict):
    """The node that a function wants.

    Attributes:
        node: server type, server and NUMA node.
        soft: whether it goes elsewhere if the node is unknown or too small.
        spill_on_unavailable: whether it also does so if the node has no room now.
        fail_on_unavailable: whether it goes nowhere rather than wait for room.
    """

    node: tuple[str, int, int]
    soft: bool = False
    spill_on_unavailable: bool = False
    fail_on_unavailable: bool = False


class RayNodeAffinity(RayHybrid, PlacementRule):
    """Functions go to the nodes that they want; all others, and those elsewhere, as `ray_hybrid`.

    Attributes:
        functions: by name, or by pattern with *.
    """

    functions: dict[str, Affinity]

    def choose(self, decision: Decision) -> int:
        wish = wish_for(decision, self.functions)
        if wish is not None:
            target = decision.env.cluster_config.places.get(wish.node)
            allowed = affine(*in_decision(decision), wish, target)
            if allowed is not None:
                return one_of(decision, allowed)
        return super().choose(decision)


def affine(
    nodes: Nodes, demand: np.ndarray, wish: Affinity, target: int | None
) -> list[int] | None:
    """The node for a demand (L,), or none; None: it goes elsewhere.

    `target` is the index of the node that it wants, if there is such a node. Source:
    `src/ray/raylet/scheduling/policy/node_affinity_scheduling_policy.cc`.
    """
    waits = not (wish.spill_on_unavailable or wish.fail_on_unavailable)
    takes = nodes.feasible(demand) if waits else nodes.free_for(demand)
    if target is not None and takes[target]:
        return [target]
    return None if wish.soft else []
