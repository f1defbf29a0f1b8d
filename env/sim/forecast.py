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
from env.sim.raw_env import transfer_seconds
from env.sim.records import CANDIDATE, NONE
from env.sim.server import cold_start_time, lease_hours
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
def chain_after(state, function):
    """Seconds of the longest chain of best times behind a function."""
    known = state.template_functions[declared(state, function)]
    return known.upward_rank - known.best_time


@compiled
def raise_bounds(state, index):
    """Raises finish bounds by the containers of a list, `index` being its head."""
    containers, workflows = state.containers, state.workflows
    per_slot = state.cluster[0].functions_per_slot
    while index != NONE:
        function = containers[index].function
        bound = containers[index].forecast_completion + chain_after(state, function)
        slot = function // per_slot
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
    for node in range(len(state.nodes)):
        forecast_candidate(state, function, node, memory_alloc, candidates)


@compiled
def forecast_candidate(state, function, node, memory_alloc, candidates):
    """What placing `function` on `node` with `memory_alloc` MB would do."""
    nodes, functions, scratch = state.nodes, state.functions, state.scratch
    time = state.cluster[0].time
    server = nodes[node].server
    end = state.servers[server].expiration_time
    candidate = candidates[node]
    cold = cold_start_time(state, server, time)
    transfer = transfer_seconds(state, function, node)
    clock = time + cold if cold > 0.0 else nodes[node].clock
    creation = max(clock, time) + transfer
    busy = nodes[node].running_count > 0
    last_before = nodes[node].forecast_last if busy else time
    candidate.feasible = 1 if memory_alloc <= nodes[node].memory else 0
    candidate.waits = 0
    candidate.cold_start_time = cold
    candidate.data_transfer_time = transfer
    candidate.creation_time = creation
    candidate.lease_left = max(0.0, end - time)
    candidate.first_completion = nodes[node].next_completion - time if busy else 0.0
    candidate.last_completion = last_before - time
    running = gather(state, node)
    total = gather_waiting(state, node, running)
    allocated = 0
    parallelism = 0
    for i in range(total):
        allocated += scratch[i].memory
        parallelism += scratch[i].parallelism
    candidate.allocated_memory = allocated
    candidate.parallelism = parallelism
    if candidate.feasible == 0:
        candidate.finish_time = INF
        candidate.rent_increase = 0.0
        candidate.delay_own = 0.0
        candidate.delay_others = 0.0
        candidate.lease_left_after = candidate.lease_left
        return
    cpu, core_speed = nodes[node].cpu, nodes[node].single_core_speed
    ratio = min(1.0, memory_alloc / functions[function].memory_req)
    own = functions[function].parallelism
    per_slot = state.cluster[0].functions_per_slot
    candidate.delay_others = 0.0
    if parallelism + own <= max(cpu, own) and allocated + memory_alloc <= nodes[node].memory:
        # Nobody shares a core and nobody waits: the others do not notice.
        speed = container_speed(ratio, speed_share(own, cpu, core_speed), own)
        finish = creation + functions[function].computation / speed
        last = max(last_before, finish)
        slot = function // per_slot
        bound = finish + chain_after(state, function)
        growth = max(0.0, bound - state.workflows[slot].finish_bound)
        critical_path = state.templates[state.workflows[slot].template].critical_path
        candidate.delay_own = growth / critical_path
    else:
        if fits_at(state, node, memory_alloc, creation):
            position = running  # before those that wait
            running = gather(state, node)
            gather_waiting(state, node, running + 1)
            running += 1
            scratch[position].start = creation
        else:
            position = total
            candidate.waits = 1
            running = gather(state, node)
            gather_waiting(state, node, running)
            scratch[position].start = INF
        scratch[position].container = NONE
        scratch[position].completion = INF
        scratch[position].remaining = functions[function].computation
        scratch[position].parallelism = own
        scratch[position].memory = memory_alloc
        scratch[position].ratio = ratio
        scratch[position].creation = creation
        total += 1
        _, _, last = run_projection(
            scratch, running, total, clock, cpu, core_speed, nodes[node].memory, False
        )
        finish = scratch[position].completion
        measure_delays(state, function, total, candidate)
    candidate.finish_time = finish
    hours = lease_hours(end, time, last) - lease_hours(end, time, last_before)
    candidate.rent_increase = hours * state.servers[server].hourly_rate
    lease_after = end
    if last > end:
        lease_after = max(time, end) + lease_hours(end, time, last) * 3600.0
    candidate.lease_left_after = lease_after - time


@compiled
def measure_delays(state, function, total, candidate):
    """Growth of finish bounds under the projection in the scratch, by workflow."""
    scratch, workflows = state.scratch, state.workflows
    per_slot = state.cluster[0].functions_per_slot
    own_slot = function // per_slot
    for i in range(total):
        placed = function
        if scratch[i].container != NONE:
            placed = state.containers[scratch[i].container].function
        slot = placed // per_slot
        bound = scratch[i].completion + chain_after(state, placed)
        if bound > workflows[slot].raised_bound:
            workflows[slot].raised_bound = bound
    candidate.delay_own = 0.0
    for i in range(total):
        placed = function
        if scratch[i].container != NONE:
            placed = state.containers[scratch[i].container].function
        slot = placed // per_slot
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
