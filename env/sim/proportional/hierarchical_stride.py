"""Hierarchical stride: stride between two groups of clients, and within each group again.

Waldspurger, "Lottery and Stride Scheduling" (MIT, 1995), section 3.4. The layout: a complete binary
tree, the clients its leaves in the order of their slots, filled up to a power of two with leaves
without tickets, which are passed over. Of two groups with equal passes the left one goes first.
O(log n) for everything, and no client is more than O(log n) quanta away from its share.

A pair needs no two passes: the difference says who goes. `lags` keeps it as the quanta that the
left group had beyond its share of the pair, times the tickets of the pair. For whole quanta that
is a whole number, so nothing is rounded.
"""

from env.sim.jit import compiled, compiled_apart
from env.sim.proportional.membership import enter, hold, withdraw
from env.sim.proportional.memory import price, remember
from env.sim.records import NONE


@compiled
def give(shares, client, more):
    """A client and its groups get more tickets; what each is ahead in quanta stays as it is."""
    nodes, lags = shares.nodes, shares.lags
    node = len(lags) + client
    nodes[node].key += more
    while node > 1:
        node //= 2
        before = nodes[node].key
        nodes[node].key += more
        lags[node] *= nodes[node].key / before if before > 0 else 0.0


@compiled
def charge(shares, client, quanta):
    """A client and its groups have used some quanta."""
    nodes, lags = shares.nodes, shares.lags
    node = len(lags) + client
    while node > 1:
        side = 1 - 2 * (node & 1)  # the left group gets ahead of the right one, or behind it
        lags[node >> 1] += quanta * side * nodes[node ^ 1].key
        node >>= 1


@compiled_apart
def join(shares, client, tickets, quanta):
    """A client starts to compete."""
    enter(shares, client, tickets, quanta)
    give(shares, client, tickets)


@compiled_apart
def leave(shares, client):
    """A client stops to compete."""
    withdraw(shares, client)
    give(shares, client, -shares.clients[client].tickets)


@compiled_apart
def change(shares, client, tickets):
    """A client gets another number of tickets."""
    more = tickets - shares.clients[client].tickets
    hold(shares, client, tickets)
    give(shares, client, more)


@compiled
def first_of(shares):
    """The client whose groups all go before those beside them."""
    nodes, lags = shares.nodes, shares.lags
    node = 1
    while node < len(lags):
        left, right = nodes[2 * node].key, nodes[2 * node + 1].key
        # (1 + lag) / left <= (1 - lag) / right: the passes after another quantum of each.
        goes_right = ((lags[node] > left - right) | (left == 0)) & (right > 0)
        node = 2 * node + (1 if goes_right else 0)
    return node - len(lags)


@compiled
def allocate(shares):
    """The client that goes next."""
    if shares.head[0].competing == 0:
        return NONE
    client = first_of(shares)
    own = shares.clients[client].quanta
    remember(shares, client, own)
    charge(shares, client, own * price(shares, client))
    return client


@compiled
def used(shares, client, quanta):
    """Charges what a client used more or less than its quantum."""
    more = quanta - shares.clients[client].quanta
    remember(shares, client, more)
    charge(shares, client, more * price(shares, client))


@compiled
def forget(shares, client):
    """Nothing is between a client and the one beside it; what is between groups stays."""
    shares.lags[(len(shares.lags) + client) // 2] = 0.0
