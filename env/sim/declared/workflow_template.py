"""What is declared of a workflow: a DAG of functions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from env.base.errors import InputError, located
from env.base.schema import short
from env.resources.quantity import Quantity, as_number
from env.sim.declared.bounds import LARGEST_MEMORY, LARGEST_WHOLE, LARGEST_WORK, MOST_CORES
from env.sim.declared.regions import Regions

FUNCTION_BOUNDS: Final = {
    "computation": LARGEST_WORK,
    "memory_req": LARGEST_MEMORY,
    "parallelism": MOST_CORES,
}


@dataclass(frozen=True, eq=False)
class WorkflowTemplate:
    """A DAG of functions, checked when built.

    Attributes:
        name: what reports call it.
        computation: int64 (F,), operations, at least 1.
        memory_req: int64 (F,), MB, at least 1.
        parallelism: int64 (F,), threads of execution, at least 1.
        edges: int64 (E, 2), (source, target) function ids; sorted and unique once built.
        data_bytes: int64 (E,), bytes moved from source to target, at least 0.
        function_names: for reading; empty, or one name a function.
        where: the file or the config key it came from, for errors; empty where it has none.
        resources: float64 (F,) each, plain amounts of named resources (resources.py) by name.
        images: what containers of each function are started from; empty: its name says it.
        probability: float64 (E,) that the source, once it ends, calls the target: above 0 and at
            most 1; empty when built: 1 for all.
        regions: where each function may run; empty: everywhere.

    Raises:
        InputError: an entry is out of range, an edge leads nowhere, or the graph has a cycle.
    """

    name: str
    computation: np.ndarray
    memory_req: np.ndarray
    parallelism: np.ndarray
    edges: np.ndarray
    data_bytes: np.ndarray
    function_names: tuple[str, ...] = ()
    where: str = ""
    resources: Mapping[str, np.ndarray] = field(default_factory=dict)
    images: tuple[Hashable, ...] = ()
    probability: np.ndarray = field(default_factory=lambda: np.ones(0))
    regions: tuple[Regions, ...] = ()

    def __post_init__(self) -> None:
        for key, most in FUNCTION_BOUNDS.items():
            values = self._whole_numbers(key, getattr(self, key), 1, most)
            object.__setattr__(self, key, values)
            self._check_length(key, values)
        resources = {}
        for name, given in self.resources.items():
            key = f"resources[{short(name)}]"
            with located(f"{self.label}: {key}"):
                amounts = [Quantity.declared(each) for each in np.asarray(given).tolist()]
            resources[name] = np.array([as_number(each) for each in amounts], np.float64)
            self._check_length(key, resources[name])
        object.__setattr__(self, "resources", resources)
        work = sum(self.computation.tolist())
        if work > LARGEST_WORK:
            raise InputError(
                f"{self.label}: {work} operations in all, at most {LARGEST_WORK} are possible"
            )
        if len(self.computation) == 0:
            raise InputError(f"{self.label}: no functions, at least 1 is needed")
        self._check_edges(self._whole_numbers("data_bytes", self.data_bytes, 0, LARGEST_WHOLE))
        self._check_acyclic()

    @property
    def label(self) -> str:
        """What errors call it."""
        return f"{self.where}{': ' if self.where else ''}workflow '{self.name}'"

    @property
    def function_count(self) -> int:
        """F, the number of functions."""
        return len(self.computation)

    def edge_label(self, edge: int) -> str:
        """What errors call an edge."""
        names = self.function_names or range(self.function_count)
        source, target = (short(names[end]) for end in self.edges[edge])
        return f"{source} -> {target}"

    def topological_order(self) -> list[int]:
        """Function ids, each after its predecessors; fewer than F if there is a cycle."""
        if len(self.edges) == 0:  # as in a trace, which may have thousands of these
            return list(range(self.function_count))
        waiting = np.bincount(self.edges[:, 1], minlength=self.function_count)
        order = [int(fn) for fn in np.flatnonzero(waiting == 0)]
        for fn in order:
            for target in self.edges[self.edges[:, 0] == fn, 1]:
                waiting[target] -= 1
                if waiting[target] == 0:
                    order.append(int(target))
        return order

    def _check_length(self, key: str, values: np.ndarray) -> None:
        if len(values) != len(self.computation):
            raise InputError(
                f"{self.label}: {key} has {len(values)} entries, "
                f"computation has {len(self.computation)}"
            )

    def _whole_numbers(self, key: str, values: Any, least: int, most: int) -> np.ndarray:
        given = np.asarray(values)
        for wrong, needed in (
            (given != np.floor(given), "a whole number"),
            ((given < least) | (given > most), f"at least {least} and at most {most}"),
        ):
            if wrong.any():
                bad = int(np.flatnonzero(wrong)[0])
                found = given.reshape(-1)[bad]
                raise InputError(f"{self.label}: {key}[{bad}] is {found}, {needed} is needed")
        return np.ascontiguousarray(given, dtype=np.int64).reshape(-1)

    def _check_edges(self, data_bytes: np.ndarray) -> None:
        edges = np.asarray(self.edges, dtype=np.int64).reshape(-1, 2)
        probability = np.asarray(self.probability, np.float64)
        probability = probability if len(probability) else np.ones(len(edges))
        for key, values in (("data_bytes", data_bytes), ("probability", probability)):
            if len(values) != len(edges):
                raise InputError(f"{self.label}: {len(edges)} edges but {len(values)} {key}")
        for source, target in edges:
            for end in (source, target):
                if not 0 <= end < self.function_count:
                    raise InputError(
                        f"{self.label}: edge {source} -> {target} names function {end}, "
                        f"known are 0 to {self.function_count - 1}"
                    )
        possible = (probability > 0) & (probability <= 1)
        if not possible.all():
            bad = int(np.argmin(possible))
            raise InputError(
                f"{self.label}: probability[{bad}] is {probability[bad]}, "
                "above 0 and at most 1 is needed"
            )
        order = np.lexsort((edges[:, 1], edges[:, 0]))
        edges, data_bytes, probability = edges[order], data_bytes[order], probability[order]
        twice = np.flatnonzero((edges[1:] == edges[:-1]).all(axis=1))
        if len(twice):
            source, target = edges[twice[0]]
            raise InputError(f"{self.label}: edge {source} -> {target} is declared twice")
        object.__setattr__(self, "edges", np.ascontiguousarray(edges))
        object.__setattr__(self, "data_bytes", np.ascontiguousarray(data_bytes))
        object.__setattr__(self, "probability", probability)

    def _check_acyclic(self) -> None:
        in_cycle = sorted(set(range(self.function_count)) - set(self.topological_order()))
        if in_cycle:
            shown = ", ".join(str(fn) for fn in in_cycle[:5])
            raise InputError(
                f"{self.label}: the graph has a cycle through or before "
                f"functions {shown}; a DAG is needed"
            )


def upward_ranks(
    template: WorkflowTemplate, times: np.ndarray, transfers: np.ndarray | float = 0.0
) -> np.ndarray:
    """Longest sum of times and transfers from each function to a sink, itself included (HEFT).

    Args:
        template: the DAG.
        times: (F,) seconds.
        transfers: (E,) seconds of its edges, or the same for all.
    """
    ranks = times.astype(np.float64)
    if len(template.edges) == 0:
        return ranks
    seconds = np.broadcast_to(transfers, len(template.edges))
    for fn_id in reversed(template.topological_order()):
        edges = np.flatnonzero(template.edges[:, 0] == fn_id)
        if len(edges):
            ranks[fn_id] = times[fn_id] + (seconds[edges] + ranks[template.edges[edges, 1]]).max()
    return ranks
