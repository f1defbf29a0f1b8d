"""The kind of decision `scaler`: one server of a type more, or fewer, or as many as there are.

Who scales is asked about every server type at each tick of the world (`Autoscale` in
env/sim/declared/rules.py), and after `more` once again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from env.base.jit import compiled, compiled_apart, places
from env.learn.observation import LOG_20, LOG_150, clip, copy, log_of, log_seconds
from env.sim.declared.aside import DecisionKind
from env.sim.declared.hardware import ClusterConfig
from env.sim.events.endings import bring_back, retire
from env.sim.node.fit import any_holds, need_of, short_of
from env.sim.state.block import State
from env.sim.state.records import DOWN, DRAINING, IN_SERVICE, INF, NONE
from env.sim.state.tournament import earliest_node

FEWER, SAME, MORE = range(3)
FEATURES: Final = (
    "change",  # of this row: -1, 0 or 1 server
    "servers",  # of the type, log
    "in_service",  # share of them, as are the next
    "launching",  # in service, but not up yet
    "idle",  # in service, and nothing is on them
    "draining",
    "threads",  # of containers on servers in service / their cores
    "memory",  # that these hold or wait for / memory of these servers
    "waiting",  # functions that have no memory yet, and which the type holds; log
    "waiting_threads",  # of them / cores of all servers of the type, log
    "waiting_memory",  # the same of memory, log
    "core_price",  # cheapest price of a core-second / price here, 0 to 1
    "launch_delay",  # seconds, log
)
FEATURE: Final = places(FEATURES)


@compiled
def due(state: State, after: int):
    """The first type of which there can be more or fewer, or again the one that got one more."""
    first = after if state.cluster[0].again == 1 else after + 1
    state.cluster[0].again = 0
    for kind in range(first, state.servers[len(state.servers) - 1].type + 1):
        if next_to_join(state, kind) != NONE or next_to_leave(state, kind) != NONE:
            return kind
    return NONE


@compiled
def apply(state: State, kind: int, row: int) -> None:
    """A server joins, or one leaves: at once if nothing is on it, else when it is empty."""
    if row == MORE:
        bring_back(state, next_to_join(state, kind))
        state.cluster[0].again = 1
    elif row == FEWER:
        retire(state, next_to_leave(state, kind), INF)


@compiled_apart
def fill(state: State, kind: int, rows: np.ndarray, mask: np.ndarray) -> None:
    """The features of each row, and which may be chosen."""
    row, cores, memory, servers, node = rows[SAME], 0, 0, 0, NONE
    for server in range(len(state.servers)):
        record = state.servers[server]
        if record.type != kind:
            continue
        servers += 1
        node = record.first_node
        row[FEATURE.draining] += record.condition == DRAINING
        if record.condition == IN_SERVICE:
            row[FEATURE.in_service] += 1
            row[FEATURE.launching] += record.ready_time > state.cluster[0].time
            row[FEATURE.idle] += record.container_count == 0
            for each in range(node, node + record.node_count):
                cores += state.nodes[each].cpu
                memory += state.nodes[each].memory
                held = state.nodes[each].allocated_memory + state.nodes[each].waiting_memory
                row[FEATURE.memory] += held
                row[FEATURE.threads] += state.nodes[each].parallelism
    row[FEATURE.threads] /= max(1, cores)
    row[FEATURE.memory] /= max(1, memory)
    for feature in range(FEATURE.in_service, FEATURE.draining + 1):
        row[feature] /= servers
    stands_still = state.nodes[earliest_node(state)].next_completion == INF
    stands_still = stands_still and state.cluster[0].arrivals_left == 0
    must_join = False
    for place in range(state.cluster[0].queue_size):
        function = state.submitted[place].index
        note_waiting(state, node, function, 1, row)
        must_join |= stands_still and joins_last_for(state, kind, function)
    declared = state.queue[0].first_that_waits if state.options[0].queued == 1 else NONE
    while declared != NONE:
        function = state.waiting[declared].first
        note_waiting(state, node, function, state.waiting[declared].count, row)
        must_join |= stands_still and joins_last_for(state, kind, function)
        declared = state.waiting[declared].next_that_waits
    for each in range(len(state.nodes)):
        index = state.nodes[each].first_waiting
        while index != NONE:
            note_waiting(state, node, state.containers[index].function, 1, row)
            index = state.containers[index].next
    nodes = servers * state.servers[state.nodes[node].server].node_count
    row[FEATURE.servers] = log_of(servers) / LOG_20
    row[FEATURE.waiting] = log_of(row[FEATURE.waiting]) / LOG_150
    row[FEATURE.waiting_threads] = log_of(
        row[FEATURE.waiting_threads] / (nodes * state.nodes[node].cpu)
    )
    row[FEATURE.waiting_memory] = log_of(
        row[FEATURE.waiting_memory] / (nodes * state.nodes[node].memory)
    )
    price = state.nodes[node].core_second_price
    row[FEATURE.core_price] = state.cluster[0].core_second_price / price if price > 0.0 else 1.0
    latency = state.servers[state.nodes[node].server].cold_start_latency
    row[FEATURE.launch_delay] = log_seconds(latency)
    clip(row)
    for change in (FEWER, MORE):
        copy(row, rows[change])
        rows[change, FEATURE.change] = change - SAME
    mask[FEWER] = not must_join and next_to_leave(state, kind) != NONE
    mask[SAME] = not must_join
    mask[MORE] = next_to_join(state, kind) != NONE


@compiled
def memory_of(state: State, function: int):
    """MB that a function asks for."""
    if state.options[0].queued == 1:
        return need_of(state, function)
    return state.functions[function].memory_req


@compiled
def note_waiting(state: State, node: int, function: int, count: int, row: np.ndarray) -> None:
    """Counts functions that wait, if a node such as this one holds them."""
    memory = memory_of(state, function)
    if short_of(state, node, function, memory, True) == NONE:
        row[FEATURE.waiting] += count
        row[FEATURE.waiting_threads] += count * state.functions[function].parallelism
        row[FEATURE.waiting_memory] += count * memory


@compiled
def joins_last_for(state: State, kind: int, function: int) -> bool:
    """Whether no server in service holds a function, and this is the last type that can."""
    memory, last = memory_of(state, function), NONE
    if any_holds(state, function, memory):
        return False
    for server in range(len(state.servers)):
        node = state.servers[server].first_node
        if short_of(state, node, function, memory, True) == NONE:
            last = state.servers[server].type
    return last == kind


@compiled
def next_to_join(state: State, kind: int):
    """The server that `more` brings into service: one that drains before one that is down."""
    best, lowest = NONE, DOWN + 1
    for server in range(len(state.servers)):
        condition = state.servers[server].condition
        if state.servers[server].type == kind and IN_SERVICE < condition < lowest:
            best, lowest = server, condition
    return best


@compiled
def next_to_leave(state: State, kind: int):
    """The server that `fewer` retires: of those with the fewest threads the last one.

    Servers that are there from the start stay.
    """
    best, fewest = NONE, 0
    for server in range(len(state.servers)):
        record = state.servers[server]
        if record.type == kind and record.condition == IN_SERVICE and record.absent == 1:
            threads = 0
            for node in range(record.first_node, record.first_node + record.node_count):
                threads += state.nodes[node].parallelism
            if best == NONE or threads <= fewest:
                best, fewest = server, threads
    return best


SCALER: Final = DecisionKind("scaler", FEATURES, 3, due, fill, apply, ticks=True)


def scaler_of(cluster: ClusterConfig) -> DecisionKind:
    """The kind with an agent for each server type."""
    return replace(SCALER, subjects=tuple(kind.name for kind in cluster.server_types))
