"""Lottery, the clients in a list: O(n) to allocate and with move-to-front less, O(1) to change.

Waldspurger, "Lottery and Stride Scheduling" (MIT, 1995), section 3.1.
"""

from env.base.jit import compiled
from env.tickets.clients import enter, hold, withdraw
from env.tickets.compensation import admit, compensate_use, compensate_win, weigh
from env.tickets.draws import below
from env.tickets.records import NOBODY


@compiled
def put(shares, place, client):
    """A client takes a place in the list."""
    shares.nodes[place].client = client
    shares.nodes[place].key = shares.clients[client].weight
    shares.clients[client].place = place


@compiled
def join(shares, client, tickets, quanta):
    """A client goes to the end of the list."""
    enter(shares, client, tickets, quanta)
    admit(shares, client)
    put(shares, shares.head[0].competing - 1, client)


@compiled
def leave(shares, client):
    """The last of the list takes the place of a client."""
    withdraw(shares, client)
    shares.head[0].weight -= shares.clients[client].weight
    last = shares.nodes[shares.head[0].competing].client
    put(shares, shares.clients[client].place, last)


@compiled
def change(shares, client, tickets):
    """A client gets another number of tickets."""
    hold(shares, client, tickets)
    weigh(shares, client)
    shares.nodes[shares.clients[client].place].key = shares.clients[client].weight


@compiled
def place_of(nodes, offset):
    """Where in the list the holder of an offset is."""
    place = 0
    while offset >= nodes[place].key:
        offset -= nodes[place].key
        place += 1
    return place


@compiled
def allocate(shares):
    """Draws the client that goes next."""
    head, nodes = shares.head, shares.nodes
    if head[0].competing == 0:
        return NOBODY
    place = place_of(nodes, below(head, head[0].weight))
    client = nodes[place].client
    if head[0].move_to_front == 1:
        while place > 0:
            put(shares, place, nodes[place - 1].client)
            place -= 1
        put(shares, 0, client)
    if compensate_win(shares, client):
        nodes[place].key = shares.clients[client].weight
    return client


@compiled
def used(shares, client, quanta):
    """Compensates a client for what it has not used, or used beyond."""
    if compensate_use(shares, client, quanta) and shares.clients[client].competing == 1:
        shares.nodes[shares.clients[client].place].key = shares.clients[client].weight
