"""Hierarchical stride: stride between two groups of clients, and within each group again.

Waldspurger, "Lottery and Stride Scheduling" (MIT, 1995), section 3.4. The groups are those of a
complete binary tree over the slots; leaves without tickets are passed over. Of two groups with
equal passes the left one is first. O(log n) for everything, and no client is more than O(log n)
quanta away from its share.

A pair needs no two passes, only their difference: `lag` is the quanta that the left group had
beyond its share of the pair, times the tickets of the pair. For whole quanta that is a whole
number, so nothing is rounded.
"""

import numpy as np

from env.base.jit import compiled
from env.tickets.records import INF, ONE, Shares, price, remember


@compiled
def give(shares: Shares, client: int, more) -> None:
    """A client and its groups get more tickets; what each is ahead in quanta stays as it is."""
    nodes, pairs = shares.nodes, shares.pairs
    node = len(pairs) + client
    nodes[node].key += more
    while node > 1:
        node //= 2
        before = nodes[node].key
        nodes[node].key += more
        pairs[node].lag *= nodes[node].key / before if before > 0 else 0.0
        left, right = nodes[2 * node].key, nodes[2 * node + 1].key
        # (1 + lag) / left <= (1 - lag) / right: the passes after another quantum of each.
        pairs[node].bound = left - right
        if right == 0:
            pairs[node].bound = INF
        elif left == 0:
            pairs[node].bound = -INF


@compiled
def charge(shares: Shares, client: int, quanta) -> None:
    """A client and its groups have used some quanta."""
    nodes, pairs = shares.nodes, shares.pairs
    remember(shares, client, quanta)
    quanta *= price(shares, client)
    node = np.uint64(len(pairs) + client)
    while node > ONE:
        # The left group gets ahead of the right one, or behind it.
        side = quanta if node & ONE == 0 else -quanta
        pairs[node >> ONE].lag += side * nodes[node ^ ONE].key
        node >>= ONE


@compiled
def first_of(shares: Shares):
    """The client whose groups are all first in their pairs."""
    pairs = shares.pairs
    node, leaves = ONE, np.uint64(len(pairs))
    while node < leaves:
        goes_right = pairs[node].lag > pairs[node].bound
        node = (node << ONE) + np.uint64(goes_right)
    return np.int64(node - leaves)
