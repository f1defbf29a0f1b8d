"""The kind of decision `scaler`: one server of a type more, or fewer, or as many as there are.

Who scales is asked about every server type at each tick of the world (`Autoscale` in
env/sim/declared/rules.py), and after `more` once again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from env.base.jit import compiled, compiled_apart, places
from env.learn.observation import LOG_20, LOG_150, clip, copy, log_of, log_seconds, server_threads
from env.sim.declared.aside import DecisionKind
from env.sim.declared.hardware import ClusterConfig
from env.sim.events.endings import bring_back, retire
from env.sim.events.engine import stands_still
from env.sim.node.fit import any_holds, need_of, short_of
from env.sim.state.block import State
from env.sim.state.records import DOWN, DRAINING, IN_SERVICE, INF, NONE, SUBMITTED

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
    "waiting",  # functions that wait for a server, or centrally, and which the type holds; log
    "waiting_threads",  # of them / cores of all servers of the type, log
    "waiting_memory",  # the same of memory, log
    "core_price",  # cheapest price of a core-second / price here, 0 to 1
    "launch_delay",  # seconds, log
)
FEATURE: Final = places(FEATURES)


@compiled
def due(state: State, after: int):
    """The first type of which there can be more or fewer, or again the one that got one more."""
    again = state.cluster[0].again
    state.cluster[0].again = 0
    if again == 1 and next_to_join(state, after) != NONE:
        return after
    for kind in range(after + 1, state.servers[len(state.servers) - 1].type + 1):
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
    row, servers, up, server = rows[SAME], 0, 0, NONE
    for each in range(len(state.servers)):
        record = state.servers[each]
        if record.type == kind:
            servers, server = servers + 1, each
            row[FEATURE.draining] += record.condition == DRAINING
        if record.type == kind and record.condition == IN_SERVICE:
            up += 1
            row[FEATURE.launching] += record.ready_time > state.cluster[0].time
            row[FEATURE.idle] += record.container_count == 0
            row[FEATURE.threads] += server_threads(state, each)
            for node in range(record.first_node, record.first_node + record.node_count):
                held = state.nodes[node].allocated_memory + state.nodes[node].waiting_memory
                row[FEATURE.memory] += held
    like, count = state.nodes[state.servers[server].first_node], state.servers[server].node_count
    must_join = see_waiting(state, kind, state.servers[server].first_node, row)
    row[FEATURE.in_service] = up
    row[FEATURE.threads] /= max(1, up) * count * like.cpu
    row[FEATURE.memory] /= max(1, up) * count * like.memory
    for feature in range(FEATURE.in_service, FEATURE.draining + 1):
        row[feature] /= servers
    row[FEATURE.waiting_threads] /= servers * count * like.cpu
    row[FEATURE.waiting_memory] /= servers * count * like.memory
    for feature in range(FEATURE.waiting, FEATURE.waiting_memory + 1):
        row[feature] = log_of(row[feature])
    row[FEATURE.servers] = log_of(servers) / LOG_20
    row[FEATURE.waiting] /= LOG_150
    price = like.core_second_price
    row[FEATURE.core_price] = state.cluster[0].core_second_price / price if price > 0.0 else 1.0
    row[FEATURE.launch_delay] = log_seconds(state.servers[server].cold_start_latency)
    clip(row)
    for change in (FEWER, MORE):
        copy(row, rows[change])
        rows[change, FEATURE.change] = change - SAME
    mask[FEWER] = not must_join and next_to_leave(state, kind) != NONE
    mask[SAME] = not must_join
    mask[MORE] = next_to_join(state, kind) != NONE


@compiled
def see_waiting(state: State, kind: int, node: int, row: np.ndarray) -> bool:
    """Counts functions that wait, if a node such as this one holds them.

    Returns whether all stands still until the type gets a server.
    """
    still, joins = stands_still(state), False
    for function in range(len(state.functions)):
        if state.functions[function].state != SUBMITTED:
            continue
        memory = need_of(state, function)
        if short_of(state, node, function, memory, True) == NONE:
            row[FEATURE.waiting] += 1
            row[FEATURE.waiting_threads] += state.functions[function].parallelism
            row[FEATURE.waiting_memory] += memory
            if still and not any_holds(state, function, memory):
                joins = joins or last_that_holds(state, function, memory) == kind
    return joins


@compiled
def last_that_holds(state: State, function: int, memory: int):
    """The last server type that holds a function."""
    server = len(state.servers) - 1
    while short_of(state, state.servers[server].first_node, function, memory, True) != NONE:
        server -= 1
    return state.servers[server].type


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
            threads = server_threads(state, server)
            if best == NONE or threads <= fewest:
                best, fewest = server, threads
    return best


SCALER: Final = DecisionKind("scaler", FEATURES, 3, due, fill, apply, ticks=True)


def scaler_of(cluster: ClusterConfig) -> DecisionKind:
    """The kind with an agent for each server type."""
    return replace(SCALER, subjects=tuple(kind.name for kind in cluster.server_types))
