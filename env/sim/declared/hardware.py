"""What is declared of the hardware: server types and the cluster of them.

A `conf/cluster` file and the cluster of an episode file have the same fields, under keys that carry
their units.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from env.base.errors import InputError
from env.base.schema import (
    StrictRecord,
    listed,
    names_file,
    one_line,
    short,
    strict_record,
    validated,
)
from env.resources.instances import check_whole_or_fraction
from env.resources.quantity import UNIT
from env.sim.declared.bounds import (
    LARGEST_WORK,
    MOST_NODES_OF_A_SERVER,
    MOST_SERVERS,
    Bandwidth,
    Cores,
    Memory,
    Name,
    NamedResources,
    Positive,
    Rate,
    ResourceName,
    Seconds,
)
from env.sim.declared.power import Amount, Power
from env.sim.declared.regions import Link, RegionTable, check_known
from env.sim.state.records import JOULES_PER_KWH

CPU = "CPU"
"""The named resource of which a node has as much as cores; who needs none still runs on them."""

MOST_NODES = 1_000_000
"""NUMA nodes of a cluster; more do not fit into memory with all that belongs to them."""

LONGEST_NAME = 50
"""Characters: the weights of a type's policy are in a file of its name."""

SAME_PRICE = 1e-9
"""Relative difference of prices that is only rounding."""


def _names_file(name: str) -> str:
    if not 0 < len(name) <= LONGEST_NAME or not names_file(name):
        raise ValueError(
            f"{short(name)}: a name of 1 to {LONGEST_NAME} printable characters but / is needed"
        )
    return name


def _in_a_list(types: Any) -> Any:
    """Server types by name, so that a configuration can override one key, as a list of them."""
    if not isinstance(types, Mapping):
        return types
    return [{**declared, "name": name} for name, declared in types.items()]


def _or(default: Any) -> BeforeValidator:
    """Null stands for the default, as older episode files have it."""
    return BeforeValidator(lambda given: default if given is None else given)


CpuShare = Literal["equal", "tickets"]
ResourceMode = Literal["today", "2019"]
Architecture = Literal["x86_64", "arm64"]
NodesOfServer = Annotated[int, Field(strict=True, ge=1, le=MOST_NODES_OF_A_SERVER)]
Count = Annotated[int, Field(strict=True, ge=0, le=MOST_SERVERS)]


@strict_record
class ServerType(StrictRecord):
    """`count` equal servers, each of `numa_nodes` equal NUMA nodes.

    Attributes:
        hourly_rate: USD per started hour.
        cold_start_latency: seconds from renting a server to its first usable moment.
        numa_nodes: NUMA nodes of one server.
        cpu: cores of one NUMA node.
        memory: MB of one NUMA node.
        single_core_speed: operations per second; None means the cluster's.
        resources: of one NUMA node, by name (env/sim/declared/resources.py).
        labels: what rules may choose servers by, as `zone: a`.
        region: where they stand. Where a cluster has regions, a type without one stands in each of
            them: as many types, called NAME_REGION, with - for a colon.
        architecture: of its processors, by which a lease is paid per use.

    Raises:
        InputError: a value is out of range, or no file could have the name.
    """

    name: Annotated[str, AfterValidator(_names_file)]
    count: Annotated[Count, Field(alias="server_count")]
    hourly_rate: Rate
    cold_start_latency: Seconds
    numa_nodes: Annotated[NodesOfServer, Field(alias="numa_nodes_per_server")]
    cpu: Annotated[Cores, Field(alias="cores_per_numa_node")]
    memory: Annotated[Memory, Field(alias="memory_mb_per_numa_node")]
    single_core_speed: Annotated[Positive | None, Field(alias="single_core_speed_ops_per_s")] = None
    resources: Annotated[NamedResources, _or({}), Field(alias="resources_per_numa_node")] = field(
        default_factory=dict, hash=False
    )
    labels: dict[Name, str] = field(default_factory=dict, hash=False)
    region: Name | None = None
    architecture: Architecture = "x86_64"

    @property
    def cores(self) -> int:
        """Of one server, all its NUMA nodes together."""
        return self.numa_nodes * self.cpu

    def offered(self, name: str) -> int:
        """What a NUMA node has of a named resource, in 1/10,000. Its cores are its CPU."""
        return self.resources.get(name, self.cpu * UNIT if name == CPU else 0)


