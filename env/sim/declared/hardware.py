"""What is declared of the hardware: server types and the cluster of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal

from env.base.errors import InputError
from env.base.schema import listed, names_file, one_line, short
from env.sim.declared.bounds import (
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
    MOST_UNITS,
)
from env.sim.declared.power import Power

MOST_NODES = 1_000_000
"""NUMA nodes of a cluster; more do not fit into memory with all that is known of them."""

LONGEST_NAME = 50
"""Characters: the weights of a type's policy are in a file of its name."""

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


CpuShare = Literal["equal", "tickets"]


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
        resources: units of each named resource (env/sim/declared/resources.py) of one NUMA node.

    Raises:
        InputError: a value is out of range, or no file could have the name.
    """

    name: str
    count: int
    hourly_rate: float
    cold_start_latency: float
    numa_nodes: int
    cpu: int
    memory: int
    single_core_speed: int | None = None
    resources: Mapping[str, int] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not 0 < len(self.name) <= LONGEST_NAME or not names_file(self.name):
            raise InputError(
                f"server type {short(self.name)}: a name of 1 to {LONGEST_NAME} printable "
                "characters but / is needed"
            )
        where = f"server type '{self.name}'"
        for key, (least, most) in TYPE_BOUNDS.items():
            _check(f"{where}: {key}", getattr(self, key), least, most)
        for name, units in self.resources.items():
            _check(f"{where}: resources[{short(name)}]", units, 0, MOST_UNITS)
        if self.hourly_rate:
            _check(f"{where}: hourly_rate", self.hourly_rate, LEAST_RATE, LARGEST_RATE)

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
        cpu_share: how threads share the cores of a NUMA node that has fewer: all alike, or tenants
            by their tickets (env/sim/node/cpu_by_tickets.py).

    Raises:
        InputError: a value is out of range, a name is used twice, or there is no server.
    """

    single_core_speed: int
    memory_bandwidth: float
    numa_bandwidth: float
    network_bandwidth: float
    server_types: tuple[ServerType, ...]
    power: Power | None = None
    cpu_share: CpuShare = "equal"

    def __post_init__(self) -> None:
        _check("single_core_speed", self.single_core_speed, 1, LARGEST_WHOLE)
        for key in ("memory_bandwidth", "numa_bandwidth", "network_bandwidth"):
            _check(key, getattr(self, key), LEAST_BANDWIDTH, LARGEST_BANDWIDTH)
        if not self.present_types:
            raise InputError("no servers, at least 1 is needed")
        nodes = sum(kind.count * kind.numa_nodes for kind in self.server_types)
        if nodes > MOST_NODES:
            raise InputError(f"{nodes} NUMA nodes, at most {MOST_NODES} are possible")
        speed = sum(
            kind.count * kind.cores * (kind.single_core_speed or self.single_core_speed)
            for kind in self.server_types
        )
        if speed > LARGEST_WORK:
            raise InputError(
                f"all cores do {speed} operations/s together, at most {LARGEST_WORK} are possible"
            )
        names = [server_type.name for server_type in self.server_types]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"server type '{name}' is declared twice")

    @cached_property
    def places(self) -> dict[tuple[str, int, int], int]:
        """Index in the records of (server name, server id, NUMA node id), for all NUMA nodes."""
        names = (
            (kind.name, server_id, node_id)
            for kind in self.server_types
            for server_id in range(kind.count)
            for node_id in range(kind.numa_nodes)
        )
        return {place: index for index, place in enumerate(names)}

    def node_index(self, server_name: str, server_id: int, numa_node_id: int) -> int:
        """Index of a NUMA node in the records.

        Raises:
            InputError: there is no such place.
        """
        node = self.places.get((server_name, server_id, numa_node_id))
        if node is not None:
            return node
        kinds = {kind.name: kind for kind in self.server_types}
        if server_name not in kinds:
            known = one_line(listed(kinds))
            raise InputError(f"server type {short(server_name)} is unknown, known are {known}")
        kind = kinds[server_name]
        raise InputError(
            f"server type '{server_name}' has servers 0 to {kind.count - 1} with NUMA nodes 0 to "
            f"{kind.numa_nodes - 1}, found server {short(server_id)}, NUMA node "
            f"{short(numa_node_id)}"
        )

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

    def idle_watts(self, kind: ServerType) -> float:
        """W of a leased server on which nothing is at work; 0 where power is not known."""
        memory = kind.numa_nodes * kind.memory
        return self.power.idle_watts(kind.cores, memory) if self.power else 0.0

    @property
    def core_watts(self) -> float:
        """W that a core draws in addition while it is at work; 0 where power is not known."""
        return self.power.busy_core_w - self.power.idle_core_w if self.power else 0.0

    @property
    def largest_node_memory(self) -> int:
        """MB of the largest NUMA node."""
        return max(kind.memory for kind in self.present_types)


def _check(named: str, value: float | None, least: float, most: float) -> None:
    """Refuses a number out of its bounds; None is one that is not given."""
    if value is not None and not least <= value <= most:
        raise InputError(
            f"{named} is {short(value)}, at least {least} and at most {most} is needed"
        )
