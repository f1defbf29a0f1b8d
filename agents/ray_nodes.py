"""What Ray's schedulers see of a cluster, for the rules agents/placement/ray_*.py.

A Ray node is a NUMA node. Quantities are int64, in units of 1/10,000.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Final, NamedTuple, TypeVar

import numpy as np

from agents.scheduler import Decision
from env.base.errors import InputError
from env.sim.view.workload import Function

CRITICAL: Final = ("CPU", "memory", "object_store_memory")
"""Labels that count as how busy a node is."""
NOTHING: Final = -1
"""Of every label on a node that must not be chosen: not even a demand of 0 fits."""

Wanted = TypeVar("Wanted")


class Nodes(NamedTuple):
    """Resources of N nodes, in the order that Ray calls sorted by id.

    Attributes:
        labels: of the L resources.
        total: (N, L).
        available: (N, L), what no running container holds.
        load: (N, L), what is ready on the node and has not started asks for.
    """

    labels: tuple[str, ...]
    total: np.ndarray
    available: np.ndarray
    load: np.ndarray

    def feasible(self, demand: np.ndarray) -> np.ndarray:
        """(N,) which nodes hold a demand (L,) when they are empty."""
        fits: np.ndarray = (demand <= self.total).all(axis=1)
        return fits

    def free_for(self, demand: np.ndarray) -> np.ndarray:
        """(N,) which nodes hold a demand (L,) now."""
        fits: np.ndarray = (demand <= self.available).all(axis=1)
        return fits

    @property
    def utilisation(self) -> np.ndarray:
        """(N,) float32, the largest used share of a `CRITICAL` label.

        Source: `CalculateCriticalResourceUtilization` in
        `src/ray/common/scheduling/cluster_resource_data.cc`.
        """
        columns = [at for at, label in enumerate(self.labels) if label in CRITICAL]
        total = self.total[:, columns]
        free = self.available[:, columns] / np.where(total > 0, total, 1)
        used = np.where(total > 0, 1.0 - free, 0.0)
        # Ray compares float32: 1 - 0.9 is no less than 0.1.
        return used.max(axis=1, initial=0.0).astype(np.float32)

    def of(self, label: str, amounts: np.ndarray) -> np.ndarray:
        """A column of (..., L) amounts; zeros where nobody offers the label."""
        if label not in self.labels:
            return np.zeros(amounts.shape[:-1], np.int64)
        column: np.ndarray = amounts[..., self.labels.index(label)]
        return column


def in_decision(decision: Decision, function: Function | None = None) -> tuple[Nodes, np.ndarray]:
    """The cluster at a decision, and what a function asks for, (L,).

    What waits on a node counts as held: with Ray a placed task takes its resources at once, here it
    waits for its server and its data, too. A node that is no feasible row holds nothing. Cores are
    shared here: a function with more threads than any node has cores asks for all cores of the
    largest. Memory is what it is given.

    Args:
        decision: about a placement, with one memory tier.
        function: None: the one to be placed.
    """
    resources = decision.env.resources
    feasible = decision.rows["feasible"][:, None] > 0
    total = np.where(feasible, resources.total, NOTHING)
    free = np.where(feasible, np.maximum(resources.available - resources.load, 0), NOTHING)
    demand = decision.env.demand(function or decision.function).copy()
    cpu, memory = (resources.labels.index(label) for label in ("CPU", "memory"))
    demand[cpu] = min(demand[cpu], total[:, cpu].max())
    given, required = int(decision.memory_alloc[0]), decision.function.memory_req
    demand[memory] = -(-demand[memory] * given // required)
    return Nodes(resources.labels, total, free, np.zeros_like(total)), demand


def one_of(decision: Decision, nodes: np.ndarray) -> int:
    """Draws one of equally good nodes.

    Raises:
        InputError: there is none.
    """
    if len(nodes) == 0:
        raise InputError(
            f"function '{function_name(decision)}': no node that its placement rule allows can "
            "take it now, and a placement cannot hold it back"
        )
    return int(decision.rng.choice(nodes))


def nearest_to_data(decision: Decision) -> int:
    """The node that a function's data reach first; the first node where it has none.

    It stands for the node whose scheduler Ray asks first: the one with most of the data, else that
    of the driver. Source: `src/ray/core_worker/lease_policy.cc`.
    """
    return int(np.argmin(decision.rows["data_transfer_time"]))


def function_name(decision: Decision) -> str:
    """What the function to be placed is called; its number where it has no name."""
    function = decision.function
    names = decision.env.workflow_templates[function.wf_id].function_names
    return names[function.fn_id] if names else str(function.fn_id)


def wanted_by(decision: Decision, functions: Mapping[str, Wanted]) -> Wanted | None:
    """What is declared for the function to be placed, by the first pattern that matches it."""
    name = function_name(decision)
    return next((wish for each, wish in functions.items() if fnmatchcase(name, each)), None)
