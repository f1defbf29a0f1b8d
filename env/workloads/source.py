"""Where episodes come from: workflows that arrive by a process, or requests of a trace."""

from collections.abc import Mapping
from typing import Any

from env.base.schema import validated
from env.sim.declared.hardware import ClusterConfig
from env.workloads.generator import WorkloadConfig, WorkloadGenerator
from env.workloads.templates import WorkflowConfig
from env.workloads.traces.trace_samples import TraceConfig, TraceGenerator

WorkloadSource = WorkloadGenerator | TraceGenerator


def is_trace(workload: Mapping[str, Any]) -> bool:
    """Whether a group `workload` describes a trace."""
    return "source" in workload


def is_funded(workload: Mapping[str, Any]) -> bool:
    """Whether the tenants of a group `workload` hold tickets."""
    tenants = workload.get("tenants")
    if not isinstance(tenants, Mapping):
        return tenants is not None
    return any(isinstance(tenant, Mapping) and "tickets" in tenant for tenant in tenants.values())


def funded_tenants(workload: Mapping[str, Any]) -> tuple[str, ...]:
    """The tenants of a group `workload` that hold tickets; none of a trace: episodes differ."""
    if is_trace(workload) or not is_funded(workload):
        return ()
    return tuple(workload["tenants"])


def workload_source(
    workflow: Mapping[str, Any], workload: Mapping[str, Any], cluster: ClusterConfig, seed: int
) -> WorkloadSource:
    """What a configuration says arrives; the seed takes the place of that in `workload`.

    Raises:
        InputError: a group does not validate, or what it says cannot be made.
    """
    speed = cluster.single_core_speed
    seeded = {**workload, "seed": seed}
    if is_trace(workload):
        return TraceGenerator(validated(TraceConfig, seeded, "workload"), speed)
    workflows = validated(WorkflowConfig, workflow, "workflow")
    return WorkloadGenerator(workflows, validated(WorkloadConfig, seeded, "workload"), speed)
