"""What every NUMA node has of each resource, what is left of it, and what waits for it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from env.resources.quantity import UNIT
from env.sim.declared.hardware import CPU
from env.sim.node.waiting_load import sum_waiting
from env.sim.state.block import State


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


def resources_of(state: State, labels_named: tuple[str, ...]) -> Resources:
    """Of all nodes at this moment; `labels_named` are those that functions declare."""
    nodes = state.nodes
    load = np.zeros((len(nodes), 2 + len(labels_named)), np.int64)
    sum_waiting(state, load)
    threads = nodes["parallelism"] * UNIT - load[:, 0]
    total, free = np.zeros_like(load), np.zeros_like(load)
    total[:, 0], total[:, 1] = nodes["cpu"] * UNIT, nodes["memory"] * UNIT
    free[:, 0] = np.maximum(total[:, 0] - threads, 0)
    free[:, 1] = np.maximum(total[:, 1] - nodes["allocated_memory"] * UNIT, 0)
    left = {}
    for named, label in enumerate(labels_named):
        rows = left_of(state, named, False)
        total[:, 2 + named] = left_of(state, named, True).sum(axis=1)
        free[:, 2 + named] = rows.sum(axis=1)
        left[label] = rows
    labels = (CPU, "memory", *(label for label in labels_named if label != CPU))
    total, free, load = (_with_cpu(state, each) for each in (total, free, load))
    return Resources(labels, total, free, load, left)


def demand_of(state: State, function: int) -> np.ndarray:
    """(L,) what a function needs of each resource; its index is that in `state.functions`."""
    declared = int(state.functions[function]["declared"])
    return demands_of(state, slice(declared, declared + 1))[0]


def demands_of(state: State, declared: slice = slice(None)) -> np.ndarray:
    """(D, L) what declared functions need of each resource."""
    own = state.template_functions[declared]
    count = len(state.template_functions)
    named = state.named_needs.reshape(count, -1 if len(state.named_needs) else 0)[declared]
    basis = np.column_stack([own["parallelism"], own["memory_req"]]) * UNIT
    return _with_cpu(state, np.concatenate([basis, named], axis=1))


def _with_cpu(state: State, amounts: np.ndarray) -> np.ndarray:
    """Amounts of cores, memory and named resources; CPU takes the place of cores if it is named."""
    if state.named_cpu[0]:
        amounts[..., 0] = amounts[..., 2]
        return np.delete(amounts, 2, axis=-1)
    return amounts
