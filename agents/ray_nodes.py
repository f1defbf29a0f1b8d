"""What Ray's schedulers see of a cluster, for the rules agents/placement/ray_*.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final, NamedTuple, TypeVar

import numpy as np

from agents.scheduler import Decision
from env.base.errors import InputError
from env.sim.view.workload import Function

CRITICAL: Final = ("CPU", "memory", "object_store_memory")
"""Labels that count as how busy a node is."""

Wish = TypeVar("Wish")


class Nodes(NamedTuple):
    """N nodes in the order of their ids. A Ray node is a NUMA node.

    Attributes:
        labels: of L resources.
        total: int64 (N, L), in 1/10,000.
        available: (N, L) of it, what nobody holds who runs there or has been sent there.
    """

    labels: tuple[str, ...]
    total: np.ndarray
    available: np.ndarray

    def feasible(self, demand: np.ndarray) -> np.ndarray:
        """(N,) which nodes hold a demand (L,) when they are empty."""
        return np.asarray((demand <= self.total).all(axis=1))

    def free_for(self, demand: np.ndarray) -> np.ndarray:
        """(N,) which nodes hold a demand (L,) now."""
        return np.asarray((demand <= self.available).all(axis=1))

    @property
    def utilisation(self) -> np.ndarray:
        """(N,) the largest used share of a `CRITICAL` label, as Ray in float32.

        Source: `src/ray/common/scheduling/cluster_resource_data.cc`.
        """
        columns = [label in CRITICAL for label in self.labels]
        total = self.total[:, columns]
        free = self.available[:, columns] / np.where(total > 0, total, 1)
        used = np.where(total > 0, 1.0 - free, 0.0)
        return used.max(axis=1, initial=0.0).astype(np.float32)


def in_decision(decision: Decision, function: Function | None = None) -> tuple[Nodes, np.ndarray]:
    """The cluster at a decision, and what a function asks for, (L,); None: the one to be placed.

    With Ray a task holds its resources once it is sent to a node with room; here it waits there for
    the server and its data, too, so what waits counts as held. Nodes of rows that are not feasible
    have -1 of all. Cores are shared here: who has more threads than any node has cores asks for all
    cores of the largest.
    """
    labels, total, available, load, _ = decision.env.resources
    feasible = decision.rows["feasible"][:, None] > 0
    total, free = np.where(feasible, [total, np.maximum(available - load, 0)], -1)
    demand = decision.env.demand(function or decision.function).copy()
    cpu, memory = labels.index("CPU"), labels.index("memory")
    demand[cpu] = min(demand[cpu], total[:, cpu].max())
    # What the memory rule gives of what is required, rounded up.
    given, required = int(decision.memory_alloc[0]), decision.function.memory_req
    demand[memory] = -(-demand[memory] * given // required)
    return Nodes(labels, total, free), demand


def one_of(decision: Decision, nodes: Sequence[int] | np.ndarray) -> int:
    """Draws one of equally good nodes.

    Raises:
        InputError: there is none.
    """
    if len(nodes) == 0:
        raise InputError(
            f"function '{_name(decision)}': no node that its placement rule allows can take it "
            "now, and a placement cannot hold it back"
        )
    return int(decision.rng.choice(nodes))


def wish_for(decision: Decision, functions: Mapping[str, Wish]) -> Wish | None:
    """What is declared for the function to be placed: of the first pattern that it matches."""
    name = _name(decision)
    return next((wish for each, wish in functions.items() if fnmatchcase(name, each)), None)


def _name(decision: Decision) -> str:
    """Of the function to be placed; its number where it has no name."""
    function = decision.function
    names = decision.env.workflow_templates[function.wf_id].function_names
    return names[function.fn_id] if names else str(function.fn_id)
