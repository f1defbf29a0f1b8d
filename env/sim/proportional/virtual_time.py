"""Passes: virtual time in whole numbers, for `stride` and `eevdf`.

Waldspurger, "Lottery and Stride Scheduling" (MIT, 1995), section 3.3. A quantum of a client with t
of T tickets advances its pass by STRIDE_ONE / t and the global pass by STRIDE_ONE / T. What these
divisions leave over is kept, so that no error grows with time.
"""

import math
from typing import Final

from env.sim.jit import compiled, compiled_apart
from env.sim.proportional.membership import enter, hold, withdraw
from env.sim.proportional.memory import price, remember
from env.sim.records import INF

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
def update_global_pass(shares):
    """Brings the global pass up to the quanta that were used; returns whether it is too high."""
    head = shares.head
    if head[0].elapsed != 0 and head[0].tickets > 0:
        due = head[0].elapsed + head[0].global_rest
        passes = due // head[0].tickets
        head[0].global_pass += passes
        head[0].global_rest = due - passes * head[0].tickets
    head[0].elapsed = 0
    return head[0].global_pass > MOST_PASS


@compiled_apart
def count_anew(shares):
    """Counts all passes from the global pass, which becomes 0."""
    head, clients = shares.head, shares.clients
    for client in range(len(clients)):
        clients[client].pass_value -= head[0].global_pass
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
def rescaled(remain, before, now):
    """What remains until a client goes next, when its tickets change."""
    return remain if before == now else rounded(remain * (before / now))


@compiled
def come(shares, client, tickets, quanta):
    """A client joins where it left, or with a whole stride to wait; the global pass is up to date.

    Returns:
        its pass.
    """
    clients = shares.clients
    known, before = clients[client].known, clients[client].tickets
    # Beyond a stride: what it was ahead. The stride is another if its quantum is.
    ahead = clients[client].remain - clients[client].stride
    enter(shares, client, tickets, quanta)
    set_stride(shares, client)
    remain = clients[client].stride
    if known == 1:
        remain += rescaled(ahead, before, tickets)
    clients[client].pass_value = min(shares.head[0].global_pass + remain, LAST_PASS)
    return clients[client].pass_value


@compiled
def go(shares, client):
    """A client leaves and keeps what remains until it would go next; as `come`."""
    withdraw(shares, client)
    clients = shares.clients
    clients[client].remain = clients[client].pass_value - shares.head[0].global_pass


@compiled
def alter(shares, client, tickets):
    """A client gets another number of tickets; as `come`. Returns its pass."""
    clients = shares.clients
    now = shares.head[0].global_pass
    remain = clients[client].pass_value - now
    remain = rescaled(remain, clients[client].tickets, tickets)
    hold(shares, client, tickets)
    set_stride(shares, client)
    clients[client].pass_value = min(now + remain, LAST_PASS)
    return clients[client].pass_value


@compiled
def charge_quantum(shares, client):
    """A client goes and is taken to use its own quantum; returns its pass."""
    head, clients = shares.head, shares.clients
    if head[0].half_life < INF:
        own = clients[client].quanta
        remember(shares, client, own)
        return charge(shares, client, own * price(shares, client))
    rest = clients[client].pass_rest + clients[client].stride_rest
    carried = 1 if rest >= clients[client].tickets else 0
    clients[client].pass_rest = rest - carried * clients[client].tickets
    clients[client].pass_value += clients[client].stride + carried
    head[0].elapsed += (
        clients[client].stride * clients[client].tickets + clients[client].stride_rest
    )
    return clients[client].pass_value


@compiled
def charge_use(shares, client, quanta):
    """A client has really used so much of a quantum of its own; returns its pass, or `remain`."""
    more = quanta - shares.clients[client].quanta
    remember(shares, client, more)
    return charge(shares, client, more * price(shares, client))


@compiled
def charge(shares, client, quanta):
    """Advances a client by standard quanta, or puts it back; returns its pass, or `remain`."""
    head, clients = shares.head, shares.clients
    due = rounded(quanta * STRIDE_ONE)
    rest = clients[client].pass_rest + due
    passes = rest // clients[client].tickets
    clients[client].pass_rest = rest - passes * clients[client].tickets
    if clients[client].competing == 0:
        clients[client].remain += passes
        return clients[client].remain
    clients[client].pass_value = min(clients[client].pass_value + passes, LAST_PASS)
    head[0].elapsed += due
    return clients[client].pass_value


@compiled
def lag(shares, client):
    """Standard quanta that a client should have had and has not; the global pass is up to date."""
    clients = shares.clients
    behind = shares.head[0].global_pass - clients[client].pass_value + clients[client].stride
    return behind * (clients[client].tickets / STRIDE_ONE)
