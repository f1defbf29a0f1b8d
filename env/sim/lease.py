"""Servers are leased by the hour and start cold."""

from __future__ import annotations

import math

import numpy as np

from env.sim.jit import compiled
from env.sim.projection import (
    completion_bound,
    last_completion,
    node_on_container_completion,
    node_on_container_creation,
    node_on_server_startup,
)

HOUR = 3600.0


@compiled
def cold_start_time(state, server, time):
    """Seconds a placement at `time` has to wait for the server: 0 while its lease runs (rule 2)."""
    if state.servers[server].expiration_time <= time:
        return state.servers[server].cold_start_latency
    return 0.0


@compiled
def startup_at(state, server, time):
    """Starts the server if its lease is over; returns the cold start latency paid."""
    if state.servers[server].expiration_time > time:
        return 0.0
    latency = state.servers[server].cold_start_latency
    first = state.servers[server].first_node
    for node in range(first, first + state.servers[server].node_count):
        node_on_server_startup(state, node, time + latency)
    state.cluster[0].cold_starts += 1
    return latency


@compiled
def lease_hours(expiration_time, time, last):
    """Whole hours to add at `time` so that the lease covers `last` (rule 9)."""
    if last <= expiration_time:
        return 0
    return math.ceil((last - max(time, expiration_time)) / HOUR)


@compiled
def renew_lease_at(state, server, node, time):
    """Extends the lease to the last projected completion after a change on `node` (rule 9)."""
    servers = state.servers
    end = servers[server].expiration_time
    if end == np.inf:
        return
    # The lease covers all other nodes already; a safe bound often spares the projection.
    if completion_bound(state, node) <= end:
        return
    hours = lease_hours(end, time, last_completion(state, node))
    if hours > 0:
        rent = hours * servers[server].hourly_rate
        servers[server].expiration_time = max(time, end) + hours * HOUR
        servers[server].hours_rented += hours
        servers[server].rent += rent
        state.cluster[0].total_rent += rent
        state.log[0].rent += rent


@compiled
def server_on_container_creation(state, node, index, time):
    """Creates a container on a node of a started server; `time` is its submission."""
    server = state.nodes[node].server
    state.servers[server].container_count += 1
    node_on_container_creation(state, node, index)
    renew_lease_at(state, server, node, time)


@compiled
def server_on_container_completion(state, node):
    """Completes the first container of a node; returns it."""
    server = state.nodes[node].server
    time = state.nodes[node].next_completion
    state.servers[server].container_count -= 1
    waiting = state.nodes[node].waiting_count
    index = node_on_container_completion(state, node)
    # If nobody was admitted, all goes on as projected, and the lease covers that.
    if state.nodes[node].waiting_count < waiting:
        renew_lease_at(state, server, node, time)
    return index


@compiled
def reset_server(state, server):
    """A server without a lease."""
    state.servers[server].expiration_time = -np.inf
    state.servers[server].hours_rented = 0
    state.servers[server].rent = 0.0
    state.servers[server].container_count = 0
