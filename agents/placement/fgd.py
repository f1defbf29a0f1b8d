"""Placement `fgd`: the node whose GPUs are fragmented least by it (fragmentation gradient descent).

Source: Weng et al., Beware of Fragmentation, USENIX ATC 2023.
"""

import numpy as np

from agents.rule_kinds import PlacementRule
from agents.scheduler import Decision
from env.resources.instances import acquire
from env.resources.quantity import UNIT


class Fgd(PlacementRule):
    """The smallest growth of fragments; of equal ones the fullest node, as in `best_fit`.

    Nodes with room now come first. Fragments are summed over the functions that are declared, as if
    each were as likely as any other.

    Attributes:
        resource: what is not to be fragmented. Its units have ids.
    """

    resource: str = "GPU"

    def choose(self, decision: Decision) -> int:
        env, rows = decision.env, decision.rows
        growth = np.zeros(len(env.state.nodes), np.int64)
        if self.resource in (seen := env.resources).labels:
            label, left = seen.labels.index(self.resource), seen.left[self.resource]
            need = env.demand(decision.function)
            after = left.copy()
            for ids in after:
                acquire(ids, 0, len(ids), need[label], np.zeros_like(ids), 0)
            before = fragments(left, seen.available, env.demands, label)
            growth = fragments(after, seen.available - need, env.demands, label) - before
        each_tier = len(rows) // len(growth)
        room = decision.free_memory - decision.memory_alloc
        return decision.smallest(rows["waits"], np.repeat(growth, each_tier), np.abs(room))


def fragments(
    left: np.ndarray, available: np.ndarray, demands: np.ndarray, label: int
) -> np.ndarray:
    """(N,) what of a resource functions cannot use, in 1/10,000, summed over all of them.

    For each that is all of it where the node has no room for it, or it needs none; else what is
    left of the ids that are too small for it.

    Args:
        left: (N, ids), what is left of each.
        available: (N, L), of all resources.
        demands: (M, L), of each function.
        label: which of the resources it is.
    """
    total = np.zeros(len(left), np.int64)
    for demand in demands:
        others = np.delete(available >= demand, label, axis=1).all(axis=1)
        enough = left >= min(demand[label], UNIT)
        room = enough.sum(axis=1) * UNIT >= demand[label]
        usable = others & room & enough.any(axis=1) & (demand[label] > 0)
        total += np.where(usable, np.where(enough, 0, left).sum(axis=1), left.sum(axis=1))
    return total
