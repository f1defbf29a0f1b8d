"""What every NUMA node has of each resource, what is left of it, and what waits for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from env.resources.quantity import UNIT
from env.sim.declared.hardware import CPU
from env.sim.state.block import State
from env.sim.state.records import RUNNING


class Resources(NamedTuple):
    """Amounts are int64 in 1/10,000, of memory in 1/10,000 MB.

    A container uses of CPU what its function declares; where nobody declares any, each of its
    threads uses 1, and all together no more than there is.

    Attributes:
        labels: L of them, CPU and memory first, then the others that functions declare.
        total: (N, L), what each node has.
        available: (N, L), what no container that was admitted holds.
        load: (N, L), what the containers need that wait on the node and have not started.
        left: (N, ids) what is left of each id, of what functions declare; one where there are none.
    """

    labels: tuple[str, ...]
    total: np.ndarray
    available: np.ndarray
    load: np.ndarray
    left: dict[str, np.ndarray]


def left_of(state: State, named: int, empty: bool) -> np.ndarray:
    """(N, places) what nodes have left of a named resource; with `empty` what they have."""
    places = len(state.named_kept)
    rows = state.named_left[: len(state.nodes) * places].reshape(-1, places)
    if empty:
        kinds = state.servers["type"][state.nodes["server"]]
        rows = state.named_capacity.reshape(-1, places)[kinds]
    first, end = state.named_first[named : named + 2]
    return np.array(rows[:, first:end])


def waits_on_node(functions: np.ndarray) -> np.ndarray:
    """Which FUNCTION records have been placed, and wait for memory or named resources: bool."""
    waits: np.ndarray = (functions["state"] == RUNNING) & np.isnan(functions["start_time"])
    return waits


def resources_of(state: State, names: Sequence[str]) -> Resources:
    """Of all nodes at this moment; `names` are those of the named resources."""
    nodes, waiting = state.nodes, state.functions[waits_on_node(state.functions)]
    threads = nodes["parallelism"].copy()  # of what waits, too
    np.subtract.at(threads, waiting["node"], waiting["parallelism"])
    left = {name: left_of(state, named, False) for named, name in enumerate(names)}
    has = [left_of(state, named, True).sum(axis=1) for named in range(len(names))]
    total = np.column_stack([nodes["cpu"] * UNIT, nodes["memory"] * UNIT, *has])
    free = [each.sum(axis=1) for each in left.values()]
    used = np.column_stack([threads, nodes["allocated_memory"]]) * UNIT
    available = np.column_stack([np.maximum(total[:, :2] - used, 0), *free])
    load = np.zeros_like(total)
    named = _named_needs(state, names)[waiting["declared"]]
    basis = np.column_stack([waiting["parallelism"], waiting["memory_alloc"]]) * UNIT
    np.add.at(load, waiting["node"], np.concatenate([basis, named], axis=1))
    labels = (CPU, "memory", *(name for name in names if name != CPU))
    total, available, load = (_with_cpu(names, each) for each in (total, available, load))
    return Resources(labels, total, available, load, left)


def demands_of(state: State, names: Sequence[str]) -> np.ndarray:
    """(D, L) what declared functions need of each resource."""
    own = state.template_functions
    basis = np.column_stack([own["parallelism"], own["memory_req"]]) * UNIT
    return _with_cpu(names, np.concatenate([basis, _named_needs(state, names)], axis=1))


def _named_needs(state: State, names: Sequence[str]) -> np.ndarray:
    """(D, X) what declared functions need of named resources."""
    return state.named_needs.reshape(len(state.template_functions), len(names))


def _with_cpu(names: Sequence[str], amounts: np.ndarray) -> np.ndarray:
    """Amounts of cores, memory and named resources; CPU takes the place of cores if it is named."""
    if CPU in names:
        amounts[:, 0] = amounts[:, 2]
        amounts = np.delete(amounts, 2, axis=1)
    return amounts
