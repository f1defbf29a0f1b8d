"""Weighted fair queueing by start times: the client whose next quantum starts first goes next.

Goyal, Vin and Cheng, "Start-time Fair Queuing" (SIGCOMM 1996). In the records, `pass_value` is the
start tag of a client's next quantum, which is the finish tag of its last one, or the virtual time
`global_pass` if that is later: the start tag of whoever went last. Unlike stride, who was away has
nothing to make up for. How long a quantum really was is only needed once it is over. O(log n) for
everything.
"""

from env.sim.jit import compiled, compiled_apart
from env.sim.proportional.least_tree import set_key
from env.sim.proportional.membership import enter, hold, withdraw
from env.sim.proportional.records import NEVER
from env.sim.proportional.virtual_time import (
    LAST_PASS,
    MOST_PASS,
    charge_quantum,
    charge_use,
    set_stride,
)
from env.sim.records import NONE


@compiled
def join(shares, client, tickets, quanta):
    """A client starts to compete now, or where its last quantum has ended."""
    clients = shares.clients
    enter(shares, client, tickets, quanta)
    set_stride(shares, client)
    start = min(max(shares.head[0].global_pass, clients[client].remain), LAST_PASS)
    clients[client].pass_value = start
    set_key(shares.nodes, client, start)


@compiled
def leave(shares, client):
    """A client stops to compete; the end of its last quantum is remembered."""
    withdraw(shares, client)
    shares.clients[client].remain = shares.clients[client].pass_value
    set_key(shares.nodes, client, NEVER)


@compiled
def change(shares, client, tickets):
    """A client gets another number of tickets, which counts from its next quantum on."""
    hold(shares, client, tickets)
    set_stride(shares, client)


@compiled
def allocate(shares):
    """The client with the earliest start tag."""
    if shares.head[0].competing == 0:
        return NONE
    client = shares.nodes[1].client
    shares.head[0].global_pass = shares.clients[client].pass_value
    set_key(shares.nodes, client, charge_quantum(shares, client))
    shares.head[0].elapsed = 0  # virtual time does not follow it here
    if shares.head[0].global_pass > MOST_PASS:
        start_anew(shares)
    return client


@compiled
def used(shares, client, quanta):
    """Moves the end of a client's last quantum by what it used more or less."""
    now = charge_use(shares, client, quanta)
    shares.head[0].elapsed = 0
    if shares.clients[client].competing == 1:
        set_key(shares.nodes, client, now)


@compiled_apart
def start_anew(shares):
    """Counts virtual time from 0 again."""
    head, clients = shares.head, shares.clients
    for client in range(len(clients)):
        clients[client].pass_value -= head[0].global_pass
        clients[client].remain -= head[0].global_pass
        if clients[client].competing == 1:
            set_key(shares.nodes, client, clients[client].pass_value)
    head[0].global_pass = 0
