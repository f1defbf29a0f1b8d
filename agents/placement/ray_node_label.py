"""Placement `ray_node_label`: functions want labels, as by NodeLabelSchedulingStrategy."""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from agents.placement.ray_hybrid import HybridSettings
from agents.ray_nodes import Nodes, in_decision, one_of, wanted_by
from agents.rule_kinds import PlacementRule
from agents.scheduler import Decision
from env.base.schema import Strict


class Expression(Strict):
    """What a label of a node must be.

    Attributes:
        key: of the label.
        operator: whether its value is one of `values`, or whether there is such a label at all.
        values: for `in` and `not_in`.
    """

    key: str
    operator: Literal["in", "not_in", "exists", "does_not_exist"]
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels is meant."""
        if self.operator in ("in", "not_in"):
            return (labels.get(self.key) in self.values) == (self.operator == "in")
        return (self.key in labels) == (self.operator == "exists")


class LabelSelector(Strict):
    """The nodes that a function wants.

    Attributes:
        hard: all of it must match.
        soft: all of it matches on the nodes that come first.
    """

    hard: tuple[Expression, ...] = ()
    soft: tuple[Expression, ...] = ()


class RayNodeLabel(HybridSettings, PlacementRule):
    """Functions go to server types with the labels that they want; all others as `ray_hybrid`.

    Attributes:
        functions: by name, or by pattern with *.

    Raises:
        InputError: no node that a function may go to can take it.
    """

    functions: dict[str, LabelSelector]

    def choose(self, decision: Decision) -> int:
        """The row of a feasible NUMA node."""
        wish = wanted_by(decision, self.functions)
        if wish is None:
            return self.chosen(decision)
        config = decision.env.cluster_config
        labels_of = {kind.name: kind.labels for kind in config.server_types}
        labels = [labels_of[server] for server, _, _ in config.places]
        nodes, demand = in_decision(decision)
        return one_of(decision, labelled(nodes, demand, labels, wish))


def labelled(
    nodes: Nodes, demand: np.ndarray, labels: Sequence[Mapping[str, str]], wish: LabelSelector
) -> np.ndarray:
    """Indices of the nodes of which one is drawn; empty where it may go nowhere.

    Room now comes before soft labels. Source:
    `src/ray/raylet/scheduling/policy/node_label_scheduling_policy.cc`.

    Args:
        nodes: of the cluster.
        demand: (L,).
        labels: of each node.
        wish: of the function.
    """

    def matching(expressions: Sequence[Expression]) -> np.ndarray:
        return np.array([all(each.matches(of) for each in expressions) for of in labels])

    hard = nodes.feasible(demand) & matching(wish.hard)
    both = hard & matching(wish.soft)
    free = nodes.free_for(demand)
    tiers = (both & free, hard & free, both, hard)
    return np.flatnonzero(next((tier for tier in tiers if tier.any()), hard))
