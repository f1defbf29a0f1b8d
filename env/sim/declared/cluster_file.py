"""Clusters in files: a `conf/cluster` file, and the cluster part of an episode file.

Field names carry their units.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import Field

from env.base.errors import located
from env.base.schema import Strict, nothing_or, validated
from env.sim.declared.bounds import (
    LARGEST_BANDWIDTH,
    LARGEST_MEMORY,
    LARGEST_RATE,
    LARGEST_WHOLE,
    LEAST_BANDWIDTH,
    LEAST_RATE,
    LONGEST,
    MOST_CORES,
    MOST_NODES_OF_A_SERVER,
    MOST_SERVERS,
)
from env.sim.declared.hardware import ClusterConfig, CpuShare, ServerType
from env.sim.declared.power import Power
from env.sim.declared.resources import NamedResources

Name = Annotated[str, Field(min_length=1)]
Whole = Annotated[int, Field(strict=True, ge=0, le=LARGEST_WHOLE)]
Positive = Annotated[int, Field(strict=True, ge=1, le=LARGEST_WHOLE)]
Seconds = Annotated[float, Field(strict=True, ge=0, le=LONGEST)]
Count = Annotated[int, Field(strict=True, ge=0, le=MOST_SERVERS)]
PerServer = Annotated[int, Field(strict=True, ge=1, le=MOST_NODES_OF_A_SERVER)]
Cores = Annotated[int, Field(strict=True, ge=1, le=MOST_CORES)]
Memory = Annotated[int, Field(strict=True, ge=1, le=LARGEST_MEMORY)]
Bandwidth = Annotated[float, Field(strict=True, ge=LEAST_BANDWIDTH, le=LARGEST_BANDWIDTH)]

Rate = Annotated[float, Field(strict=True, ge=0, le=LARGEST_RATE), nothing_or(LEAST_RATE)]


class ServerTypeModel(Strict):
    """`server_count` equal servers, each of equal NUMA nodes; a count of 0 drops the type."""

    server_count: Count
    hourly_rate: Rate
    cold_start_latency: Seconds
    numa_nodes_per_server: PerServer
    cores_per_numa_node: Cores
    memory_mb_per_numa_node: Memory
    single_core_speed_ops_per_s: Positive | None = None
    resources_per_numa_node: NamedResources | None = None

    def server_type(self, name: str) -> ServerType:
        """The same as the simulator takes it."""
        return ServerType(
            name=name,
            count=self.server_count,
            hourly_rate=self.hourly_rate,
            cold_start_latency=self.cold_start_latency,
            numa_nodes=self.numa_nodes_per_server,
            cpu=self.cores_per_numa_node,
            memory=self.memory_mb_per_numa_node,
            single_core_speed=self.single_core_speed_ops_per_s,
            resources=self.resources_per_numa_node or {},
        )


class NamedServerTypeModel(ServerTypeModel):
    """A server type in a list, so with its name inside."""

    name: Name


class _Hardware(Strict):
    single_core_speed_ops_per_s: Positive
    same_node_bandwidth_bytes_per_s: Bandwidth
    between_nodes_of_one_server_bandwidth_bytes_per_s: Bandwidth
    between_servers_bandwidth_bytes_per_s: Bandwidth
    power: Power | None = None
    cpu_share: CpuShare | None = None

    def _config(self, named_types: Iterable[tuple[str, ServerTypeModel]]) -> ClusterConfig:
        return ClusterConfig(
            single_core_speed=self.single_core_speed_ops_per_s,
            memory_bandwidth=self.same_node_bandwidth_bytes_per_s,
            numa_bandwidth=self.between_nodes_of_one_server_bandwidth_bytes_per_s,
            network_bandwidth=self.between_servers_bandwidth_bytes_per_s,
            server_types=tuple(
                declared.server_type(name)
                for name, declared in named_types
                if declared.server_count
            ),
            power=self.power,
            cpu_share=self.cpu_share or "equal",
        )


class ClusterModel(_Hardware):
    """The cluster of an episode file: server types as a list."""

    server_types: Annotated[tuple[NamedServerTypeModel, ...], Field(min_length=1)]

    def cluster_config(self) -> ClusterConfig:
        """The same as the simulator takes it.

        Raises:
            InputError: no server, or a type declared twice.
        """
        with located("cluster"):
            return self._config((declared.name, declared) for declared in self.server_types)

    @classmethod
    def of(cls, config: ClusterConfig) -> "ClusterModel":
        """The file's form of `config`."""
        return cls(
            single_core_speed_ops_per_s=config.single_core_speed,
            same_node_bandwidth_bytes_per_s=float(config.memory_bandwidth),
            between_nodes_of_one_server_bandwidth_bytes_per_s=float(config.numa_bandwidth),
            between_servers_bandwidth_bytes_per_s=float(config.network_bandwidth),
            server_types=tuple(
                NamedServerTypeModel(
                    name=declared.name,
                    server_count=declared.count,
                    hourly_rate=float(declared.hourly_rate),
                    cold_start_latency=float(declared.cold_start_latency),
                    numa_nodes_per_server=declared.numa_nodes,
                    cores_per_numa_node=declared.cpu,
                    memory_mb_per_numa_node=declared.memory,
                    single_core_speed_ops_per_s=declared.single_core_speed,
                    resources_per_numa_node=dict(declared.resources) or None,
                )
                for declared in config.server_types
            ),
            power=config.power,
            cpu_share=config.cpu_share if config.cpu_share != "equal" else None,
        )


class ClusterGroupModel(_Hardware):
    """A `conf/cluster` file: server types by name, so that one key can be overridden."""

    server_types: Annotated[dict[Name, ServerTypeModel], Field(min_length=1)]
    cpu_share: CpuShare = "equal"  # episode files may leave it out; here null is refused


def cluster_from_config(mapping: Mapping[str, Any], where: str) -> ClusterConfig:
    """The cluster that a `conf/cluster` file declares.

    Args:
        mapping: the composed group as plain containers; types in the order that breaks ties.
        where: the group or file, for errors.

    Raises:
        InputError: one line with `where`, the key, what was found and what is allowed.
    """
    declared = validated(ClusterGroupModel, mapping, where)
    with located(where):
        return declared._config(declared.server_types.items())
