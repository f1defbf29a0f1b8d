"""Placement `ray_hybrid`: packs nodes up to a threshold, then spreads; Ray's default."""

from typing import Annotated

import numpy as np
from pydantic import Field

from agents.ray_nodes import Nodes, in_decision, nearest_to_data, one_of
from agents.rule_kinds import PlacementRule
from agents.scheduler import Decision
from env.base.schema import Strict


class HybridSettings(Strict):
    """Ray's, by its own names.

    Attributes:
        scheduler_spread_threshold: utilisation below which nodes count as empty.
        scheduler_top_k_fraction: of all nodes, among the best of which one is drawn.
        scheduler_top_k_absolute: among at least so many.
        scheduler_avoid_gpu_nodes: whether who needs no GPU goes first to nodes without.
    """

    scheduler_spread_threshold: Annotated[float, Field(ge=0, le=1)]
    scheduler_top_k_fraction: Annotated[float, Field(ge=0, le=1)]
    scheduler_top_k_absolute: Annotated[int, Field(strict=True, ge=1)]
    scheduler_avoid_gpu_nodes: bool

    def best(self, nodes: Nodes, demand: np.ndarray, preferred: int | None = None) -> np.ndarray:
        """Indices of the nodes of which one is drawn, the best first; empty where none holds it.

        Nodes with room come before those that are large enough. The best have the least
        utilisation, of equals the first; the preferred node wins if none is better. Source:
        `src/ray/raylet/scheduling/policy/hybrid_scheduling_policy.cc`.

        Args:
            nodes: of the cluster.
            demand: (L,).
            preferred: index of the node whose scheduler is asked.
        """
        free, feasible = nodes.free_for(demand), nodes.feasible(demand)
        tiers = [free, feasible]
        if self.scheduler_avoid_gpu_nodes and nodes.of("GPU", demand) == 0:
            tiers.insert(0, free & (nodes.of("GPU", nodes.total) <= 0))
        among = next((tier for tier in tiers if tier.any()), feasible)
        used = nodes.utilisation
        score = np.where(used < np.float32(self.scheduler_spread_threshold), 0, used)
        chosen = np.flatnonzero(among)
        chosen = chosen[np.argsort(score[chosen], kind="stable")]
        if preferred in chosen and score[preferred] <= score[chosen[0]]:
            return np.array([preferred])
        share = int(len(among) * self.scheduler_top_k_fraction)
        return chosen[: max(self.scheduler_top_k_absolute, share)]

    def chosen(self, decision: Decision) -> int:
        """The row of a feasible NUMA node, as `best` has it."""
        nodes, demand = in_decision(decision)
        return one_of(decision, self.best(nodes, demand, nearest_to_data(decision)))


class RayHybrid(HybridSettings, PlacementRule):
    """One of the best nodes by `HybridSettings`; the node that its data reach first is preferred.

    Ray does not see what waits on a node, and neither does this rule.
    """

    def choose(self, decision: Decision) -> int:
        """The row of a feasible NUMA node."""
        return self.chosen(decision)
