"""What would happen: finish bounds of workflows, and the effect of placing the current function.

The finish bound of a workflow is the time it ends if nothing else is ever placed: the latest, over
its placed functions, of forecast completion + longest chain of best times behind it, and over its
submitted functions of now + upward rank. A forecast lets waiting containers start when completions
leave them enough memory, and takes other future arrivals for absent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from env.sim.jit import compiled
from env.sim.numa_node import (
    container_speed,
    fits_at,
    gather,
    run_projection,
    speed_share,
    write_entry,
)
from env.sim.raw_env import chain_after
from env.sim.records import CANDIDATE, NONE
from env.sim.server import HOUR, cold_start_time, lease_hours
from env.sim.workload import declared

if TYPE_CHECKING:
    from env.sim.raw_env import RawEnv

INF = np.inf


@compiled
def gather_waiting(state, node, count):
    """Appends a node's waiting containers to `count` entries of the scratch; returns the total."""
    index = state.nodes[node].first_waiting
    while index != NONE:
        write_entry(state.scratch, count, state.containers, index)
        count += 1
        index = state.containers[index].next
    return count


@compiled
def forecast_node(state, node):
    """Brings `forecast_completion` of all containers of a node up to date."""
    nodes = state.nodes
    running = gather(state, node)
    total = gather_waiting(state, node, running)
    _, _, last = run_projection(
        state.scratch,
        running,
        total,
        nodes[node].clock,
        nodes[node].cpu,
        nodes[node].single_core_speed,
        nodes[node].memory,
        False,
    )
    for i in range(total):
        index = state.scratch[i].container
        state.containers[index].forecast_completion = state.scratch[i].completion
    nodes[node].forecast_last = last
    nodes[node].forecast = 1


@compiled
def raise_bounds(state, index):
    """Raises finish bounds by the containers of a list, `index` being its head."""
    containers, workflows = state.containers, state.workflows
    while index != NONE:
        bound = containers[index].forecast_completion + containers[index].chain_after
        slot = containers[index].slot
        if bound > workflows[slot].finish_bound:
            workflows[slot].finish_bound = bound
        index = containers[index].next


@compiled
def update_finish_bounds(state):
    """Brings the finish bounds of all active workflows, and `active_slowdown`, up to date."""
    cluster, workflows, nodes = state.cluster, state.workflows, state.nodes
    for slot in range(len(workflows)):
        workflows[slot].finish_bound = -INF
    for position in range(cluster[0].queue_size):
        function = state.queue[position].index
        rank = state.template_functions[declared(state, function)].upward_rank
        slot = function // cluster[0].functions_per_slot
        bound = cluster[0].time + rank
        if bound > workflows[slot].finish_bound:
            workflows[slot].finish_bound = bound
    for node in range(len(nodes)):
        if nodes[node].running_count > 0:
            if nodes[node].forecast == 0:
                forecast_node(state, node)
            raise_bounds(state, nodes[node].first_running)
            raise_bounds(state, nodes[node].first_waiting)
    slowdown = 0.0
    for slot in range(len(workflows)):
        if workflows[slot].finish_bound > -INF:
            flow_time = workflows[slot].finish_bound - workflows[slot].arrival_time
            slowdown += flow_time / state.templates[workflows[slot].template].critical_path
    cluster[0].active_slowdown = slowdown


@compiled
def forecast(state, memory_alloc, candidates):
    """Fills `candidates` (CANDIDATE, one a node) for the function at the head of the queue.

    Finish bounds have to be up to date (`update_finish_bounds`).
    """
    function = state.queue[0].index
    sum_sources(state, function)
    after = chain_after(state, function)
    for node in range(len(state.nodes)):
        forecast_candidate(state, function, after, node, memory_alloc, candidates[node])


@compiled
def sum_sources(state, function):
    """Adds up the bytes that wait for a function, by the node and the server that hold them."""
    nodes, servers, cluster = state.nodes, state.servers, state.cluster
    cluster[0].source_bytes = 0.0
    for node in range(len(nodes)):
        nodes[node].source_bytes = 0.0
    for server in range(len(servers)):
        servers[server].source_bytes = 0.0
    known = declared(state, function)
    first = function - state.functions[function].fn_id
    begin = state.template_functions[known].first_predecessor
    for edge in range(begin, begin + state.template_functions[known].predecessor_count):
        source = state.functions[first + state.predecessors[edge].function].node
        data_bytes = state.predecessors[edge].data_bytes
        nodes[source].source_bytes += data_bytes
        servers[nodes[source].server].source_bytes += data_bytes
        cluster[0].source_bytes += data_bytes


