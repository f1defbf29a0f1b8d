"""Servers are leased in whole steps, by the hour by default, and start cold."""

from __future__ import annotations

import math

import numpy as np

from env.base.jit import compiled
from env.sim.events.carbon import lease_carbon
from env.sim.node.node_status import completion_bound, last_completion
from env.sim.state.block import State
from env.sim.state.history import note_lease
from env.sim.state.records import IN_SERVICE, LEASE_END, LEDGER, NONE
from env.sim.state.timers import set_timer

NOTHING_SPENT = np.zeros(1, LEDGER)


@compiled
def cold_start_time(state: State, server: int, time: float):
    """Seconds a placement at `time` has to wait for the server: 0 while its lease runs (rule 2)."""
    if state.servers[server].expiration_time <= time:
        return state.servers[server].cold_start_latency
    return 0.0


@compiled
def startup_at(state: State, server: int, time: float):
    """Starts the server if its lease is over; returns the cold start latency paid."""
    if state.servers[server].expiration_time > time:
        return 0.0
    start(state, server, time)
    # Even work that takes no time a late clock could tell begins a lease.
    state.servers[server].expiration_time = -np.inf
    return state.servers[server].cold_start_latency


@compiled
def start(state: State, server: int, time: float) -> None:
    """A server that is empty is up after its cold start."""
    ready = time + state.servers[server].cold_start_latency
    first = state.servers[server].first_node
    for node in range(first, first + state.servers[server].node_count):
        state.nodes[node].clock = ready
    state.servers[server].ready_time = ready
    state.cluster[0].cold_starts += 1


@compiled
def lease_steps(state: State, server: int, time: float, last: float, begins: bool):
    """Whole steps to add at `time` so that the lease covers `last` (rule 9).

    Where a lease `begins` they are as many as have to be paid at least.
    """
    end, step = state.servers[server].expiration_time, state.servers[server].lease_step
    if last <= end:
        return 0
    begin = max(time, end)
    least = state.servers[server].least_steps if begins else 1
    steps = max(least, math.ceil((last - begin) / step))
    # Rounded, that many may end just before what they are to cover.
    return steps + 1 if begin + steps * step < last else steps


