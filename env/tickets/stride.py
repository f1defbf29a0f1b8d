"""Stride: the client with the lowest pass goes next; O(log n) for everything.

Waldspurger, "Lottery and Stride Scheduling" (MIT, 1995), section 3.3. Passes are virtual time in
whole numbers: a quantum of a client with t of T tickets advances its pass by STRIDE_ONE / t and the
global pass by STRIDE_ONE / T. What these divisions leave over is kept, so that no error grows with
time. Of equal passes the lowest slot goes first. No client is ever more than a quantum ahead of
another, measured against their tickets.
"""

import math
from typing import Final

from env.base.jit import compiled, compiled_apart
from env.tickets.clients import enter, hold, price, remember, withdraw
from env.tickets.records import INF, NEVER, NOBODY
from env.tickets.trees import set_key

STRIDE_ONE: Final = 1 << 40
"""Stride of a client with one ticket."""
MOST_ELAPSED: Final = 1 << 60
"""Before the global pass is brought up to date."""
MOST_PASS: Final = 1 << 60
"""Of the global pass, before all passes are counted from it."""
LAST_PASS: Final = 1 << 62
"""Nobody is sent further ahead."""


@compiled
def rounded(value):
    """The nearest whole number."""
    return math.floor(value + 0.5)


@compiled
def update(shares):
    """Brings the global pass up to the quanta that were used."""
    head = shares.head
    if head[0].elapsed != 0 and head[0].tickets > 0:
        due = head[0].elapsed + head[0].global_rest
        passes = due // head[0].tickets
        head[0].global_pass += passes
        head[0].global_rest = due - passes * head[0].tickets
    head[0].elapsed = 0
    if head[0].global_pass > MOST_PASS:
        count_anew(shares)


@compiled_apart
def count_anew(shares):
    """Counts all passes from the global pass, which becomes 0."""
    head, clients = shares.head, shares.clients
    for client in range(len(clients)):
        clients[client].pass_value -= head[0].global_pass
        if clients[client].competing == 1:
            set_key(shares.nodes, client, clients[client].pass_value)
    head[0].global_pass = 0


@compiled
def set_stride(shares, client):
    """The stride of a client by its tickets and its own quantum."""
    clients = shares.clients
    quantum = rounded(clients[client].quanta * STRIDE_ONE)
    stride = quantum // clients[client].tickets
    clients[client].stride = stride
    clients[client].stride_rest = quantum - stride * clients[client].tickets
    clients[client].pass_rest = 0


@compiled
def go_after(shares, client, remain):
    """A client goes when the global pass has advanced by so much."""
    now = min(shares.head[0].global_pass + remain, LAST_PASS)
    shares.clients[client].pass_value = now
    set_key(shares.nodes, client, now)


@compiled
def rescaled(remain, before, now):
    """What remains until a client goes next, when its tickets change."""
    return remain if before == now else rounded(remain * (before / now))


@compiled
def join(shares, client, tickets, quanta):
    """A client starts to compete: where it left, or with a whole stride to wait."""
    update(shares)
    clients = shares.clients
    known, before = clients[client].known, clients[client].tickets
    # Beyond a stride: what it was ahead. The stride is another if its quantum is.
    ahead = clients[client].remain - clients[client].stride
    enter(shares, client, tickets, quanta)
    set_stride(shares, client)
    remain = clients[client].stride
    if known == 1:
        remain += rescaled(ahead, before, tickets)
    go_after(shares, client, remain)


@compiled
def leave(shares, client):
    """A client stops to compete and keeps what remains until it would go next."""
    update(shares)
    withdraw(shares, client)
    clients = shares.clients
    clients[client].remain = clients[client].pass_value - shares.head[0].global_pass
    set_key(shares.nodes, client, NEVER)


@compiled
def change(shares, client, tickets):
    """A client gets another number of tickets; what remains until it goes next is scaled."""
    update(shares)
    clients = shares.clients
    remain = clients[client].pass_value - shares.head[0].global_pass
    remain = rescaled(remain, clients[client].tickets, tickets)
    hold(shares, client, tickets)
    set_stride(shares, client)
    go_after(shares, client, remain)


@compiled
def allocate(shares):
    """The client with the lowest pass, which is taken to use its own quantum."""
    head, clients = shares.head, shares.clients
    if head[0].competing == 0:
        return NOBODY
    client = shares.nodes[1].client
    if head[0].half_life < INF:
        own = clients[client].quanta
        remember(shares, client, own)
        charge(shares, client, own * price(shares, client))
        return client
    rest = clients[client].pass_rest + clients[client].stride_rest
    carried = 1 if rest >= clients[client].tickets else 0
    clients[client].pass_rest = rest - carried * clients[client].tickets
    clients[client].pass_value += clients[client].stride + carried
    head[0].elapsed += (
        clients[client].stride * clients[client].tickets + clients[client].stride_rest
    )
    set_key(shares.nodes, client, clients[client].pass_value)
    if head[0].elapsed > MOST_ELAPSED:
        update(shares)
    return client


@compiled
def used(shares, client, quanta):
    """Advances or puts back a client by what it used more or less than its quantum."""
    more = quanta - shares.clients[client].quanta
    remember(shares, client, more)
    charge(shares, client, more * price(shares, client))


@compiled
def charge(shares, client, quanta):
    """Advances a client by standard quanta, or puts it back."""
    head, clients = shares.head, shares.clients
    due = rounded(quanta * STRIDE_ONE)
    rest = clients[client].pass_rest + due
    passes = rest // clients[client].tickets
    clients[client].pass_rest = rest - passes * clients[client].tickets
    if clients[client].competing == 0:
        clients[client].remain += passes
        return
    clients[client].pass_value = min(clients[client].pass_value + passes, LAST_PASS)
    set_key(shares.nodes, client, clients[client].pass_value)
    head[0].elapsed += due
    if head[0].elapsed > MOST_ELAPSED:
        update(shares)