@compiled
def forecast_candidate(state, function, after, node, memory_alloc, candidate):
    """What placing `function` on `node` with `memory_alloc` MB would do.

    `after` is the longest chain of best times behind the function.
    """
    nodes, functions, cluster = state.nodes, state.functions, state.cluster
    time = cluster[0].time
    server = nodes[node].server
    end = state.servers[server].expiration_time
    cold = cold_start_time(state, server, time)
    near, around = nodes[node].source_bytes, state.servers[server].source_bytes
    transfer = (
        near / cluster[0].memory_bandwidth
        + (around - near) / cluster[0].numa_bandwidth
        + (cluster[0].source_bytes - around) / cluster[0].network_bandwidth
    )
    clock = time + cold if cold > 0.0 else nodes[node].clock
    creation = max(clock, time) + transfer
    busy = nodes[node].running_count > 0
    last_before = nodes[node].forecast_last if busy else time
    candidate.feasible = 1 if memory_alloc <= nodes[node].memory else 0
    candidate.waits = 0
    candidate.cold_start_time = cold
    candidate.data_transfer_time = transfer
    candidate.creation_time = creation
    candidate.delay_own = 0.0
    candidate.delay_others = 0.0
    candidate.lease_left = max(0.0, end - time)
    candidate.allocated_memory = nodes[node].allocated_memory + nodes[node].waiting_memory
    candidate.parallelism = nodes[node].parallelism
    candidate.first_completion = nodes[node].next_completion - time if busy else 0.0
    candidate.last_completion = last_before - time
    if candidate.feasible == 0:
        candidate.finish_time = INF
        candidate.rent_increase = 0.0
        candidate.lease_left_after = candidate.lease_left
        return
    cpu, core_speed = nodes[node].cpu, nodes[node].single_core_speed
    ratio = min(1.0, memory_alloc / functions[function].memory_req)
    own = functions[function].parallelism
    fits = candidate.allocated_memory + memory_alloc <= nodes[node].memory
    if fits and (nodes[node].parallelism + own <= cpu or not busy):
        # Nobody shares a core and nobody waits: the others do not notice.
        speed = container_speed(ratio, speed_share(own, cpu, core_speed), own)
        finish = creation + functions[function].computation / speed
        last = max(last_before, finish)
        workflow = state.workflows[function // cluster[0].functions_per_slot]
        growth = max(0.0, finish + after - workflow.finish_bound)
        candidate.delay_own = growth / state.templates[workflow.template].critical_path
    else:
        finish, last = forecast_shared(
            state, function, after, node, memory_alloc, clock, creation, ratio, candidate
        )
    candidate.finish_time = finish
    hours = lease_hours(end, time, last)
    more_hours = hours - lease_hours(end, time, last_before)
    candidate.rent_increase = more_hours * state.servers[server].hourly_rate
    candidate.lease_left_after = candidate.lease_left + hours * HOUR


@compiled
def forecast_shared(
    state, function, after, node, memory_alloc, clock, creation, ratio, candidate
):
    """Projects a node with the function added.

    Returns:
        (finish time of the function, last completion on the node); delays go into `candidate`.
    """
    nodes, scratch = state.nodes, state.scratch
    fits = fits_at(state, node, memory_alloc, creation)
    running = gather(state, node)
    if fits:
        position = running  # admitted before those that wait
        running += 1
        total = gather_waiting(state, node, running)
        scratch[position].start = creation
    else:
        candidate.waits = 1
        position = gather_waiting(state, node, running)
        total = position + 1
        scratch[position].start = INF
    scratch[position].container = NONE
    scratch[position].completion = INF
    scratch[position].remaining = state.functions[function].computation
    scratch[position].parallelism = state.functions[function].parallelism
    scratch[position].memory = memory_alloc
    scratch[position].ratio = ratio
    scratch[position].creation = creation
    scratch[position].speed = 0
    _, _, last = run_projection(
        scratch,
        running,
        total,
        clock,
        nodes[node].cpu,
        nodes[node].single_core_speed,
        nodes[node].memory,
        False,
    )
    measure_delays(state, function, after, total, candidate)
    return scratch[position].completion, last


@compiled
def measure_delays(state, function, after, total, candidate):
    """Growth of finish bounds under the projection in the scratch, by workflow."""
    scratch, workflows, containers = state.scratch, state.workflows, state.containers
    own_slot = function // state.cluster[0].functions_per_slot
    for i in range(total):
        index = scratch[i].container
        slot = own_slot if index == NONE else containers[index].slot
        chain = after if index == NONE else containers[index].chain_after
        bound = scratch[i].completion + chain
        if bound > workflows[slot].raised_bound:
            workflows[slot].raised_bound = bound
    for i in range(total):
        index = scratch[i].container
        slot = own_slot if index == NONE else containers[index].slot
        growth = workflows[slot].raised_bound - workflows[slot].finish_bound
        workflows[slot].raised_bound = -INF
        if growth > 0.0:
            growth /= state.templates[workflows[slot].template].critical_path
            if slot == own_slot:
                candidate.delay_own = growth
            else:
                candidate.delay_others += growth


def forecast_placements(env: RawEnv, memory_alloc: int) -> np.ndarray:
    """CANDIDATE (N,): what placing the current function with `memory_alloc` MB would do, by node."""
    candidates = np.zeros(len(env.state.nodes), CANDIDATE)
    update_finish_bounds(env.state)
    forecast(env.state, memory_alloc, candidates)
    return candidates
