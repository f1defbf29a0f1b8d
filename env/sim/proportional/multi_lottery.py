"""Lottery of several winners: the first drawn, the others equally far apart; O(log n).

Waldspurger, "Lottery and Stride Scheduling" (MIT, 1995), section 3.2. Compensation comes after each
superquantum, which is the more complex of its two schemes: after each quantum, the superquantum
would always end at once where no quantum is used whole.
"""

from env.sim.jit import compiled, compiled_apart
from env.sim.proportional import lottery
from env.sim.proportional.compensation import note_use, note_win, settle_one
from env.sim.proportional.draws import below
from env.sim.proportional.sum_tree import holder, set_key
from env.sim.proportional.superquantum import end, over, spread
from env.sim.records import NONE


@compiled_apart
def join(shares, client, tickets, quanta):
    """A client starts to compete; the superquantum ends."""
    lottery.join(shares, client, tickets, quanta)
    end(shares)


@compiled_apart
def leave(shares, client):
    """A client stops to compete; the superquantum ends."""
    lottery.leave(shares, client)
    end(shares)


@compiled_apart
def change(shares, client, tickets):
    """A client gets another number of tickets; the superquantum ends."""
    lottery.change(shares, client, tickets)
    end(shares)


@compiled
def offset_of(first, number, total, winners):
    """Where the ticket of a winner is, by its number and the offset of the first."""
    apart = number * (total // winners) + number * (total % winners) // winners
    return (first + apart) % total


@compiled_apart
def settle(shares):
    """Compensates the winners of the superquantum that has ended."""
    client = settle_one(shares)
    while client != NONE:
        if shares.clients[client].competing == 1:
            set_key(shares.nodes, client, shares.clients[client].weight)
        client = settle_one(shares)


@compiled
def begin(shares):
    """A superquantum begins: draws its first ticket."""
    head = shares.head
    settle(shares)
    head[0].first = below(head, head[0].weight)
    head[0].taken = head[0].step = 0


@compiled
def allocate(shares):
    """The client that goes next."""
    head = shares.head
    if head[0].competing == 0:
        return NONE
    if over(shares):
        begin(shares)
    winners = head[0].winners
    number, head[0].step = spread(head[0].step, winners)
    offset = offset_of(head[0].first, number, head[0].weight, winners)
    client = holder(shares.nodes, offset)
    head[0].taken += 1
    note_win(shares, client)
    return client


@compiled
def used(shares, client, quanta):
    """Compensates a client when the superquantum has ended."""
    note_use(shares, client, quanta)
