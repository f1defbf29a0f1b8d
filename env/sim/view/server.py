"""The `Server` view: its lease, its rent and its NUMA nodes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from env.sim.node.server_state import STATES, server_state
from env.sim.view.numa_node import NumaNode
from env.sim.view.recorded import Recorded

if TYPE_CHECKING:
    from env.sim.state.block import State


class Server:
    """Reads one server: its lease, its rent and its NUMA nodes."""

    server_id = Recorded(int, "Index within its type.")
    hourly_rate = Recorded(float, "USD per started hour.")
    cold_start_latency = Recorded(float, "Seconds.")
    expiration_time = Recorded(float, "Seconds: end of the lease, -inf before the first one.")
    container_count = Recorded(int, "Containers created and not completed, waiting ones included.")

    def __init__(self, state: State, index: int, name: str) -> None:
        self.state = state
        self.index = index
        self.name = name

    def __repr__(self) -> str:
        return (
            f"Server({self.name}, server_id={self.server_id}, "
            f"expiration_time={self.expiration_time}, containers={self.container_count})"
        )

    @property
    def numa_nodes(self) -> tuple[NumaNode, ...]:
        """Its NUMA nodes."""
        first = int(self._record["first_node"])
        count = int(self._record["node_count"])
        return tuple(NumaNode(self.state, node) for node in range(first, first + count))

    @property
    def hours_rented(self) -> float:
        """Hours leased so far."""
        return float(self._ledger["lease_seconds"].sum() / 3600.0)

    @property
    def rent(self) -> float:
        """USD paid so far."""
        return float(self._ledger["rent"].sum())

    @property
    def earliest_finished_time(self) -> float:
        """Time of the first projected completion, inf if nothing runs."""
        return min(node.next_completion_time for node in self.numa_nodes)

    @property
    def earliest_finished_nn_id(self) -> int | None:
        """NUMA node of that completion."""
        if self.earliest_finished_time == math.inf:
            return None
        return min(self.numa_nodes, key=lambda node: node.next_completion_time).node_id

    @property
    def latest_finished_time(self) -> float:
        """Time of the last projected completion, -inf if nothing runs."""
        return max(node.last_completion_time for node in self.numa_nodes)

    @property
    def latest_finished_nn_id(self) -> int | None:
        """NUMA node of that completion."""
        if self.latest_finished_time == -math.inf:
            return None
        return max(self.numa_nodes, key=lambda node: node.last_completion_time).node_id

    @property
    def state_name(self) -> str:
        """One of `env.sim.node.server_state.STATES`: off, starting, up, draining, down."""
        return STATES[server_state(self.state, self.index)]

    @property
    def _ledger(self) -> np.ndarray:
        return self.state.ledger.reshape(len(self.state.servers), -1)[self.index]

    @property
    def _record(self) -> np.void:
        return self.state.servers[self.index]
