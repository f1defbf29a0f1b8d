"""What would happen: finish bounds of workflows, and the effect of placing the current function.

The finish bound of a workflow is the time it ends if nothing else is ever placed: the latest, over
its placed functions, of forecast completion + longest chain of best times behind it, and over its
submitted functions of now + upward rank. A forecast lets waiting containers start when completions
leave them enough memory, and takes other future arrivals for absent.
"""

from __future__ import annotations

import numpy as np

from env.base.jit import compiled, compiled_apart
from env.sim.events.lease import cold_start_time, lease_steps
from env.sim.events.per_use import use_price
from env.sim.events.placing import fill_container, transfer_between_regions
from env.sim.events.requests import container_start
from env.sim.forecast.play_node import demand_of, forecast_node, play_forward, raise_bound
from env.sim.node.fit import short_of, suits
from env.sim.node.projection import container_speed, fits_at, speed_share
from env.sim.queue.tracking import all_that_wait, parallel_cores
from env.sim.state.block import State
from env.sim.state.containers import declared_left
from env.sim.state.draws import is_taken
from env.sim.state.queue_records import USES
from env.sim.state.records import CANDIDATE, INF, NONE, SUBMITTED


@compiled
def take_finish_bounds(state: State, index: int) -> None:
    """Raises finish bounds by the containers of a list, `index` being its head."""
    containers, workflows = state.containers, state.workflows
    while index != NONE:
        bound = containers[index].forecast_completion + containers[index].chain_after
        slot = containers[index].slot
        workflows[slot].finish_bound = max(workflows[slot].finish_bound, bound)
        index = containers[index].next


@compiled
def raise_by_rank(state: State, submitted: int) -> None:
    """Raises the finish bound of the workflow of a function that is to be placed."""
    workflows, cluster = state.workflows, state.cluster
    slot = state.functions[submitted].slot
    rank = state.template_functions[state.functions[submitted].declared].upward_rank
    workflows[slot].finish_bound = max(workflows[slot].finish_bound, cluster[0].time + rank)


@compiled_apart
def update_finish_bounds(state: State) -> None:
    """Brings the finish bounds of all active workflows, and the sums over them, up to date."""
    cluster, workflows, nodes = state.cluster, state.workflows, state.nodes
    for position in range(cluster[0].tracked_count):
        workflows[state.tracked[position]].finish_bound = -INF
    for position in range(cluster[0].queue_size):
        raise_by_rank(state, state.submitted[position].index)
    if cluster[0].backing_off > 0:
        for function in range(len(state.functions)):
            submitted = state.functions[function].state == SUBMITTED
            if submitted and state.retried[function].backs_off == 1:
                raise_by_rank(state, function)
    slowdown = flow_times = cores = 0.0
    declared = state.queue[0].first_that_waits
    while declared != NONE:
        if state.waiting[declared].alone == 1:
            seconds, path, core = all_that_wait(state, declared)
            slowdown += seconds / path
            flow_times += seconds
            cores += core
        else:
            index = state.waiting[declared].first
            while index != NONE:
                raise_by_rank(state, index)
                index = state.requests[index].next
        declared = state.waiting[declared].next_that_waits
    for node in range(len(nodes)):
        if nodes[node].running_count > 0:
            if nodes[node].forecast == 0:
                forecast_node(state, node)
            take_finish_bounds(state, nodes[node].first_running)
            take_finish_bounds(state, nodes[node].first_waiting)
    for position in range(cluster[0].tracked_count):
        slot = state.tracked[position]
        template = state.templates[workflows[slot].template]
        flow_time = workflows[slot].finish_bound - workflows[slot].arrival_time
        slowdown += flow_time / template.critical_path
        flow_times += flow_time
        cores += parallel_cores(state, slot)
    cluster[0].active_slowdown = slowdown
    cluster[0].active_flow_time = flow_times
    cluster[0].parallel_cores = cores


@compiled_apart
def forecast(state: State, memory_alloc: int, candidates: np.ndarray) -> None:
    """Fills `candidates` (CANDIDATE, one a node) for the function in decision.

    Finish bounds have to be up to date (`update_finish_bounds`).
    """
    function = state.cluster[0].deciding
    sum_sources(state, function)
    containers = state.containers
    index = len(containers) - 1
    fill_container(state, index, function, memory_alloc, 0.0, 0.0)
    containers[index].remaining_computation = declared_left(state.functions, function)
    containers[index].demand = demand_of(containers[index])
    containers[index].next = NONE
    unrented = NONE  # the last node whose server has never been rented
    for node in range(len(state.nodes)):
        if are_twins(state, node, unrented):
            candidates[node] = candidates[unrented]
            candidates[node].twin = unrented
            continue
        forecast_candidate(state, index, node, candidates[node])
        candidates[node].twin = NONE
        if state.servers[state.nodes[node].server].expiration_time == -INF:
            unrented = node


@compiled
def are_twins(state: State, node: int, earlier: int):
    """Whether two nodes differ in their index alone: of one type, neither server ever rented.

    Nothing has run on such servers and no data is on them. One may be out of service. `earlier` may
    be NONE.
    """
    if earlier == NONE:
        return False
    server, other = state.nodes[node].server, state.nodes[earlier].server
    servers = state.servers
    leased = max(servers[server].expiration_time, servers[other].expiration_time) > -INF
    alike = servers[server].condition == servers[other].condition
    return alike and not leased and servers[server].type == servers[other].type


