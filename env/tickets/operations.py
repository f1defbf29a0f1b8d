"""The interface of all mechanisms, for compiled code: join, leave, change, allocate, used.

`allocate` chooses a client and charges it one quantum. `used` reports later how much that was
really; where quanta are always used whole it need not be called.
"""

from env.base.jit import compiled, compiled_apart
from env.tickets import drf, hierarchical_stride, lottery, stride
from env.tickets.records import DRF, HIERARCHICAL_STRIDE, INF, NOBODY, STRIDE, Shares


@compiled
def join(shares: Shares, client: int, tickets, quanta) -> None:
    """A client starts to compete, with tickets and a quantum of so many standard ones."""
    clients = shares.clients
    if clients[client].tickets == 0:
        clients[client].compensation = 1.0 / quanta
    clients[client].quanta = quanta
    hold(shares, client, tickets, 1)


@compiled
def leave(shares: Shares, client: int) -> None:
    """A client ceases to compete; what it is ahead or behind is remembered."""
    hold(shares, client, shares.clients[client].tickets, 0)


@compiled_apart
def change(shares: Shares, client: int, tickets) -> None:
    """A client that competes gets another number of tickets."""
    hold(shares, client, tickets, 1)


@compiled
def hold(shares: Shares, client: int, tickets, competes) -> None:
    """A client holds some tickets, and competes from now on (1) or does not (0)."""
    head, clients, mechanism = shares.head, shares.clients, shares.head[0].mechanism
    if mechanism == STRIDE:
        stride.stop(shares, client)
    before, competed = clients[client].tickets, clients[client].competing
    more = tickets * competes - before * competed
    head[0].tickets += more
    head[0].competing += competes - competed
    clients[client].tickets, clients[client].competing = tickets, competes
    if mechanism == STRIDE:
        stride.go_on(shares, client, before, competed)
    elif mechanism == HIERARCHICAL_STRIDE:
        hierarchical_stride.give(shares, client, more)
    elif mechanism == DRF:
        drf.place(shares, client)
    else:
        lottery.weigh(shares, client)
        head[0].taken = head[0].winners  # the superquantum ends


@compiled
def allocate(shares: Shares):
    """Chooses the client that is served next, or NOBODY, and charges it a quantum."""
    mechanism = shares.head[0].mechanism
    if shares.head[0].competing == 0:
        return NOBODY
    if mechanism in (STRIDE, DRF):
        client = shares.nodes[1].client
    elif mechanism == HIERARCHICAL_STRIDE:
        client = hierarchical_stride.first_of(shares)
    else:
        return lottery.allocate(shares)
    if mechanism == DRF and not drf.fits(shares, client):
        return NOBODY
    if mechanism == STRIDE and shares.head[0].half_life == INF:
        stride.charge_quantum(shares, client)
    else:
        charge(shares, client, shares.clients[client].quanta)
    return client


@compiled
def used(shares: Shares, client: int, amount: float) -> None:
    """How much of the resource a client really used of the quantum that it was given."""
    quanta = amount / shares.head[0].quantum
    if shares.head[0].mechanism in (STRIDE, HIERARCHICAL_STRIDE, DRF):
        charge(shares, client, quanta - shares.clients[client].quanta)
    else:
        lottery.used(shares, client, quanta)


@compiled
def charge(shares: Shares, client: int, quanta) -> None:
    """A client has used some more standard quanta, or fewer than it was charged before."""
    mechanism = shares.head[0].mechanism
    if mechanism == STRIDE:
        stride.charge(shares, client, quanta)
    elif mechanism == HIERARCHICAL_STRIDE:
        hierarchical_stride.charge(shares, client, quanta)
    else:
        drf.take(shares, client, quanta)
