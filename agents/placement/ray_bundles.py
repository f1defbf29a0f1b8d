"""Placement `ray_bundles`: functions of a workflow that run together, Ray's placement groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import PrivateAttr

from agents.ray_nodes import CRITICAL, Nodes, in_decision
from agents.rule_kinds import PlacementRule
from agents.scheduler import Decision
from env.sim.view.workload import Workflow

Strategy = Literal["PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"]


class RayBundles(PlacementRule):
    """The functions of a workflow that are ready when the first of them is placed are a group.

    Nodes are found for all of it at once. Where it does not fit now, they are found as if all nodes
    were empty, and its functions wait on them. Where it does not fit even so, the first function is
    placed by itself, and the others are a group.

    Attributes:
        strategy: onto few nodes, one node, many nodes, or a node for each.
    """

    strategy: Strategy
    _planned: dict[tuple[int, int], int] = PrivateAttr(default_factory=dict)

    def choose(self, decision: Decision) -> int:
        if decision.env.decisions == 0:
            self._planned.clear()  # of another episode
        key = decision.function.wf_id, decision.function.fn_id
        node = self._planned.pop(key, None)
        if node is None or not decision.rows["feasible"][node]:
            self._plan(decision)
            node = self._planned.pop(key)
        return node

    def _plan(self, decision: Decision) -> None:
        """Decides where the group of the function to be placed goes."""
        wf_id, first = decision.function.wf_id, decision.function.fn_id
        workflow = Workflow(decision.env, wf_id)
        for ids in (sorted(workflow.submitted_functions), [first]):
            asked = [in_decision(decision, workflow.functions[fn_id]) for fn_id in ids]
            nodes, demands = asked[0][0], np.array([demand for _, demand in asked])
            for state in (nodes, nodes._replace(available=nodes.total)):
                places = plan(state, demands, self.strategy)
                if places is not None:
                    keys = [(wf_id, fn_id) for fn_id in ids]
                    self._planned.update(zip(keys, places, strict=True))
                    return


def largest_first(labels: Sequence[str], demands: np.ndarray) -> list[int]:
    """Order of the demands (B, L): by GPU, custom labels, object store, memory, CPU."""
    custom = [label for label in labels if label not in ("GPU", *CRITICAL)]
    order = [label for label in ("GPU", *custom, *reversed(CRITICAL)) if label in labels]
    columns = [labels.index(label) for label in order]
    return sorted(range(len(demands)), key=lambda at: [-demands[at, each] for each in columns])


def best_node(available: np.ndarray, demand: np.ndarray, among: np.ndarray) -> int | None:
    """Of `among` (N,) the node with room of whose available amounts (N, L) the largest share stays.

    Shares of all labels that are asked for are summed up. Source:
    `src/ray/raylet/scheduling/policy/scorer.cc`.
    """
    fits = np.flatnonzero(among & (demand <= available).all(axis=1))
    if len(fits) == 0:
        return None
    asked = demand > 0
    left = 1.0 - demand[asked] / available[np.ix_(fits, asked)]
    return int(fits[left.sum(axis=1).argmax()])


def plan(
    nodes: Nodes, demands: np.ndarray, strategy: Strategy, target: int | None = None
) -> list[int] | None:
    """The node of each of the demands (B, L); None where not all of them fit.

    STRICT_PACK takes node `target` if it has room. Source:
    `src/ray/raylet/scheduling/policy/bundle_scheduling_policy.cc`.
    """
    free, fresh = nodes.available.copy(), np.ones(len(nodes.total), bool)
    if strategy == "STRICT_PACK":
        whole = demands.sum(axis=0)
        node = best_node(free, whole, np.arange(len(fresh)) == target)
        node = best_node(free, whole, fresh) if node is None else node
        return None if node is None else [node] * len(demands)
    places = [-1] * len(demands)
    waiting = largest_first(nodes.labels, demands)
    while waiting:
        node = best_node(free, demands[waiting[0]], fresh)
        if node is None and strategy == "SPREAD":
            node = best_node(free, demands[waiting[0]], ~fresh)
        if node is None:
            return None
        fresh[node] = False
        # PACK puts on it whatever else fits.
        for bundle in list(waiting) if strategy == "PACK" else waiting[:1]:
            if (demands[bundle] <= free[node]).all():
                free[node] -= demands[bundle]
                places[bundle] = node
                waiting.remove(bundle)
    return places
