"""Stride: the client with the lowest pass goes next; O(log n) for everything.

Waldspurger, "Lottery and Stride Scheduling" (MIT, 1995), section 3.3. Of equal passes the lowest
slot goes first. No client is ever more than a quantum ahead of another, measured against their
tickets.
"""

from env.sim.jit import compiled, compiled_apart
from env.sim.proportional.least_tree import set_key
from env.sim.proportional.records import NEVER
from env.sim.proportional.virtual_time import (
    MOST_ELAPSED,
    alter,
    charge_quantum,
    charge_use,
    come,
    count_anew,
    go,
    update_global_pass,
)
from env.sim.records import NONE


@compiled
def update(shares):
    """Brings the global pass up to date."""
    if update_global_pass(shares):
        start_anew(shares)


@compiled_apart
def start_anew(shares):
    """Counts passes from 0 again, and puts everybody in its place."""
    count_anew(shares)
    for client in range(len(shares.clients)):
        if shares.clients[client].competing == 1:
            set_key(shares.nodes, client, shares.clients[client].pass_value)


@compiled
def join(shares, client, tickets, quanta):
    """A client starts to compete, with what remained of its stride when it left."""
    update(shares)
    set_key(shares.nodes, client, come(shares, client, tickets, quanta))


@compiled
def leave(shares, client):
    """A client stops to compete."""
    update(shares)
    go(shares, client)
    set_key(shares.nodes, client, NEVER)


@compiled
def change(shares, client, tickets):
    """A client gets another number of tickets."""
    update(shares)
    set_key(shares.nodes, client, alter(shares, client, tickets))


@compiled
def allocate(shares):
    """The client with the lowest pass."""
    if shares.head[0].competing == 0:
        return NONE
    client = shares.nodes[1].client
    set_key(shares.nodes, client, charge_quantum(shares, client))
    if shares.head[0].elapsed > MOST_ELAPSED:
        update(shares)
    return client


@compiled
def used(shares, client, quanta):
    """Advances or puts back a client by what it used more or less than its quantum."""
    now = charge_use(shares, client, quanta)
    if shares.clients[client].competing == 1:
        set_key(shares.nodes, client, now)
        if shares.head[0].elapsed > MOST_ELAPSED:
            update(shares)
