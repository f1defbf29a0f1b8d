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


@compiled
def join(shares, client, tickets, quanta):
    """A client starts to compete; the superquantum ends."""
    lottery.join(shares, client, tickets, quanta)
    end(shares)


@compiled
def leave(shares, client):
    """A client stops to compete; the superquantum ends."""
    lottery.leave(shares, client)
    end(shares)


@compiled
def change(shares, client, tickets):
    """A client gets another number of tickets; the superquantum ends."""
    lottery.change(shares, client, tickets)
    end(shares)


@compiled
def offset_of(head, number):
    """Where the ticket of a winner is, by its number."""
    winners, total = head[0].winners, head[0].weight
    offset = head[0].first + number * head[0].space + number * head[0].space_rest // winners
    return offset - (total if offset >= total else 0)


@compiled_apart
def settle(shares):
    """Compensates the winners of the superquantum that has ended."""
    client = settle_one(shares)
    while client != NONE:
        if shares.clients[client].competing == 1:
            set_key(shares.nodes, client, shares.clients[client].weight)
        client = settle_one(shares)


@compiled
def begin(shares, first):
    """A superquantum begins, with the ticket of its first winner."""
    head = shares.head
    head[0].first = first
    head[0].space = head[0].weight // head[0].winners
    head[0].space_rest = head[0].weight % head[0].winners
    head[0].taken = head[0].step = 0


@compiled
def allocate(shares):
    """The client that goes next."""
    head = shares.head
    if head[0].competing == 0:
        return NONE
    if over(shares):
        settle(shares)
        begin(shares, below(head, head[0].weight))
    number, head[0].step = spread(head[0].step, head[0].winners)
    client = holder(shares.nodes, offset_of(head, number))
    head[0].taken += 1
    note_win(shares, client)
    return client


@compiled
def used(shares, client, quanta):
    """Compensates a client when the superquantum has ended."""
    note_use(shares, client, quanta)
