"""What really happens: events with times of their own, which override what was projected.

Where `play` lets come true what is projected, here the caller reports what came true. The records
stay those of the engine. An event at its projected time changes what `play` would change, bit for
bit. What is late stays where it is and is projected to come at any moment; what is early comes now.
"""

from __future__ import annotations

import numpy as np

from env.base.jit import compiled, compiled_apart
from env.sim.events.endings import complete_next, end_completed, take_off
from env.sim.events.lease import extend_lease, renew_lease_at
from env.sim.node.projection import admit, gather, play_until, project, stop_waiting
from env.sim.state.block import State
from env.sim.state.records import INF, NONE
from env.sim.state.timers import update_tree


@compiled_apart
def pass_time(state: State, time: float, up: np.ndarray, started: np.ndarray, all_reported: bool):
    """The present becomes `time`, and what was projected for earlier has not happened yet.

    Args:
        state: of a cluster in which all that has happened before `time` has been reported.
        time: seconds, not before the present.
        up: bool (S,), servers that are reported up.
        started: bool (slots * F,), functions that are reported started.
        all_reported: whether what has ended at `time` itself has been reported, too.
    """
    state.cluster[0].time = time
    for server in range(len(state.servers)):
        if state.servers[server].container_count == 0:
            continue
        if not up[server]:
            if state.servers[server].ready_time < time:
                finish_startup(state, server, time)
            continue
        first = state.servers[server].first_node
        for node in range(first, first + state.servers[server].node_count):
            if is_late(state, node, time, started, all_reported):
                hold_back(state, node, time, started)


@compiled
def is_late(state: State, node: int, time: float, started: np.ndarray, all_reported: bool) -> bool:
    """Whether a start or a completion on a node should have come; arguments as for `pass_time`."""
    containers, completion = state.containers, state.nodes[node].next_completion
    if completion < time or (completion == time and all_reported):
        return True
    index = state.nodes[node].first_running
    while index != NONE:
        if containers[index].start_time < time and not started[containers[index].function]:
            return True
        index = containers[index].next
    return False


@compiled_apart
def hold_back(state: State, node: int, time: float, started: np.ndarray) -> None:
    """Plays a node up to `time`: who has started has an operation left, who has not starts now."""
    containers, scratch, nodes = state.containers, state.scratch, state.nodes
    count = gather(state, node)
    for i in range(count):
        if not started[containers[scratch[i].container].function]:
            scratch[i].start = INF
    play_until(state, node, count, time)
    for i in range(count):
        index = scratch[i].container
        if scratch[i].start < INF:
            containers[index].remaining_computation = max(1, scratch[i].remaining)
        else:
            start_at(state, index, max(time, containers[index].start_time))
    nodes[node].clock = time
    reproject(state, node)


@compiled
def start_at(state: State, index: int, time: float) -> None:
    """An admitted container starts at another time than projected."""
    state.containers[index].start_time = time
    state.functions[state.containers[index].function].start_time = time


@compiled
def reproject(state: State, node: int) -> None:
    """A node has changed: its projection, and the lease that covers it."""
    server = state.nodes[node].server
    state.nodes[node].projected = 0
    state.nodes[node].forecast = 0
    project(state, node, False)
    update_tree(state, node)
    # The server has been up all along: a lease that had ended goes on where it ended.
    renew_lease_at(state, server, node, state.servers[server].expiration_time)


@compiled_apart
def finish_startup(state: State, server: int, time: float) -> None:
    """The cold start of a server ends at `time`; the data of all containers comes after that."""
    containers, nodes = state.containers, state.nodes
    state.servers[server].ready_time = time
    first = state.servers[server].first_node
    for node in range(first, first + state.servers[server].node_count):
        nodes[node].clock = time
        for head in (nodes[node].first_running, nodes[node].first_waiting):
            index = head
            while index != NONE:
                creation = time + containers[index].data_transfer_time
                containers[index].creation_time = creation
                state.functions[containers[index].function].creation_time = creation
                if not np.isnan(containers[index].start_time):
                    start_at(state, index, creation)
                index = containers[index].next
        if nodes[node].running_count > 0:
            reproject(state, node)


@compiled_apart
def server_is_up(state: State, server: int, time: float) -> None:
    """A server that was starting is up. One that nobody has started is leased from now on."""
    if state.servers[server].expiration_time <= time:
        extend_lease(state, server, NONE, time, 1)
        finish_startup(state, server, time)
    elif state.servers[server].ready_time != time:
        finish_startup(state, server, time)


@compiled
def container_of(state: State, function: int):
    """The container of a function that has been placed."""
    node = state.functions[function].node
    for head in (state.nodes[node].first_running, state.nodes[node].first_waiting):
        index = head
        while index != NONE:
            if state.containers[index].function == function:
                return index
            index = state.containers[index].next
    return NONE


@compiled_apart
def start_function(state: State, function: int, time: float) -> None:
    """A function that has been placed starts now, even if it was to wait for memory or data."""
    containers = state.containers
    index, node = container_of(state, function), state.functions[function].node
    if containers[index].start_time == time:
        return
    creation = min(time, containers[index].creation_time)
    containers[index].creation_time = state.functions[function].creation_time = creation
    if np.isnan(containers[index].start_time):
        stop_waiting(state, node, index)
        admit(state, node, index, time)
    else:
        start_at(state, index, time)
    reproject(state, node)


@compiled_apart
def finish_function(state: State, function: int, time: float) -> None:
    """A function that has started ends now, whatever work it was projected to have left."""
    index, node = container_of(state, function), state.functions[function].node
    if state.nodes[node].next_container == index and state.nodes[node].next_completion == time:
        complete_next(state, node)
        return
    take_off(state, index)
    state.containers[index].completion_time = time
    state.containers[index].remaining_computation = 0
    end_completed(state, index)
