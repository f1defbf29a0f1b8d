"""What a composed configuration says of the world, asked by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from env.workloads.source import is_funded, is_trace

Told = Mapping[str, Any]
"""A composed configuration in plain containers."""
TRUTH: Final = {
    **dict.fromkeys(("false", "f", "no", "n", "off"), False),
    **dict.fromkeys(("true", "t", "yes", "y", "on"), True),
}
"""Words that settings take for false and true."""


def at(told: Told, key: str) -> Any:
    """The value of a dotted key, None where there is none."""
    value: Any = told
    for name in key.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return meant(value)


def meant(value: Any) -> Any:
    """A value as the settings will take it: words of numbers and of truth are what they say."""
    if isinstance(value, list):
        return [meant(each) for each in value]
    if not isinstance(value, str):
        return value
    try:
        return float(value)
    except ValueError:
        return TRUTH.get(value.lower(), value)


def queued(told: Told) -> bool:
    """Whether functions wait in a central queue."""
    return at(told, "dispatch.kind") == "queued"


def leased(told: Told) -> bool:
    """Whether servers are paid."""
    return not (at(told, "lease.kind") == "always" and not at(told, "lease.charged"))


def plain_world(told: Told) -> bool:
    """Whether functions are placed at once, leases are hourly and containers end with functions."""
    hourly = at(told, "lease.kind") == "hourly" and at(told, "lease.step") == 3600.0
    cold = at(told, "keep_alive.policy") != "none" or at(told, "workload.container_cold_start") != 0
    return not queued(told) and hourly and not cold and not of_trace(told)


def tickets_count(told: Told) -> bool:
    """Whether tenants that hold tickets wait in one queue, or share cores by them."""
    shared = queued(told) or at(told, "cluster.cpu_share") == "tickets"
    return shared and is_funded(told["workload"])


def by_workflows(told: Told) -> bool:
    """Whether a baseline, as far as its name tells, goes by workflows within a tenant."""
    named = str(at(told, "baselines"))
    return any(part in named for part in ("workflows", ".yaml", ".yml", ".py"))


def splits_currencies(told: Told) -> bool:
    """Whether agents split the currencies of tenants."""
    return at(told, "agents.layout") == "tenants"


def of_trace(told: Told) -> bool:
    """Whether requests of single functions arrive."""
    return is_trace(told["workload"])


def from_files(told: Told) -> bool:
    """Whether workflows are read from files."""
    return at(told, "workflow.path") is not None


def written(told: Told) -> bool:
    """Whether all workflows are written into the configuration, function by function."""
    return not from_files(told) and all("functions" in entry for entry in _mix(told))


def without_files(told: Told) -> bool:
    """Whether no workflow is read from a file."""
    return not from_files(told) and all(entry.get("path") is None for entry in _mix(told))


def stated(told: Told, field: str) -> bool:
    """Whether all functions that are written into the configuration state a field."""
    functions = [entry["functions"] for entry in _mix(told) if "functions" in entry]
    each = [one.values() if isinstance(one, Mapping) else one for one in functions]
    return written(told) and all(
        function.get(field) is not None for those in each for function in those
    )


def one_node_servers(told: Told) -> bool:
    """Whether no server has a second NUMA node."""
    types = (at(told, "cluster.server_types") or {}).values()
    return all(at(kind, "numa_nodes_per_server") == 1 for kind in types)


def nobody_expected(told: Told) -> bool:
    """Whether the greedy score of the observations expects no further use of a server."""
    return at(told, "agents.score.arrival_use") == at(told, "agents.score.known_use") == 0


def first_difference(
    one: Mapping[str, Any], other: Mapping[str, Any], prefix: str = ""
) -> tuple[str, Any, Any] | None:
    """The first key, dotted, at which two trees differ, and both values; None if they are equal."""
    for key in dict.fromkeys((*one, *other)):
        mine, theirs = one.get(key), other.get(key)
        if isinstance(mine, Mapping) and isinstance(theirs, Mapping):
            inner = first_difference(mine, theirs, f"{prefix}{key}.")
            if inner is not None:
                return inner
        elif mine != theirs:
            return f"{prefix}{key}", mine, theirs
    return None


def _mix(told: Told) -> list[Mapping[str, Any]]:
    return [entry for entry in (at(told, "workflow.mix") or {}).values() if entry is not None]
