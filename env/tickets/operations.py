"""The one protocol of all mechanisms, for compiled code: join, leave, change, allocate, used.

`allocate` says which client goes next and charges it one quantum of its own. `used` is told when it
is known how much that was really: with whole quanta it need not be called.
"""

from env.base.jit import compiled_apart
from env.tickets import (
    drf,
    hierarchical_stride,
    lottery,
    lottery_list,
    multi_lottery,
    stride,
)
from env.tickets.records import (
    HIERARCHICAL_STRIDE,
    LOTTERY,
    LOTTERY_LIST,
    MULTI_LOTTERY,
    STRIDE,
    clear,
)


@compiled_apart
def join(shares, client, tickets, quanta):
    """A client that did not compete does, with tickets and a quantum of so many standard ones."""
    mechanism = shares.head[0].mechanism
    if mechanism in (LOTTERY, MULTI_LOTTERY):
        lottery.join(shares, client, tickets, quanta)
    elif mechanism == LOTTERY_LIST:
        lottery_list.join(shares, client, tickets, quanta)
    elif mechanism == STRIDE:
        stride.join(shares, client, tickets, quanta)
    elif mechanism == HIERARCHICAL_STRIDE:
        hierarchical_stride.join(shares, client, tickets, quanta)
    else:
        drf.join(shares, client, tickets, quanta)


@compiled_apart
def leave(shares, client):
    """A client that competed does not; what it is ahead or behind is remembered."""
    mechanism = shares.head[0].mechanism
    if mechanism in (LOTTERY, MULTI_LOTTERY):
        lottery.leave(shares, client)
    elif mechanism == LOTTERY_LIST:
        lottery_list.leave(shares, client)
    elif mechanism == STRIDE:
        stride.leave(shares, client)
    elif mechanism == HIERARCHICAL_STRIDE:
        hierarchical_stride.leave(shares, client)
    else:
        drf.leave(shares, client)


@compiled_apart
def change(shares, client, tickets):
    """A client that competes gets another number of tickets."""
    mechanism = shares.head[0].mechanism
    if mechanism in (LOTTERY, MULTI_LOTTERY):
        lottery.change(shares, client, tickets)
    elif mechanism == LOTTERY_LIST:
        lottery_list.change(shares, client, tickets)
    elif mechanism == STRIDE:
        stride.change(shares, client, tickets)
    elif mechanism == HIERARCHICAL_STRIDE:
        hierarchical_stride.change(shares, client, tickets)
    else:
        drf.change(shares, client, tickets)


@compiled_apart
def allocate(shares):
    """The client that goes next, or NOBODY."""
    mechanism = shares.head[0].mechanism
    if mechanism == LOTTERY:
        return lottery.allocate(shares)
    if mechanism == MULTI_LOTTERY:
        return multi_lottery.allocate(shares)
    if mechanism == LOTTERY_LIST:
        return lottery_list.allocate(shares)
    if mechanism == STRIDE:
        return stride.allocate(shares)
    if mechanism == HIERARCHICAL_STRIDE:
        return hierarchical_stride.allocate(shares)
    return drf.allocate(shares)


@compiled_apart
def used(shares, client, amount):
    """How much of the resource a client really used of the quantum that it was given."""
    quanta = amount / shares.head[0].quantum
    mechanism = shares.head[0].mechanism
    if mechanism == LOTTERY:
        lottery.used(shares, client, quanta)
    elif mechanism == MULTI_LOTTERY:
        multi_lottery.used(shares, client, quanta)
    elif mechanism == LOTTERY_LIST:
        lottery_list.used(shares, client, quanta)
    elif mechanism == STRIDE:
        stride.used(shares, client, quanta)
    elif mechanism == HIERARCHICAL_STRIDE:
        hierarchical_stride.used(shares, client, quanta)
    else:
        drf.used(shares, client, quanta)


@compiled_apart
def forget(shares, client):
    """Clears the record of a client that does not compete, so that another can have its slot."""
    head, clients, mechanism = shares.head, shares.clients, shares.head[0].mechanism
    if clients[client].due == 1:
        lottery.end(shares)
        multi_lottery.settle(shares)
    if mechanism == HIERARCHICAL_STRIDE:
        hierarchical_stride.forget(shares, client)
    head[0].held[0] -= clients[client].held[0]
    head[0].held[1] -= clients[client].held[1]
    clients[client].tickets = 0
    clear(shares, client)


@compiled_apart
def allocate_many(shares, out):
    """`allocate` as often as `out` has entries, which become the clients."""
    for index in range(len(out)):
        out[index] = allocate(shares)
