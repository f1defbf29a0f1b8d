"""A function gets a container on a NUMA node: cold starts, data, memory, lease."""

from __future__ import annotations

from env.base.jit import compiled, compiled_apart
from env.sim.events.carbon import mean_intensity
from env.sim.events.lease import account_of, renew_lease_at, startup_at
from env.sim.events.requests import start_request
from env.sim.events.submissions import get, run_function
from env.sim.node.projection import node_on_container_creation
from env.sim.queue.central_queue import BY_WORKFLOW, leave_queue
from env.sim.queue.sharing import note_start
from env.sim.queue.workflow_tickets import charge_workflow
from env.sim.state.block import State
from env.sim.state.containers import memory_ratio, take_container
from env.sim.state.draws import is_taken
from env.sim.state.history import note_dispatch
from env.sim.state.records import INF, NO_CONTAINER_SLOT, NONE, SLICE_END
from env.sim.state.timers import set_timer


@compiled
def transfer_speed(state: State, source: int, target: int):
    """Bytes/s between two NUMA nodes: within one, within one server, between servers."""
    if source == target:
        return state.cluster[0].memory_bandwidth
    if state.nodes[source].server == state.nodes[target].server:
        return state.cluster[0].numa_bandwidth
    return state.cluster[0].network_bandwidth


@compiled
def transfer(state: State, function: int, node: int):
    """What it takes to move all predecessors' data to a node (rule 3), where there are no regions.

    A predecessor that was skipped, or did not call the function, left none.

    Returns:
        (seconds, added in ascending function id; bytes that come from other servers).
    """
    nodes = state.nodes
    declared = state.functions[function].declared
    first = function - state.functions[function].fn_id
    begin = state.template_functions[declared].first_predecessor
    certain = state.template_functions[declared].conditional == 0
    seconds = egress = 0.0
    for edge in range(begin, begin + state.template_functions[declared].predecessor_count):
        source = state.functions[first + state.predecessors[edge].function].node
        if source != NONE and (certain or is_taken(state, function, edge)):
            data_bytes = state.predecessors[edge].data_bytes
            seconds += data_bytes / transfer_speed(state, source, node)
            if nodes[source].server != nodes[node].server:
                egress += data_bytes
    return seconds, egress


@compiled_apart
def transfer_between_regions(state: State, function: int, node: int):
    """As `transfer`, where there are regions.

    Data come one after another, from now on as far as carbon is concerned. A function without
    predecessors is called from `home`.

    Returns:
        (seconds, bytes that come from other servers, USD of egress, gCO2e).
    """
    nodes, servers, regions = state.nodes, state.servers, len(state.regions)
    time, region = state.cluster[0].time, servers[nodes[node].server].region
    declared = state.functions[function].declared
    first = function - state.functions[function].fn_id
    edges = state.template_functions[declared].first_predecessor
    count = state.template_functions[declared].predecessor_count
    certain = state.template_functions[declared].conditional == 0
    seconds = egress = rent = grams = 0.0
    if count == 0:
        seconds = state.links[state.cluster[0].home * regions + region].round_trip
    for edge in range(edges, edges + count):
        source = state.functions[first + state.predecessors[edge].function].node
        if source == NONE or not (certain or is_taken(state, function, edge)):
            continue
        data_bytes = state.predecessors[edge].data_bytes
        leaves = nodes[source].server != nodes[node].server
        egress += data_bytes if leaves else 0
        if not leaves:
            seconds += data_bytes / transfer_speed(state, source, node)
            continue
        origin = servers[nodes[source].server].region
        link = state.links[origin * regions + region]
        begin = time + seconds
        seconds += link.round_trip
        seconds += data_bytes / link.bandwidth
        rent += data_bytes * link.egress
        if origin != region:
            both = mean_intensity(state, origin, begin, time + seconds)
            both += mean_intensity(state, region, begin, time + seconds)
            grams += data_bytes * state.cluster[0].transfer_kwh * both / 2
    return seconds, egress, rent, grams


@compiled_apart
def pay_between_regions(state: State, account: int, function: int, node: int):
    """Enters a transfer into the ledger; returns (seconds, bytes that come from other servers)."""
    seconds, egress, rent, grams = transfer_between_regions(state, function, node)
    state.ledger[account].egress += rent
    state.ledger[account].carbon += grams
    state.cluster[0].total_rent += rent
    state.log[0].rent += rent
    return seconds, egress


@compiled
def fill_container(state: State, index, function, memory_alloc, seconds, creation) -> None:
    """Makes an unused container record that of a submitted function."""
    containers, functions = state.containers, state.functions
    declared = state.template_functions[functions[function].declared]
    containers[index].wf_id = functions[function].wf_id
    containers[index].fn_id = functions[function].fn_id
    containers[index].function = function
    containers[index].slot = state.functions[function].slot
    containers[index].chain_after = declared.upward_rank - declared.best_time
    containers[index].memory_req = functions[function].memory_req
    containers[index].memory_alloc = memory_alloc
    containers[index].memory_ratio = memory_ratio(memory_alloc, functions[function].memory_req)
    containers[index].computation = functions[function].computation
    containers[index].remaining_computation = functions[function].remaining_computation
    containers[index].parallelism = functions[function].parallelism
    containers[index].submission_time = functions[function].submission_time
    containers[index].data_transfer_time = seconds
    containers[index].creation_time = creation


@compiled_apart
def place(state: State, node: int, memory_alloc: int):
    """Places the function in decision on a node with `memory_alloc` MB.

    Returns:
        0 or a negative error code.
    """
    log, functions, cluster = state.log, state.functions, state.cluster
    index = take_container(state)
    if index == NONE:
        return NO_CONTAINER_SLOT
    function = cluster[0].deciding
    time = cluster[0].time
    server = state.nodes[node].server
    cold_start = 0.0
    log[0].rent = 0.0
    log[0].completed_count = 0
    log[0].wf_id = functions[function].wf_id
    log[0].fn_id = functions[function].fn_id
    log[0].submission_time = functions[function].submission_time
    log[0].cold_start_time = startup_at(state, server, time)
    tenant = state.workflows[state.functions[function].slot].tenant
    account = account_of(state, server, tenant)
    if len(state.links) > 0:
        log[0].data_transfer_time, egress = pay_between_regions(state, account, function, node)
    else:
        log[0].data_transfer_time, egress = transfer(state, function, node)
    if state.options[0].queued == 1:
        if len(state.tenants) > 0:
            note_start(state, tenant, function, node, memory_alloc)
            if state.options[0].order == BY_WORKFLOW:
                charge_workflow(state, state.functions[function].slot, function)
        leave_queue(state, state.functions[function].declared)
    else:
        get(state, function)
    startup, seconds = log[0].cold_start_time, log[0].data_transfer_time
    number = cluster[0].decisions
    if len(state.images) > 0:
        cold_start = start_request(state, function, node)
        number = state.requests[function].run
    creation = max(state.nodes[node].clock, time) + cold_start + seconds
    log[0].creation_time = creation
    state.ledger[account].egress_bytes += egress
    fill_container(state, index, function, memory_alloc, seconds, creation)
    state.containers[index].dispatch = number
    if cluster[0].listens == 1:
        note_dispatch(state, index, node, startup, cold_start, seconds)
    run_function(state, function, node, memory_alloc, creation)
    state.servers[server].container_count += 1
    node_on_container_creation(state, node, index)
    renew_lease_at(state, server, node, time)
    if state.options[0].time_slice < INF:
        due = creation + state.options[0].time_slice
        set_timer(state, due, SLICE_END, state.requests[function].run, index)
    cluster[0].decisions += 1
    return 0
