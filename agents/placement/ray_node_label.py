"""Placement `ray_node_label`: functions want labels, as by NodeLabelSchedulingStrategy."""

from collections.abc import Mapping, Sequence

import numpy as np
from pydantic import Field

from agents.placement.ray_hybrid import RayHybrid
from agents.ray_nodes import Nodes, in_decision, one_of, wish_for
from agents.rule_kinds import PlacementRule
from agents.scheduler import Decision
from env.base.schema import Strict

Selector = dict[str, tuple[str, ...]]
"""By label, the values of which a node has one."""


class LabelWish(Strict):
    """The nodes that a function wants.

    Attributes:
        hard: labels without which it does not go to a node.
        soft: labels of the nodes that come first.
    """

    hard: Selector = Field(default={})
    soft: Selector = Field(default={})


class RayNodeLabel(RayHybrid, PlacementRule):
    """Functions go to server types with the labels that they want; all others as `ray_hybrid`.

    Attributes:
        functions: by name, or by pattern with *.
    """

    functions: dict[str, LabelWish]

    def choose(self, decision: Decision) -> int:
        wish = wish_for(decision, self.functions)
        if wish is None:
            return super().choose(decision)
        config = decision.env.cluster_config
        labels_of = {kind.name: kind.labels for kind in config.server_types}
        labels = [labels_of[server] for server, _, _ in config.places]
        return one_of(decision, labelled(*in_decision(decision), labels, wish))


def labelled(
    nodes: Nodes, demand: np.ndarray, labels: Sequence[Mapping[str, str]], wish: LabelWish
) -> np.ndarray:
    """Indices of the nodes, with these labels, of which one is drawn for a demand (L,).

    Room now comes before soft labels. Source:
    `src/ray/raylet/scheduling/policy/node_label_scheduling_policy.cc`.
    """

    def matching(wanted: Selector) -> np.ndarray:
        return np.array([all(of.get(key) in wanted[key] for key in wanted) for of in labels])

    free, hard = nodes.free_for(demand), nodes.feasible(demand) & matching(wish.hard)
    both = hard & matching(wish.soft)
    tiers = (both & free, hard & free, both, hard)
    return np.flatnonzero(next((tier for tier in tiers if tier.any()), hard))
