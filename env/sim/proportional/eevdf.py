"""EEVDF: of all clients that are not ahead of their share, the one with the earliest deadline.

Stoica and Abdel-Wahab, "Earliest Eligible Virtual Deadline First" (Old Dominion University, 1995).
A request is a quantum of the client's own. It is eligible from the virtual time ve on and due at
ve + quantum / tickets; in the records, `pass_value` is the deadline, `pass_value - stride` is ve
and `global_pass` the virtual time, up to date after every operation. There are two tournaments:
of the eligible by deadline and of the others by ve. Everything is O(log n), taken over time.
"""

from env.sim.jit import compiled, compiled_apart
from env.sim.proportional.least_tree import set_keys
from env.sim.proportional.records import NEVER
from env.sim.proportional.virtual_time import (
    STRIDE_ONE,
    alter,
    charge_quantum,
    charge_use,
    come,
    count_anew,
    go,
    lag,
    rounded,
    update_global_pass,
)
from env.sim.records import NONE


@compiled
def place(shares, client):
    """Puts a client into the tournament that it belongs to, and out of the other."""
    deadline, stride = shares.clients[client].pass_value, shares.clients[client].stride
    eligible = deadline - stride <= shares.head[0].global_pass
    due = deadline if eligible else NEVER
    from_then = NEVER if eligible else deadline - stride
    set_keys(shares.nodes, due, shares.waiting, from_then, client)


@compiled
def update(shares):
    """Brings the virtual time up to date."""
    if update_global_pass(shares):
        start_anew(shares)


@compiled_apart
def start_anew(shares):
    """Counts passes from 0 again, and puts everybody in its place."""
    count_anew(shares)
    for client in range(len(shares.clients)):
        if shares.clients[client].competing == 1:
            place(shares, client)


@compiled
def shift(shares, quanta):
    """The others have these quanta to share, or to give up: their lags then sum to 0 again."""
    head = shares.head
    head[0].global_pass += rounded(quanta * (STRIDE_ONE / head[0].tickets))


@compiled
def join(shares, client, tickets, quanta):
    """A client starts to compete with the lag that it had when it left; alone it has none."""
    alone, known = shares.head[0].competing == 0, shares.clients[client].known
    come(shares, client, tickets, quanta)
    clients, head = shares.clients, shares.head
    if alone:
        clients[client].pass_value = head[0].global_pass + clients[client].stride
    elif known == 1:
        behind = lag(shares, client)
        before = head[0].global_pass
        head[0].tickets -= tickets
        shift(shares, -behind)
        head[0].tickets += tickets
        clients[client].pass_value += head[0].global_pass - before
    place(shares, client)


@compiled
def leave(shares, client):
    """A client stops to compete and takes its lag along."""
    behind = lag(shares, client)
    go(shares, client)
    set_keys(shares.nodes, NEVER, shares.waiting, NEVER, client)
    if shares.head[0].competing > 0:
        shift(shares, behind)


@compiled
def change(shares, client, tickets):
    """A client gets another number of tickets and keeps its lag."""
    alter(shares, client, tickets)
    place(shares, client)


@compiled
def first_of(shares):
    """The eligible client with the earliest deadline."""
    now = shares.head[0].global_pass
    while shares.waiting[1].key <= now:
        place(shares, shares.waiting[1].client)
    while shares.nodes[1].key != NEVER:
        client = shares.nodes[1].client
        if shares.clients[client].pass_value - shares.clients[client].stride <= now:
            return client
        place(shares, client)  # virtual time has gone back since it became eligible
    return shares.waiting[1].client  # rounding alone makes nobody eligible


@compiled
def allocate(shares):
    """The client that goes next."""
    if shares.head[0].competing == 0:
        return NONE
    client = first_of(shares)
    charge_quantum(shares, client)
    update(shares)
    place(shares, client)
    return client


@compiled
def used(shares, client, quanta):
    """Charges what a client used more or less than its quantum."""
    charge_use(shares, client, quanta)
    if shares.clients[client].competing == 1:
        update(shares)
        place(shares, client)
