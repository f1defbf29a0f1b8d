"""Stride: the client with the lowest pass is served next; O(log n) for everything.

Waldspurger, "Lottery and Stride Scheduling" (MIT, 1995), section 3.3. Passes are virtual time in
whole numbers: a quantum of a client with t of T tickets advances its pass by STRIDE_ONE / t and the
global pass by STRIDE_ONE / T. The rests of these divisions are kept, so that no error grows with
time. Of equal passes the lowest slot is first. No client is ever more than a quantum ahead of
another, measured against their tickets.
"""

import math
from typing import Final

from env.base.jit import compiled, compiled_apart
from env.tickets.records import NEVER, Shares, price, remember, set_key

STRIDE_ONE: Final = 1 << 40
"""Stride of a client with one ticket."""
MOST_ELAPSED: Final = 1 << 60
"""Before the global pass is brought up to date."""
MOST_PASS: Final = 1 << 60
"""Of the global pass, before all passes are counted from it."""
LAST_PASS: Final = 1 << 62
"""Nobody is sent further ahead."""


@compiled
def rounded(value: float):
    """The nearest whole number."""
    return math.floor(value + 0.5)


@compiled
def update(shares: Shares) -> None:
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
def count_anew(shares: Shares) -> None:
    """Counts all passes from the global pass, which becomes 0."""
    head, clients = shares.head, shares.clients
    for client in range(len(clients)):
        clients[client].pass_value -= head[0].global_pass
        if clients[client].competing == 1:
            set_key(shares.nodes, client, clients[client].pass_value)
    head[0].global_pass = 0


@compiled
def stop(shares: Shares, client: int) -> None:
    """Notes what remains until a client is served, before its tickets change."""
    update(shares)
    clients = shares.clients
    if clients[client].competing == 1:
        clients[client].remain = clients[client].pass_value - shares.head[0].global_pass


@compiled
def go_on(shares: Shares, client: int, before, competed) -> None:
    """A client has joined, has left or has other tickets than before; what remains is scaled.

    A client that joins waits a whole stride, and what it was behind or ahead when it left.
    """
    clients = shares.clients
    if clients[client].competing == 0:
        set_key(shares.nodes, client, NEVER)
        return
    remain, tickets = clients[client].remain, clients[client].tickets
    quantum = rounded(clients[client].quanta * STRIDE_ONE)
    stride = quantum // tickets
    if competed == 0:
        remain -= clients[client].stride
    if before != tickets:
        remain = rounded(remain * (before / tickets))
    if competed == 0:
        remain += stride
    clients[client].stride = stride
    clients[client].stride_rest = quantum - stride * tickets
    clients[client].pass_rest = 0
    clients[client].pass_value = min(shares.head[0].global_pass + remain, LAST_PASS)
    set_key(shares.nodes, client, clients[client].pass_value)


@compiled
def charge(shares: Shares, client: int, quanta) -> None:
    """Advances a client by standard quanta, or puts it back."""
    clients = shares.clients
    remember(shares, client, quanta)
    due = rounded(quanta * price(shares, client) * STRIDE_ONE)
    rest = clients[client].pass_rest + due
    passes = rest // clients[client].tickets
    advance(shares, client, passes, rest - passes * clients[client].tickets, due)


@compiled
def charge_quantum(shares: Shares, client: int) -> None:
    """As `charge` for its quantum where nothing is remembered, without a division.

    An allocation among 10 clients takes 8 ns, with `charge` 17 ns.
    """
    row = shares.clients[client]
    rest = row.pass_rest + row.stride_rest
    carried = 1 if rest >= row.tickets else 0
    due = row.stride * row.tickets + row.stride_rest
    advance(shares, client, row.stride + carried, rest - carried * row.tickets, due)


@compiled
def advance(shares: Shares, client: int, passes: int, rest: int, due: int) -> None:
    """Advances a client by passes, and the global pass by what is due."""
    head, clients = shares.head, shares.clients
    clients[client].pass_rest = rest
    if clients[client].competing == 0:
        clients[client].remain += passes
        return
    clients[client].pass_value = min(clients[client].pass_value + passes, LAST_PASS)
    set_key(shares.nodes, client, clients[client].pass_value)
    head[0].elapsed += due
    if head[0].elapsed > MOST_ELAPSED:
        update(shares)
