"""The cluster: what is declared (`ClusterConfig`, `ServerType`), transfers, the `Cluster` view."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from env.base.errors import InputError
from env.base.schema import short
from env.sim.bounds import (
    LARGEST_BANDWIDTH,
    LARGEST_MEMORY,
    LARGEST_RATE,
    LARGEST_WHOLE,
    LARGEST_WORK,
    LEAST_BANDWIDTH,
    LEAST_RATE,
    LONGEST,
    MOST_CORES,
    MOST_NODES_OF_A_SERVER,
    MOST_SERVERS,
)
from env.sim.container import (
    Container,
    give_back_container,
    read_container,
    take_container,
    write_container,
)
from env.sim.jit import compiled
from env.sim.power import Power
from env.sim.records import NONE
from env.sim.server import (
    Server,
    server_on_container_completion,
    server_on_container_creation,
    startup_at,
)
from env.sim.tournament import earliest_node

if TYPE_CHECKING:
    from env.sim.records import State

MOST_NODES = 1_000_000
"""NUMA nodes of a cluster; more do not fit into memory with all that is known of them."""
SAME_PRICE = 1e-9
"""Relative difference of prices that is only rounding."""

TYPE_BOUNDS: Final = {
    "count": (0, MOST_SERVERS),
    "hourly_rate": (0.0, LARGEST_RATE),
    "cold_start_latency": (0.0, LONGEST),
    "numa_nodes": (1, MOST_NODES_OF_A_SERVER),
    "cpu": (1, MOST_CORES),
    "memory": (1, LARGEST_MEMORY),
    "single_core_speed": (1, LARGEST_WHOLE),
}


@dataclass(frozen=True)
class ServerType:
    """`count` equal servers, each of `numa_nodes` equal NUMA nodes.

    Attributes:
        hourly_rate: USD per started hour.
        cold_start_latency: seconds from renting a server to its first usable moment.
        numa_nodes: NUMA nodes of one server.
        cpu: cores of one NUMA node.
        memory: MB of one NUMA node.
        single_core_speed: operations per second; None means the cluster's.
    """

    name: str
    count: int
    hourly_rate: float
    cold_start_latency: float
    numa_nodes: int
    cpu: int
    memory: int
    single_core_speed: int | None = None

    def __post_init__(self) -> None:
        for field, (least, most) in TYPE_BOUNDS.items():
            _check(f"server type '{self.name}'", field, getattr(self, field), least, most)
        if self.hourly_rate:
            rate = self.hourly_rate
            _check(f"server type '{self.name}'", "hourly_rate", rate, LEAST_RATE, LARGEST_RATE)

    @property
    def cores(self) -> int:
        """Of one server, all its NUMA nodes together."""
        return self.numa_nodes * self.cpu


@dataclass(frozen=True)
class ClusterConfig:
    """The hardware an episode runs on.

    Attributes:
        single_core_speed: operations per second of one core.
        memory_bandwidth: bytes/s within one NUMA node.
        numa_bandwidth: bytes/s between NUMA nodes of one server.
        network_bandwidth: bytes/s between servers.
        server_types: in the order that breaks ties.
        power: of all servers; None where it is not known, and then carbon is not either.

    Raises:
        InputError: a value is out of range, a name is used twice, or there is no server.
    """

    single_core_speed: int
    memory_bandwidth: float
    numa_bandwidth: float
    network_bandwidth: float
    server_types: tuple[ServerType, ...]
    power: Power | None = None

    def __post_init__(self) -> None:
        _check("cluster", "single_core_speed", self.single_core_speed, 1, LARGEST_WHOLE)
        for field in ("memory_bandwidth", "numa_bandwidth", "network_bandwidth"):
            _check("cluster", field, getattr(self, field), LEAST_BANDWIDTH, LARGEST_BANDWIDTH)
        if not self.present_types:
            raise InputError("cluster: no servers, at least 1 is needed")
        nodes = sum(kind.count * kind.numa_nodes for kind in self.server_types)
        if nodes > MOST_NODES:
            raise InputError(f"cluster: {nodes} NUMA nodes, at most {MOST_NODES} are possible")
        speed = sum(
            kind.count * kind.cores * (kind.single_core_speed or self.single_core_speed)
            for kind in self.server_types
        )
        if speed > LARGEST_WORK:
            raise InputError(
                f"cluster: all cores do {speed} operations/s together, "
                f"at most {LARGEST_WORK} are possible"
            )
        names = [server_type.name for server_type in self.server_types]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"cluster: server type '{name}' is declared twice")

    @property
    def present_types(self) -> tuple[ServerType, ...]:
        """The server types of which there is a server."""
        return tuple(kind for kind in self.server_types if kind.count)

    @property
    def core_second_price(self) -> float:
        """USD of one second of a core of reference speed on the cheapest type that is not free.

        Rent is compared to it; 0 where all servers are free.
        """
        prices = [self.core_second_price_of(kind) for kind in self.present_types]
        return min((price for price in prices if price > 0.0), default=0.0)

    @property
    def cheapest_type(self) -> ServerType:
        """The present server type whose cores are the cheapest; of several, the largest."""
        price = min(self.core_second_price_of(kind) for kind in self.present_types)
        cheapest = [
            kind
            for kind in self.present_types
            if math.isclose(self.core_second_price_of(kind), price, rel_tol=SAME_PRICE)
        ]
        return max(cheapest, key=lambda kind: kind.cores)

    def core_second_price_of(self, kind: ServerType) -> float:
        """USD of one second of a core of reference speed on servers of a type."""
        speed_ratio = self.single_core_speed / (kind.single_core_speed or self.single_core_speed)
        return kind.hourly_rate / 3600.0 / kind.cores * speed_ratio

    @property
    def largest_node_memory(self) -> int:
        """MB of the largest NUMA node."""
        return max(kind.memory for kind in self.present_types)


def _check(where: str, field: str, value: float | None, least: float, most: float) -> None:
    """Refuses a number out of its bounds; None is one that is not given."""
    if value is not None and not least <= value <= most:
        raise InputError(
            f"{where}: {field} is {short(value)}, at least {least} and at most {most} is needed"
        )


@compiled
def transfer_speed(state, source, target):
    """Bytes/s between two NUMA nodes: within one, within one server, between servers."""
    if source == target:
        return state.cluster[0].memory_bandwidth
    if state.nodes[source].server == state.nodes[target].server:
        return state.cluster[0].numa_bandwidth
    return state.cluster[0].network_bandwidth


@compiled
def cluster_on_container_completion(state):
    """Completes the container that ends first in the whole cluster; returns it."""
    return server_on_container_completion(state, earliest_node(state))


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
        server = self._server(server_name, server_id)
        return float(startup_at(self.state, server.index, float(time)))

    def get_data_transfer_speed(
        self, source: tuple[str, int, int], target: tuple[str, int, int]
    ) -> float:
        """Bytes/s between two places, each (server name, server id, NUMA node id)."""
        return float(transfer_speed(self.state, self._node(*source), self._node(*target)))

    def on_container_creation(
        self, server_name: str, server_id: int, numa_node_id: int, container: Container
    ) -> float:
        """Creates a container on a started server; returns the rent it costs, USD.

        Raises:
            InputError: there is no such NUMA node, or no room for another container.
        """
        node = self._node(server_name, server_id, numa_node_id)
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
        index = cluster_on_container_completion(self.state)
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

    def _server(self, server_name: str, server_id: int) -> Server:
        servers = self.servers.get(server_name)
        if servers is None:
            raise InputError(
                f"server type '{server_name}' is unknown, known are {', '.join(self.servers)}"
            )
        if not 0 <= server_id < len(servers):
            raise InputError(
                f"server type '{server_name}' has servers 0 to {len(servers) - 1}, "
                f"found {server_id}"
            )
        return servers[server_id]

    def _node(self, server_name: str, server_id: int, numa_node_id: int) -> int:
        server = self._server(server_name, server_id)
        nodes = server.numa_nodes
        if not 0 <= numa_node_id < len(nodes):
            raise InputError(
                f"server type '{server_name}' has NUMA nodes 0 to {len(nodes) - 1} a server, "
                f"found {numa_node_id}"
            )
        return nodes[numa_node_id].index
