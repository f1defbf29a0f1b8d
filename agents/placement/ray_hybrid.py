"""Placement `ray_hybrid`: fills nodes up to a threshold, then spreads; Ray's default."""

from typing import Annotated

import numpy as np
from pydantic import Field

from agents.ray_nodes import Nodes, in_decision, one_of
from agents.rule_kinds import PlacementRule
from agents.scheduler import Decision


class RayHybrid(PlacementRule):
    """One of the best nodes, by Ray's settings; conf/baseline/ray_hybrid.yaml says what they do.

    Source: `src/ray/raylet/scheduling/policy/hybrid_scheduling_policy.cc`.
    """

    scheduler_spread_threshold: Annotated[float, Field(ge=0, le=1)]
    scheduler_top_k_fraction: Annotated[float, Field(ge=0, le=1)]
    scheduler_top_k_absolute: Annotated[int, Field(strict=True, ge=1)]
    scheduler_avoid_gpu_nodes: bool

    def best(self, nodes: Nodes, demand: np.ndarray, preferred: int | None = None) -> np.ndarray:
        """Indices of the nodes of which one is drawn for a demand (L,); empty: none holds it.

        Nodes with room come before those that are large enough. Of these the least used are taken,
        of equals the first; the preferred node, if none is less used.
        """
        free, feasible = nodes.free_for(demand), nodes.feasible(demand)
        tiers = [free, feasible]
        gpu = [label == "GPU" for label in nodes.labels]
        if self.scheduler_avoid_gpu_nodes and not demand[gpu].any():
            tiers.insert(0, free & (nodes.total[:, gpu] <= 0).all(axis=1))
        used = nodes.utilisation
        score = np.where(used < np.float32(self.scheduler_spread_threshold), 0, used)
        ids = np.flatnonzero(next((tier for tier in tiers if tier.any()), feasible))
        ids = ids[np.argsort(score[ids], kind="stable")]
        if preferred in ids and score[preferred] <= score[ids[0]]:
            return np.array([preferred])
        share = int(len(free) * self.scheduler_top_k_fraction)
        return ids[: max(self.scheduler_top_k_absolute, share)]

    def choose(self, decision: Decision) -> int:
        """The row of a feasible NUMA node, as `best` has it.

        Ray prefers the node that holds most of the data, else that of the driver; here it is the
        node that they reach first, else the first. Source: `src/ray/core_worker/lease_policy.cc`.
        """
        preferred = int(np.argmin(decision.rows["data_transfer_time"]))
        return one_of(decision, self.best(*in_decision(decision), preferred))
