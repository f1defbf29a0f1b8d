"""The `Cluster` view: servers by type name, the first and last completion."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from env.sim.declared.hardware import ClusterConfig
from env.sim.view.recorded import Recorded
from env.sim.view.server import Server

if TYPE_CHECKING:
    from env.sim.state.block import State


class Cluster:
    """Reads the whole cluster: servers by type name, the first and last completion."""

    memory_bandwidth = Recorded(float, "Bytes/s within one NUMA node.")
    numa_bandwidth = Recorded(float, "Bytes/s between NUMA nodes of one server.")
    network_bandwidth = Recorded(float, "Bytes/s between servers.")
    single_core_speed = Recorded(int, "Operations per second, unless a server type has its own.")

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

    def _all_servers(self) -> list[Server]:
        return [server for servers in self.servers.values() for server in servers]

    def _earliest_server(self) -> Server | None:
        server = min(self._all_servers(), key=lambda server: server.earliest_finished_time)
        return server if server.earliest_finished_time < math.inf else None

    def _latest_server(self) -> Server | None:
        server = max(self._all_servers(), key=lambda server: server.latest_finished_time)
        return server if server.latest_finished_time > -math.inf else None

    @property
    def _record(self) -> np.void:
        return self.state.cluster[0]