@compiled
def sum_sources(state: State, function: int) -> None:
    """Adds up the bytes that wait for a function, by the node and the server that hold them."""
    nodes, servers, cluster = state.nodes, state.servers, state.cluster
    cluster[0].source_bytes = 0.0
    for node in range(len(nodes)):
        nodes[node].source_bytes = 0.0
    for server in range(len(servers)):
        servers[server].source_bytes = 0.0
    declared = state.functions[function].declared
    first = function - state.functions[function].fn_id
    begin = state.template_functions[declared].first_predecessor
    certain = state.template_functions[declared].conditional == 0
    for edge in range(begin, begin + state.template_functions[declared].predecessor_count):
        source = state.functions[first + state.predecessors[edge].function].node
        if source == NONE or not (certain or is_taken(state, function, edge)):
            continue  # it was skipped, or did not call the function
        data_bytes = state.predecessors[edge].data_bytes
        nodes[source].source_bytes += data_bytes
        servers[nodes[source].server].source_bytes += data_bytes
        cluster[0].source_bytes += data_bytes


@compiled
def forecast_candidate(state: State, index: int, node: int, candidate) -> None:
    """What placing the container `index`, that of the current function, on `node` would do."""
    nodes, containers, cluster = state.nodes, state.containers, state.cluster
    time, function = cluster[0].time, cluster[0].deciding
    server = nodes[node].server
    memory_alloc = containers[index].memory_alloc
    end = state.servers[server].expiration_time
    cold = cold_start_time(state, server, time)
    near, around = nodes[node].source_bytes, state.servers[server].source_bytes
    transfer = (
        near / cluster[0].memory_bandwidth
        + (around - near) / cluster[0].numa_bandwidth
        + (cluster[0].source_bytes - around) / cluster[0].network_bandwidth
    )
    egress = 0.0
    if len(state.links) > 0:
        transfer, _, egress, _ = transfer_between_regions(state, function, node)
    clock = time + cold if cold > 0.0 else nodes[node].clock
    container_cold_start = container_start(state, function, node)
    creation = max(clock, time) + container_cold_start + transfer
    busy = nodes[node].running_count > 0
    last_before = nodes[node].forecast_last if busy else time
    candidate.feasible = 1 if suits(state, node, memory_alloc) else 0
    candidate.waits = 0
    candidate.cold_start_time = cold
    candidate.container_cold_start = container_cold_start
    candidate.data_transfer_time = transfer
    candidate.creation_time = creation
    candidate.delay_own = 0.0
    candidate.delay_others = 0.0
    candidate.later_ends = 0.0
    candidate.later_ends_tight = 0.0
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
    cpu, parallelism = nodes[node].cpu, containers[index].parallelism
    fits = short_of(state, node, function, memory_alloc, False) == NONE
    alone = fits and nodes[node].waiting_count == 0
    if alone and (nodes[node].parallelism + parallelism <= cpu or not busy):
        # Nobody shares a core and nobody waits: the others do not notice.
        share = speed_share(parallelism, cpu, nodes[node].single_core_speed)
        speed = container_speed(containers[index].memory_ratio, share, parallelism)
        finish = creation + containers[index].remaining_computation / speed
        last = max(last_before, finish)
        raised = raise_bound(state, index, finish, NONE)
    else:
        containers[index].creation_time = creation
        if not fits and not fits_at(state, node, function, memory_alloc, creation):
            candidate.waits = 1
        start = INF if candidate.waits == 1 else creation
        last, raised, later, tight = play_forward(state, node, index, start)
        candidate.later_ends = later
        candidate.later_ends_tight = tight
        finish = containers[index].forecast_completion
    measure_delays(state, containers[index].slot, raised, candidate)
    candidate.finish_time = finish
    begins = state.servers[server].expiration_time <= time
    steps = lease_steps(state, server, time, last, begins)
    # A server on which nothing runs is leased for nothing yet.
    before = lease_steps(state, server, time, last_before, begins) if busy else 0
    candidate.rent_increase = (steps - before) * state.servers[server].step_price + egress
    if state.options[0].meters & USES:  # as if it did not wait
        candidate.rent_increase += use_price(state, server, memory_alloc, finish - creation)
    candidate.lease_left_after = candidate.lease_left + steps * state.servers[server].lease_step


@compiled
def measure_delays(state: State, slot: int, raised: int, candidate) -> None:
    """Turns raised finish bounds into delays over critical paths, and clears them."""
    workflows = state.workflows
    while raised != NONE:
        growth = workflows[raised].raised_bound - workflows[raised].finish_bound
        growth /= state.templates[workflows[raised].template].critical_path
        workflows[raised].raised_bound = -INF
        if raised == slot:
            candidate.delay_own = growth
        else:
            candidate.delay_others += growth
        raised = workflows[raised].next_raised


def forecast_placements(state: State, memory_alloc: int) -> np.ndarray:
    """CANDIDATE (N,): what placing the current function with `memory_alloc` MB on each would do."""
    candidates = np.zeros(len(state.nodes), CANDIDATE)
    update_finish_bounds(state)
    forecast(state, memory_alloc, candidates)
    return candidates