@compiled
def account_of(state: State, server: int, tenant: int):
    """Row of the ledger."""
    return server * (len(state.ledger) // len(state.servers)) + tenant


@compiled
def extend_lease(state: State, server: int, tenant: int, time: float, steps: int) -> None:
    """Adds whole steps to a lease at the expense of a tenant, or, with NONE, of all alike."""
    servers = state.servers
    seconds = steps * servers[server].lease_step
    rent = steps * servers[server].step_price
    starts = 1 if servers[server].expiration_time == -np.inf else 0
    begin = max(time, servers[server].expiration_time)
    servers[server].expiration_time = begin + seconds
    if starts == 1:
        servers[server].lease_begin = begin
        for account in range(account_of(state, server, 0), account_of(state, server + 1, 0)):
            state.ledger[account].earlier_seconds = state.ledger[account].lease_seconds
    note_lease(state, server, starts, begin, begin + seconds, rent)
    servers[server].lease_number += 1
    charge(state, server, tenant, begin, seconds, rent)
    state.cluster[0].total_rent += rent
    state.log[0].rent += rent
    if state.options[0].watch_leases == 1:
        number = servers[server].lease_number
        set_timer(state, servers[server].expiration_time, LEASE_END, server, number)


@compiled
def charge(state: State, server, tenant, begin: float, seconds: float, rent: float) -> None:
    """Enters lease time of a server, its rent and its electricity into the ledger.

    At the expense of a tenant, or, with NONE, of all alike.
    """
    tenants = len(state.ledger) // len(state.servers)
    first, count = (0, tenants) if tenant == NONE else (tenant, 1)
    grams = lease_carbon(state, server, begin, begin + seconds)
    for payer in range(first, first + count):
        account = account_of(state, server, payer)
        state.ledger[account].lease_seconds += seconds / count
        state.ledger[account].rent += rent / count
        state.ledger[account].energy += seconds / count * state.servers[server].watts
        state.ledger[account].carbon += grams / count


@compiled
def renew_lease_at(state: State, server: int, node: int, time: float) -> None:
    """Extends the lease to the last projected completion after a change on `node` (rule 9).

    The tenant of the container that ends last pays.
    """
    end = state.servers[server].expiration_time
    if end == np.inf:
        return
    # The lease covers all other nodes already; a safe bound often spares the projection.
    if completion_bound(state, node) <= end:
        return
    steps = lease_steps(state, server, time, last_completion(state, node), end == -np.inf)
    if steps > 0:
        extend_lease(state, server, tenant_of_last(state, node), time, steps)


@compiled
def tenant_of_last(state: State, node: int):
    """Whose container completes last on a node that is projected."""
    containers = state.containers
    last = index = state.nodes[node].first_running
    while index != NONE:
        if containers[index].completion_time > containers[last].completion_time:
            last = index
        index = containers[index].next
    return state.workflows[containers[last].slot].tenant


@compiled
def reset_server(state: State, server: int) -> None:
    """A server at time 0: without a lease, or up where all servers are."""
    state.servers[server].condition = IN_SERVICE
    state.servers[server].retires = state.servers[server].follow_up = 0
    state.servers[server].ready_time = -np.inf
    state.servers[server].expiration_time = -np.inf
    state.servers[server].lease_number = 0
    state.servers[server].container_count = 0
    for account in range(account_of(state, server, 0), account_of(state, server + 1, 0)):
        state.ledger[account] = NOTHING_SPENT[0]


@compiled
def begin_lease(state: State, server: int, time: float) -> None:
    """A server is up from `time` on, for nobody in particular: one step is paid, or it is free."""
    state.servers[server].ready_time = time
    if state.options[0].charged == 1:
        state.servers[server].expiration_time = -np.inf
        extend_lease(state, server, NONE, time, state.servers[server].least_steps)
    else:
        state.servers[server].expiration_time = np.inf
        note_lease(state, server, 1, time, np.inf, 0.0)


@compiled
def cut_lease(state: State, server: int, time: float) -> None:
    """A lease ends early: steps that have not begun are paid back, beyond those due at least."""
    end, begin = state.servers[server].expiration_time, state.servers[server].lease_begin
    state.servers[server].lease_number += 1
    state.servers[server].expiration_time = min(end, time)
    if end == np.inf:  # not paid for, and noted only now
        ready = state.servers[server].ready_time
        charge(state, server, NONE, ready, max(0.0, time - ready), 0.0)
        return
    step = state.servers[server].lease_step
    begun = max(state.servers[server].least_steps, math.ceil((time - begin) / step))
    paid = round((end - begin) / step)
    if end > time and begun < paid:
        pay_back(state, server, time, begun, paid)


@compiled
def pay_back(state: State, server: int, time: float, begun: int, paid: int) -> None:
    """Takes steps off the ledger, from tenants in proportion to their seconds of this lease."""
    first, behind = account_of(state, server, 0), account_of(state, server + 1, 0)
    seconds = (paid - begun) * state.servers[server].lease_step
    rent = (paid - begun) * state.servers[server].step_price
    back = state.servers[server].lease_begin + paid * state.servers[server].lease_step
    grams = lease_carbon(state, server, back - seconds, back)
    for account in range(first, behind):
        leased = state.ledger[account].lease_seconds - state.ledger[account].earlier_seconds
        share = leased / (paid * state.servers[server].lease_step)
        state.ledger[account].lease_seconds -= share * seconds
        state.ledger[account].rent -= share * rent
        state.ledger[account].energy -= share * seconds * state.servers[server].watts
        state.ledger[account].carbon -= share * grams
    note_lease(state, server, 0, time, time, -rent)
    state.cluster[0].total_rent -= rent
    state.log[0].rent -= rent
