"""What the projection of a NUMA node says: its last completion, and its use at a time."""

from __future__ import annotations

import numpy as np

from env.base.jit import compiled, compiled_apart
from env.sim.node.cpu_by_tickets import (
    add_threads,
    begin_sharing,
    divide_cores,
    tenant_of,
    thread_speed,
)
from env.sim.node.projection import container_speed, project, speed_share, used_memory_at
from env.sim.state.block import State
from env.sim.state.records import INF, NONE


@compiled
def completion_bound(state: State, node: int):
    """A time that no running container of the node can outlast.

    Every container at the speed it has when all share the node at once, and one operation lost
    to rounding at each event.
    """
    nodes, containers = state.nodes, state.containers
    if state.options[0].cpu_by_tickets == 1:
        return INF  # who shares with whom is looked at in the projection
    parallelism = nodes[node].parallelism
    share = speed_share(parallelism, nodes[node].cpu, nodes[node].single_core_speed)
    lost = 2 * nodes[node].running_count + 1
    bound = -INF
    index = nodes[node].first_running
    while index != NONE:
        ratio = containers[index].memory_ratio
        speed = container_speed(ratio, share, containers[index].parallelism)
        start = max(nodes[node].clock, containers[index].start_time)
        bound = max(bound, start + (containers[index].remaining_computation + lost) / speed)
        index = containers[index].next
    return bound


@compiled
def last_completion(state: State, node: int):
    """Time of the last projected completion, -inf if nothing runs."""
    if state.nodes[node].projected == 0:
        project(state, node, True)
    return state.nodes[node].last_completion if state.nodes[node].running_count > 0 else -INF


@compiled
def status_at(state: State, node: int, time: float):
    """Projected use of a node at a time that is not before its clock.

    Returns:
        (cpu utilisation, memory utilisation, load, total parallelism, free memory in MB).
    """
    nodes, containers = state.nodes, state.containers
    used = used_memory_at(state, node, time)
    parallelism = 0
    index = nodes[node].first_running
    while index != NONE:
        if containers[index].start_time <= time < containers[index].completion_time:
            parallelism += containers[index].parallelism
        index = containers[index].next
    share = speed_share(parallelism, nodes[node].cpu, nodes[node].single_core_speed)
    by_tickets = state.options[0].cpu_by_tickets == 1
    if by_tickets:
        share_at(state, node, time)
    speed = 0
    index = nodes[node].first_running
    while index != NONE:
        if containers[index].start_time <= time < containers[index].completion_time:
            if by_tickets:
                share = thread_speed(state, tenant_of(state, index))
            ratio = containers[index].memory_ratio
            speed += container_speed(ratio, share, containers[index].parallelism)
        index = containers[index].next
    return (
        speed / nodes[node].computing_capacity,
        used / nodes[node].memory,
        parallelism / nodes[node].cpu,
        parallelism,
        nodes[node].memory - used,
    )


@compiled_apart
def share_at(state: State, node: int, time: float) -> None:
    """Divides the cores of a node among those that run there at a time, by the projection."""
    containers = state.containers
    begin_sharing(state)
    index = state.nodes[node].first_running
    while index != NONE:
        if containers[index].start_time <= time < containers[index].completion_time:
            add_threads(state, tenant_of(state, index), containers[index].parallelism)
        index = containers[index].next
    divide_cores(state, state.nodes[node].cpu, state.nodes[node].single_core_speed)


def tenants_of(state: State, wf_ids: np.ndarray) -> np.ndarray:
    """(C,) whose some workflows are, which have arrived and whose records are not recycled."""
    tenants: np.ndarray = state.workflows["tenant"][state.slot_of[wf_ids]]
    return tenants


def thread_speeds(
    state: State, tenants: np.ndarray, threads: np.ndarray, cpu: int, core_speed: int
) -> np.ndarray:
    """int64 (C,), operations per second of each thread of containers that share a node.

    Args:
        state: of an episode.
        tenants: (C,), whose each is; of no matter where all threads share alike.
        threads: (C,).
        cpu: cores of the node.
        core_speed: operations per second of one.
    """
    if state.options[0]["cpu_by_tickets"] == 0:
        return np.full(len(threads), speed_share(threads.sum(), cpu, core_speed))
    begin_sharing(state)
    for tenant, count in zip(tenants.tolist(), threads.tolist(), strict=True):
        add_threads(state, tenant, count)
    divide_cores(state, cpu, core_speed)
    return np.array([thread_speed(state, tenant) for tenant in tenants.tolist()], np.int64)
