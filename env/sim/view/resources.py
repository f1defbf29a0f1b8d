"""What every NUMA node has of each resource, what is left of it, and what waits for it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from env.sim.state.block import State


class Resources(NamedTuple):
    """Amounts are int64 in 1/10,000, of memory in 1/10,000 MB.

    Attributes:
        labels: L of them, CPU and memory first, then the others that functions declare.
        total: (N, L), what each node has.
        available: (N, L), what no container that was admitted holds.
        load: (N, L), what the containers need that wait on the node and have not started.
        left: (N, ids) what is left of each id, of the labels with ids.
    """

    labels: tuple[str, ...]
    total: np.ndarray
    available: np.ndarray
    load: np.ndarray
    left: dict[str, np.ndarray]


def resources_of(state: State, labels_named: tuple[str, ...]) -> Resources:
    """Of all nodes at this moment; `labels_named` are those that functions declare."""
    raise NotImplementedError


def demand_of(state: State, function: int) -> np.ndarray:
    """(L,) what a function needs of each resource."""
    raise NotImplementedError