@strict_record
class ClusterConfig(StrictRecord):
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
        resource_mode: whose units have ids: `today` those of `resources_with_ids`; in Ray's design
            of `2019` those of all named resources, so nobody can ask for 1.5 CPU.
        resources_with_ids: names of resources.
        regions: where servers stand, by name; empty: all in one place.
        home: the region where clients are; None: the first.
        transfer_kwh_per_gb: kWh of a GB, 10^9 bytes, that goes from one region to another.
        forecast_error: of forecasts of grid intensities: standard deviation / true value.
        forecast_hours: of which agents see the mean of such a forecast.

    Raises:
        InputError: a value is out of range, a name is used twice, there is no server, or a region
            is unknown or lacks a link.
    """

    single_core_speed: Annotated[Positive, Field(alias="single_core_speed_ops_per_s")]
    memory_bandwidth: Annotated[Bandwidth, Field(alias="same_node_bandwidth_bytes_per_s")]
    numa_bandwidth: Annotated[
        Bandwidth, Field(alias="between_nodes_of_one_server_bandwidth_bytes_per_s")
    ]
    network_bandwidth: Annotated[Bandwidth, Field(alias="between_servers_bandwidth_bytes_per_s")]
    server_types: Annotated[tuple[ServerType, ...], BeforeValidator(_in_a_list)]
    power: Power | None = None
    cpu_share: Annotated[CpuShare, _or("equal")] = "equal"
    resource_mode: Annotated[ResourceMode, BeforeValidator(str)] = "today"
    resources_with_ids: tuple[ResourceName, ...] = ("GPU",)
    regions: RegionTable = field(default_factory=dict, hash=False)
    home: Name | None = None
    transfer_kwh_per_gb: Amount = 0.0
    forecast_error: Amount = 0.0
    forecast_hours: Annotated[float, Field(gt=0, le=8760)] = 6.0

    def __post_init__(self) -> None:
        check_known("home", () if self.home is None else (self.home,), self.regions)
        for name, region in self.regions.items():
            check_known(f"regions.{name}.links", region.links, self.regions)
            self.power_in(name)
            for other in self.regions:
                self.link(name, other)
        object.__setattr__(self, "server_types", tuple(self._in_regions()))
        if not self.present_types:
            raise InputError("no servers, at least 1 is needed")
        nodes = sum(kind.count * kind.numa_nodes for kind in self.server_types)
        if nodes > MOST_NODES:
            raise InputError(f"{nodes} NUMA nodes, at most {MOST_NODES} are possible")
        speed = sum(kind.count * kind.cores * self.speed_of(kind) for kind in self.server_types)
        if speed > LARGEST_WORK:
            raise InputError(
                f"all cores do {speed} operations/s together, at most {LARGEST_WORK} are possible"
            )
        for kind in self.server_types:
            for name, units in kind.resources.items():
                if self.has_ids(name):
                    key = f"server_types.{kind.name}.resources_per_numa_node.{name}"
                    check_whole_or_fraction(key, units)
        names = [server_type.name for server_type in self.server_types]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"server type '{name}' is declared twice")

    def _in_regions(self) -> Iterator[ServerType]:
        for kind in self.server_types:
            if kind.region is not None:
                check_known(f"server_types.{kind.name}.region", (kind.region,), self.regions)
            if kind.region is not None or not self.regions:
                yield kind
                continue
            for region in self.regions:
                name = f"{kind.name}_{region}".replace(":", "-")  # which no policy may have
                yield replace(kind, name=name, region=region)

    def has_ids(self, name: str) -> bool:
        """Whether the units of a named resource have ids."""
        return self.resource_mode == "2019" or name in self.resources_with_ids

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
            names = one_line(listed(kinds))
            raise InputError(f"server type {short(server_name)} is unknown, known are {names}")
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
    def cheapest_server_cores(self) -> int:
        """Cores of the largest server among those whose cores are the cheapest."""
        prices = [(self.core_second_price_of(kind), kind.cores) for kind in self.present_types]
        least, _ = min(prices)
        close = (cores for price, cores in prices if math.isclose(price, least, rel_tol=SAME_PRICE))
        return max(close)

    def core_second_price_of(self, kind: ServerType) -> float:
        """USD of one second of a core of reference speed on servers of a type."""
        speed_ratio = self.single_core_speed / self.speed_of(kind)
        return self.rate_of(kind) / 3600.0 / kind.cores * speed_ratio

    def rate_of(self, kind: ServerType) -> float:
        """USD per started hour of a server where it stands."""
        return kind.hourly_rate * self.price_of(kind)

    def price_of(self, kind: ServerType) -> float:
        """Factor on prices where it stands."""
        return self.regions[kind.region].price if kind.region else 1.0

    def speed_of(self, kind: ServerType) -> int:
        """Operations per second of a core where it stands, at least 1."""
        speed = kind.single_core_speed or self.single_core_speed
        if not kind.region:
            return speed
        return max(1, round(speed * self.regions[kind.region].relative_performance))

    @property
    def start(self) -> str | None:
        """The region from which clients call; None where there is none."""
        return self.home or next(iter(self.regions), None)

    def link(self, source: str | None, target: str | None) -> Link:
        """What data meet from one region to another; within one it is the network of servers.

        Raises:
            InputError: neither region has it.
        """
        if source is None or target is None or source == target:
            return Link(round_trip=0.0, bandwidth=self.network_bandwidth, egress=0.0)
        given = self.regions[source].links.get(target) or self.regions[target].links.get(source)
        if given is None:
            raise InputError(f"regions.{source}.links.{target}: missing, all pairs need a link")
        return given

    def power_in(self, region: str | None) -> Power | None:
        """What servers of a region draw; None where it is not known.

        Raises:
            InputError: a region changes what is not there, or into what cannot be.
        """
        given = self.regions[region].power if region else {}
        if not given:
            return self.power
        if self.power is None:
            raise InputError(f"regions.{region}.power: found, but cluster.power is not")
        return validated(Power, {**dict(self.power), **given}, f"regions.{region}.power")

    def idle_watts(self, kind: ServerType) -> float:
        """W of a leased server on which nothing is at work; 0 where power is not known."""
        memory, power = kind.numa_nodes * kind.memory, self.power_in(kind.region)
        return power.idle_watts(kind.cores, memory) if power else 0.0

    @property
    def core_watts(self) -> float:
        """W that a core draws in addition while it is at work; 0 where power is not known.

        Where servers stand in regions, that of each may be different.
        """
        return self.power.core_watts if self.power else 0.0

    @property
    def carbon_differs(self) -> bool:
        """Whether the same energy emits more or less, by the hour or the region."""
        return self.power is not None and (bool(self.regions) or len(self.power.by_hour) > 1)

    @property
    def core_second_carbon(self) -> float:
        """gCO2e of a second of a core of reference speed where that emits least, but anything.

        All cores of its server are at work, and the intensity is the mean over its hours. Carbon is
        compared to it; 0 where power is not known.
        """
        grams = []
        for kind in self.present_types:
            if power := self.power_in(kind.region):
                watts = self.idle_watts(kind) / kind.cores + power.core_watts
                mean = sum(power.by_hour) / len(power.by_hour) * power.pue
                speed_ratio = self.single_core_speed / self.speed_of(kind)
                grams.append(watts / JOULES_PER_KWH * mean * speed_ratio)
        return min((each for each in grams if each > 0.0), default=0.0)

    @property
    def largest_node_memory(self) -> int:
        """MB of the largest NUMA node."""
        return max(kind.memory for kind in self.present_types)


def cluster_from_config(mapping: Mapping[str, Any], where: str) -> ClusterConfig:
    """The cluster that a `conf/cluster` file declares; a count of 0 drops a server type.

    Args:
        mapping: the composed group as plain containers; types in the order that breaks ties.
        where: the group or file, for errors.

    Raises:
        InputError: one line with `where`, the key, what is wrong and what is allowed.
    """
    cluster = validated(ClusterConfig, mapping, where)
    return replace(cluster, server_types=cluster.present_types)
