"""The one protocol of all mechanisms, for compiled code: join, leave, change, allocate, used.

`allocate` says which client goes next and charges it one quantum of its own. `used` is told when it
is known how much that was really: with whole quanta it need not be called.
"""

from typing import Final

from env.sim.jit import compiled, compiled_apart
from env.sim.proportional import (
    drf,
    eevdf,
    hierarchical_stride,
    lottery,
    lottery_list,
    multi_lottery,
    stochastic_remainder,
    stride,
    weighted_fair,
)
from env.sim.proportional.compensation import note_use
from env.sim.proportional.records import MECHANISMS
from env.sim.proportional.superquantum import end, settle

LOTTERY_LIST: Final = MECHANISMS.index("lottery_list")
LOTTERY: Final = MECHANISMS.index("lottery")
MULTI_LOTTERY: Final = MECHANISMS.index("multi_lottery")
STOCHASTIC_REMAINDER: Final = MECHANISMS.index("stochastic_remainder")
STRIDE: Final = MECHANISMS.index("stride")
HIERARCHICAL_STRIDE: Final = MECHANISMS.index("hierarchical_stride")
EEVDF: Final = MECHANISMS.index("eevdf")
DRF: Final = MECHANISMS.index("drf")
WEIGHTED_FAIR: Final = MECHANISMS.index("weighted_fair")
IN_SUPERQUANTA: Final = (MULTI_LOTTERY, STOCHASTIC_REMAINDER)
DRAWN_IN_A_TREE: Final = (LOTTERY, MULTI_LOTTERY, STOCHASTIC_REMAINDER)


@compiled_apart
def join(shares, client, tickets, quanta):
    """A client that did not compete does, with tickets and a quantum of so many standard ones."""
    mechanism = shares.head[0].mechanism
    if mechanism == LOTTERY_LIST:
        lottery_list.join(shares, client, tickets, quanta)
    elif mechanism in DRAWN_IN_A_TREE:
        lottery.join(shares, client, tickets, quanta)
    elif mechanism == STRIDE:
        stride.join(shares, client, tickets, quanta)
    elif mechanism == HIERARCHICAL_STRIDE:
        hierarchical_stride.join(shares, client, tickets, quanta)
    elif mechanism == EEVDF:
        eevdf.join(shares, client, tickets, quanta)
    elif mechanism == WEIGHTED_FAIR:
        weighted_fair.join(shares, client, tickets, quanta)
    else:
        drf.join(shares, client, tickets, quanta)


@compiled_apart
def leave(shares, client):
    """A client that competed does not; what it is ahead or behind is remembered."""
    mechanism = shares.head[0].mechanism
    if mechanism == LOTTERY_LIST:
        lottery_list.leave(shares, client)
    elif mechanism in DRAWN_IN_A_TREE:
        lottery.leave(shares, client)
    elif mechanism == STRIDE:
        stride.leave(shares, client)
    elif mechanism == HIERARCHICAL_STRIDE:
        hierarchical_stride.leave(shares, client)
    elif mechanism == EEVDF:
        eevdf.leave(shares, client)
    elif mechanism == WEIGHTED_FAIR:
        weighted_fair.leave(shares, client)
    else:
        drf.leave(shares, client)


@compiled_apart
def change(shares, client, tickets):
    """A client that competes gets another number of tickets."""
    mechanism = shares.head[0].mechanism
    if mechanism == LOTTERY_LIST:
        lottery_list.change(shares, client, tickets)
    elif mechanism in DRAWN_IN_A_TREE:
        lottery.change(shares, client, tickets)
    elif mechanism == STRIDE:
        stride.change(shares, client, tickets)
    elif mechanism == HIERARCHICAL_STRIDE:
        hierarchical_stride.change(shares, client, tickets)
    elif mechanism == EEVDF:
        eevdf.change(shares, client, tickets)
    elif mechanism == WEIGHTED_FAIR:
        weighted_fair.change(shares, client, tickets)
    else:
        drf.change(shares, client, tickets)


@compiled
def allocate(shares):
    """The client that goes next, or NONE."""
    mechanism = shares.head[0].mechanism
    if mechanism == LOTTERY_LIST:
        return lottery_list.allocate(shares)
    if mechanism == LOTTERY:
        return lottery.allocate(shares)
    if mechanism == MULTI_LOTTERY:
        return multi_lottery.allocate(shares)
    if mechanism == STOCHASTIC_REMAINDER:
        return stochastic_remainder.allocate(shares)
    if mechanism == STRIDE:
        return stride.allocate(shares)
    if mechanism == HIERARCHICAL_STRIDE:
        return hierarchical_stride.allocate(shares)
    if mechanism == EEVDF:
        return eevdf.allocate(shares)
    if mechanism == WEIGHTED_FAIR:
        return weighted_fair.allocate(shares)
    return drf.allocate(shares)


@compiled
def used(shares, client, amount):
    """How much of the resource a client really used of the quantum that it was given."""
    quanta = amount / shares.head[0].quantum
    mechanism = shares.head[0].mechanism
    if mechanism == LOTTERY_LIST:
        lottery_list.used(shares, client, quanta)
    elif mechanism == LOTTERY:
        lottery.used(shares, client, quanta)
    elif mechanism in IN_SUPERQUANTA:
        note_use(shares, client, quanta)
    elif mechanism == STRIDE:
        stride.used(shares, client, quanta)
    elif mechanism == HIERARCHICAL_STRIDE:
        hierarchical_stride.used(shares, client, quanta)
    elif mechanism == EEVDF:
        eevdf.used(shares, client, quanta)
    elif mechanism == WEIGHTED_FAIR:
        weighted_fair.used(shares, client, quanta)
    else:
        drf.used(shares, client, quanta)


@compiled_apart
def forget(shares, client):
    """Clears the record of a client that does not compete, so that another can have its slot."""
    clients, mechanism = shares.clients, shares.head[0].mechanism
    if mechanism in IN_SUPERQUANTA and clients[client].chained == 1:
        end(shares)
        settle(shares)
    if mechanism == HIERARCHICAL_STRIDE:
        hierarchical_stride.forget(shares, client)
    shares.head[0].held[0] -= clients[client].held[0]
    shares.head[0].held[1] -= clients[client].held[1]
    clients[client].known = clients[client].tickets = 0
    clients[client].won = clients[client].consumed = 0.0
    clients[client].fresh = clients[client].out = 0.0
    clients[client].late = 0
    clients[client].demand[:] = 0.0
    clients[client].held[:] = 0.0
    clients[client].remembered = 0.0


@compiled_apart
def join_many(shares, clients, tickets, quanta):
    """`join` of several clients, arrays of one entry each."""
    for index in range(len(clients)):
        join(shares, clients[index], tickets[index], quanta[index])


@compiled_apart
def leave_many(shares, clients):
    """`leave` of several clients."""
    for index in range(len(clients)):
        leave(shares, clients[index])


@compiled_apart
def change_many(shares, clients, tickets):
    """`change` of several clients, arrays of one entry each."""
    for index in range(len(clients)):
        change(shares, clients[index], tickets[index])


@compiled_apart
def allocate_many(shares, out):
    """`allocate` as often as `out` has entries, which become the clients."""
    for index in range(len(out)):
        out[index] = allocate(shares)
