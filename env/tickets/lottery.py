"""Lottery, the clients in a tree of sums: O(log n) for everything.

Waldspurger, "Lottery and Stride Scheduling" (MIT, 1995), section 3.1. Who joins, leaves or changes
ends the superquantum of a lottery of several winners.
"""

from env.base.jit import compiled
from env.tickets.clients import enter, hold, withdraw
from env.tickets.compensation import admit, compensate_use, compensate_win, weigh
from env.tickets.draws import below
from env.tickets.records import NOBODY
from env.tickets.trees import holder, set_part


@compiled
def end(shares):
    """Ends the superquantum, however many of its quanta are taken."""
    shares.head[0].taken = shares.head[0].winners


@compiled
def join(shares, client, tickets, quanta):
    """A client starts to compete."""
    enter(shares, client, tickets, quanta)
    admit(shares, client)
    set_part(shares.nodes, client, shares.clients[client].weight)
    end(shares)


@compiled
def leave(shares, client):
    """A client stops to compete."""
    withdraw(shares, client)
    shares.head[0].weight -= shares.clients[client].weight
    set_part(shares.nodes, client, 0)
    end(shares)


@compiled
def change(shares, client, tickets):
    """A client gets another number of tickets."""
    hold(shares, client, tickets)
    weigh(shares, client)
    set_part(shares.nodes, client, shares.clients[client].weight)
    end(shares)


@compiled
def allocate(shares):
    """Draws the client that goes next."""
    head = shares.head
    if head[0].competing == 0:
        return NOBODY
    client = holder(shares.nodes, below(head, head[0].weight))
    if compensate_win(shares, client):
        set_part(shares.nodes, client, shares.clients[client].weight)
    return client


@compiled
def used(shares, client, quanta):
    """Compensates a client for what it has not used, or used beyond."""
    if compensate_use(shares, client, quanta) and shares.clients[client].competing == 1:
        set_part(shares.nodes, client, shares.clients[client].weight)
