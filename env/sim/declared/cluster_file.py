"""Clusters in files: a `conf/cluster` file, and the cluster part of an episode file.

Field names carry their units.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, Field

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
    """`server_count` equal servers, each of equal NUMA nodes; a count of 0 drops the type.

    A field is called as that of `ServerType`, in the file by its alias.
    """

    count: Count = Field(alias="server_count")
    hourly_rate: Rate
    cold_start_latency: Seconds
    numa_nodes: PerServer = Field(alias="numa_nodes_per_server")
    cpu: Cores = Field(alias="cores_per_numa_node")
    memory: Memory = Field(alias="memory_mb_per_numa_node")
    single_core_speed: Positive | None = Field(None, alias="single_core_speed_ops_per_s")
    resources: NamedResources | None = Field(None, alias="resources_per_numa_node")


class NamedServerTypeModel(ServerTypeModel):
    """A server type in a list, so with its name inside."""

    name: Name


class _Hardware(Strict):
    """A field is called as that of `ClusterConfig`, in the file by its alias."""

    single_core_speed: Positive = Field(alias="single_core_speed_ops_per_s")
    memory_bandwidth: Bandwidth = Field(alias="same_node_bandwidth_bytes_per_s")
    numa_bandwidth: Bandwidth = Field(alias="between_nodes_of_one_server_bandwidth_bytes_per_s")
    network_bandwidth: Bandwidth = Field(alias="between_servers_bandwidth_bytes_per_s")
    power: Power | None = None
    cpu_share: CpuShare | None = None

    def _config(self, named_types: Iterable[tuple[str, ServerTypeModel]]) -> ClusterConfig:
        types = tuple(
            ServerType(**{"name": name, **dict(declared), "resources": declared.resources or {}})
            for name, declared in named_types
            if declared.count
        )
        shared = self.cpu_share or "equal"
        return ClusterConfig(**{**dict(self), "server_types": types, "cpu_share": shared})


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
        types = [
            _by_alias(NamedServerTypeModel, {**vars(kind), "resources": kind.resources or None})
            for kind in config.server_types
        ]
        shared = config.cpu_share if config.cpu_share != "equal" else None
        own = {**vars(config), "server_types": types, "cpu_share": shared}
        return cls.model_validate(_by_alias(cls, own))


class ClusterGroupModel(_Hardware):
    """A `conf/cluster` file: server types by name, so that one key can be overridden."""

    server_types: Annotated[dict[Name, ServerTypeModel], Field(min_length=1)]
    cpu_share: CpuShare = "equal"  # episode files may leave it out; here null is refused


def _by_alias(model: type[BaseModel], values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of the fields of a model, by the keys that they have in a file."""
    return {field.alias or name: values[name] for name, field in model.model_fields.items()}


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
