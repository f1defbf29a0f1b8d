"""The event loop where functions are placed at once.

`advance` plays events until a decision is due, `place` carries one out.
"""

from __future__ import annotations

from env.sim.containers import give_back_container, memory_ratio, take_container
from env.sim.jit import compiled
from env.sim.lease import (
    server_on_container_completion,
    server_on_container_creation,
    startup_at,
)
from env.sim.projection import last_completion, status_at
from env.sim.records import DONE, INF, NO_CONTAINER_SLOT, NONE, PLACE
from env.sim.submissions import declared, finish_function, fire_timer, get, run_function
from env.sim.tournament import earliest_node


@compiled
def advance(state):
    """Plays events until a decision is due: completions first, then timers, then decisions.

    Returns:
        PLACE (of the function `deciding`), DONE, or a negative error code.
    """
    cluster = state.cluster
    while True:
        completion = state.nodes[earliest_node(state)].next_completion
        timer = state.timers[0].time if cluster[0].timers_size > 0 else INF
        decision = state.queue[0].time if cluster[0].queue_size > 0 else INF
        if completion < INF and completion <= timer and completion <= decision:
            cluster[0].time = completion
            complete_next(state)
        elif cluster[0].timers_size > 0 and timer <= decision:
            cluster[0].time = timer
            error = fire_timer(state)
            if error < 0:
                return error
        elif cluster[0].queue_size > 0:
            cluster[0].time = decision
            cluster[0].deciding = state.queue[0].index
            return PLACE
        else:
            return DONE


@compiled
def complete_next(state):
    """The container that ends first in the cluster, and its function, come to their end."""
    index = cluster_on_container_completion(state)
    function, time = state.containers[index].function, state.containers[index].completion_time
    count = state.log[0].completed_count
    state.completed[count].time = time
    state.completed[count].major = state.containers[index].wf_id
    state.completed[count].minor = state.containers[index].fn_id
    state.log[0].completed_count = count + 1
    finish_function(state, function, time)
    give_back_container(state, index)


@compiled
def chain_after(state, function):
    """Seconds of the longest chain of best times behind a function."""
    known = state.template_functions[declared(state, function)]
    return known.upward_rank - known.best_time


@compiled
def fill_container(state, index, function, memory_alloc, remaining, transfer, creation):
    """Makes an unused container record that of a submitted function."""
    containers, functions = state.containers, state.functions
    containers[index].wf_id = functions[function].wf_id
    containers[index].fn_id = functions[function].fn_id
    containers[index].function = function
    containers[index].slot = function // state.cluster[0].functions_per_slot
    containers[index].chain_after = chain_after(state, function)
    containers[index].memory_req = functions[function].memory_req
    containers[index].memory_alloc = memory_alloc
    containers[index].memory_ratio = memory_ratio(memory_alloc, functions[function].memory_req)
    containers[index].computation = functions[function].computation
    containers[index].remaining_computation = remaining
    containers[index].parallelism = functions[function].parallelism
    containers[index].submission_time = functions[function].submission_time
    containers[index].data_transfer_time = transfer
    containers[index].creation_time = creation


@compiled
def transfer_seconds(state, function, node):
    """Seconds to move all predecessors' data to a node, added in ascending function id (rule 3)."""
    known = declared(state, function)
    first = function - state.functions[function].fn_id
    begin = state.template_functions[known].first_predecessor
    seconds = 0.0
    for edge in range(begin, begin + state.template_functions[known].predecessor_count):
        source = state.functions[first + state.predecessors[edge].function].node
        seconds += state.predecessors[edge].data_bytes / transfer_speed(state, source, node)
    return seconds


@compiled
def place(state, node, memory_alloc):
    """Places the function in decision on a node with `memory_alloc` MB.

    Returns:
        0 or a negative error code.
    """
    log, functions = state.log, state.functions
    index = take_container(state)
    if index == NONE:
        return NO_CONTAINER_SLOT
    function = get(state)
    time = functions[function].submission_time
    server = state.nodes[node].server
    log[0].rent = 0.0
    log[0].completed_count = 0
    log[0].wf_id = functions[function].wf_id
    log[0].fn_id = functions[function].fn_id
    log[0].submission_time = time
    log[0].cold_start_time = startup_at(state, server, time)
    log[0].data_transfer_time = transfer_seconds(state, function, node)
    log[0].creation_time = max(state.nodes[node].clock, time) + log[0].data_transfer_time
    fill_container(
        state,
        index,
        function,
        memory_alloc,
        functions[function].computation,
        log[0].data_transfer_time,
        log[0].creation_time,
    )
    run_function(state, function, node, memory_alloc, log[0].creation_time)
    server_on_container_creation(state, node, index, time)
    state.cluster[0].decisions += 1
    return 0


@compiled
def step(state, node, memory_alloc):
    """Status of the chosen node, then `place`, then `advance`.

    Returns:
        (what `advance` returns, status of the node before, times to its first and last completion).
    """
    time = state.cluster[0].time
    status = status_at(state, node, time)
    first = last = 0.0
    if state.nodes[node].running_count > 0:
        first = state.nodes[node].next_completion - time
        last = last_completion(state, node) - time
    kind = place(state, node, memory_alloc)
    if kind == 0:
        kind = advance(state)
    return kind, status, first, last


@compiled
def transfer_speed(state, source, target):
    """Bytes/s between two NUMA nodes: within one, within one server, between servers."""
    if source == target:
        return state.cluster[0].memory_bandwidth
    if state.nodes[source].server == state.nodes[target].server:
        return state.cluster[0].numa_bandwidth
    return state.cluster[0].network_bandwidth


@compiled
def cluster_on_container_completion(state):
    """Completes the container that ends first in the whole cluster; returns it."""
    return server_on_container_completion(state, earliest_node(state))
