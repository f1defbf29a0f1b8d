"""Lottery, the clients in a tree of sums: O(log n) for everything.

Waldspurger, "Lottery and Stride Scheduling" (MIT, 1995), section 3.1. Who joins, leaves or changes
ends the superquantum, where there are several winners.
"""

from env.sim.jit import compiled
from env.sim.proportional.compensation import admit, compensate_use, compensate_win, weigh
from env.sim.proportional.draws import below
from env.sim.proportional.membership import enter, hold, withdraw
from env.sim.proportional.sum_tree import holder, set_key
from env.sim.proportional.superquantum import end
from env.sim.records import NONE


@compiled
def join(shares, client, tickets, quanta):
    """A client starts to compete."""
    enter(shares, client, tickets, quanta)
    admit(shares, client)
    set_key(shares.nodes, client, shares.clients[client].weight)
    end(shares)


@compiled
def leave(shares, client):
    """A client stops to compete."""
    withdraw(shares, client)
    shares.head[0].weight -= shares.clients[client].weight
    set_key(shares.nodes, client, 0)
    end(shares)


@compiled
def change(shares, client, tickets):
    """A client gets another number of tickets."""
    hold(shares, client, tickets)
    weigh(shares, client)
    set_key(shares.nodes, client, shares.clients[client].weight)
    end(shares)


@compiled
def allocate(shares):
    """Draws the client that goes next."""
    head = shares.head
    if head[0].competing == 0:
        return NONE
    client = holder(shares.nodes, below(head, head[0].weight))
    if compensate_win(shares, client):
        set_key(shares.nodes, client, shares.clients[client].weight)
    return client


@compiled
def used(shares, client, quanta):
    """Compensates a client for what it has not used, or used beyond."""
    if compensate_use(shares, client, quanta) and shares.clients[client].competing == 1:
        set_key(shares.nodes, client, shares.clients[client].weight)
