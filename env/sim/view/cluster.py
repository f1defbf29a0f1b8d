"""The `Cluster` view: servers by type name, the first and last completion."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from env.base.errors import InputError
from env.sim.declared.hardware import ClusterConfig
from env.sim.events.lease import (
    server_on_container_completion,
    server_on_container_creation,
    startup_at,
)
from env.sim.events.placing import transfer_speed
from env.sim.state.containers import give_back_container, take_container
from env.sim.state.records import NONE
from env.sim.state.tournament import earliest_node
from env.sim.view.container import Container, read_container, write_container
from env.sim.view.server import Server

if TYPE_CHECKING:
    from env.sim.state.block import State


class Cluster:
    """Reads the whole cluster: servers by type name, the first and last completion."""

    def __init__(self, state: State, config: ClusterConfig) -> None:
        self.state = state
        self.config = config
        self.servers: dict[str, tuple[Server, ...]] = {}
        index = 0
        for server_type in config.server_types:
            self.servers[server_type.name] = tuple(
                Server(state, index + server_id, server_type.name)
                for server_id in range(server_type.count)
            )
            index += server_type.count

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}: {len(servers)}" for name, servers in self.servers.items())
        return f"Cluster({counts})"

    @property
    def memory_bandwidth(self) -> float:
        """Bytes/s within one NUMA node."""
        return self.config.memory_bandwidth

    @property
    def numa_bandwidth(self) -> float:
        """Bytes/s between NUMA nodes of one server."""
        return self.config.numa_bandwidth

    @property
    def network_bandwidth(self) -> float:
        """Bytes/s between servers."""
        return self.config.network_bandwidth

    @property
    def single_core_speed(self) -> int:
        """Operations per second of one core, unless a server type states its own."""
        return self.config.single_core_speed

    @property
    def earliest_finished_time(self) -> float:
        """Time of the first projected completion, inf if nothing runs."""
        return min(server.earliest_finished_time for server in self._all_servers())

    @property
    def earliest_finished_srv_name(self) -> str | None:
        """Type of the server of that completion."""
        server = self._earliest_server()
        return server.name if server else None

    @property
    def earliest_finished_srv_id(self) -> int | None:
        """Server of that completion, within its type."""
        server = self._earliest_server()
        return server.server_id if server else None

    @property
    def latest_finished_time(self) -> float:
        """Time of the last projected completion, -inf if nothing runs."""
        return max(server.latest_finished_time for server in self._all_servers())

    @property
    def latest_finished_srv_name(self) -> str | None:
        """Type of the server of that completion."""
        server = self._latest_server()
        return server.name if server else None

    @property
    def latest_finished_srv_id(self) -> int | None:
        """Server of that completion, within its type."""
        server = self._latest_server()
        return server.server_id if server else None

    def start_server(self, server_name: str, server_id: int, time: float) -> float:
        """Starts a server if its lease is over; returns the cold start latency paid, seconds."""
        node = self.config.node_index(server_name, server_id, 0)
        return float(startup_at(self.state, self.state.nodes[node]["server"], float(time)))

    def get_data_transfer_speed(
        self, source: tuple[str, int, int], target: tuple[str, int, int]
    ) -> float:
        """Bytes/s between two places, each (server name, server id, NUMA node id)."""
        nodes = (self.config.node_index(*place) for place in (source, target))
        return float(transfer_speed(self.state, *nodes))

    def on_container_creation(
        self, server_name: str, server_id: int, numa_node_id: int, container: Container
    ) -> float:
        """Creates a container on a started server; returns the rent it costs, USD.

        Raises:
            InputError: there is no such NUMA node, or no room for another container.
        """
        node = self.config.node_index(server_name, server_id, numa_node_id)
        index = take_container(self.state)
        if index == NONE:
            raise InputError("cluster: no room for another container")
        write_container(self.state, index, container)
        before = self.state.cluster[0]["total_rent"]
        server_on_container_creation(self.state, node, index, container.submission_time)
        return float(self.state.cluster[0]["total_rent"] - before)

    def on_container_completion(self) -> Container:
        """Completes the container that ends first in the whole cluster and returns it.

        Raises:
            InputError: nothing runs.
        """
        if self.earliest_finished_time == math.inf:
            raise InputError("cluster: no running container to complete")
        index = server_on_container_completion(self.state, earliest_node(self.state))
        container = read_container(self.state, index)
        give_back_container(self.state, index)
        return container

    def reset(self) -> None:
        """Ends all leases and empties all NUMA nodes."""
        for server in self._all_servers():
            server.reset()

    def _all_servers(self) -> list[Server]:
        return [server for servers in self.servers.values() for server in servers]

    def _earliest_server(self) -> Server | None:
        node = int(earliest_node(self.state))
        if self.state.nodes[node]["next_completion"] == np.inf:
            return None
        return self._all_servers()[int(self.state.nodes[node]["server"])]

    def _latest_server(self) -> Server | None:
        server = max(self._all_servers(), key=lambda server: server.latest_finished_time)
        return server if server.latest_finished_time > -math.inf else None
