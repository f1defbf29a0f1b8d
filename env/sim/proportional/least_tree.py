"""A tournament of all clients: the least key wins, of equal keys the lowest slot."""

import numpy as np

from env.sim.jit import compiled

ONE = np.uint64(1)


@compiled
def set_key(nodes, client, key):
    """Gives a client another key and plays its matches; the winner is at entry 1.

    Who wins is a minimum and a choice of values, without branches that a processor would have to
    guess: that makes it three times as fast.
    """
    node = np.uint64(len(nodes) // 2 + client)
    nodes[node].key = key
    while node > ONE:
        other_key, other = nodes[node ^ ONE].key, nodes[node ^ ONE].client
        loses = (other_key < key) | ((other_key == key) & (other < client))
        client = other if loses else client
        key = min(key, other_key)
        node >>= ONE
        nodes[node].key = key
        nodes[node].client = client


@compiled
def set_keys(nodes, key, others, other_key, client):
    """`set_key` in two tournaments of as many clients, at once as a processor can do both."""
    node = np.uint64(len(nodes) // 2 + client)
    nodes[node].key, others[node].key = key, other_key
    first = second = client
    while node > ONE:
        beside = node ^ ONE
        their_key, their = nodes[beside].key, nodes[beside].client
        first = their if (their_key < key) | ((their_key == key) & (their < first)) else first
        key = min(key, their_key)
        their_key, their = others[beside].key, others[beside].client
        loses = (their_key < other_key) | ((their_key == other_key) & (their < second))
        second = their if loses else second
        other_key = min(other_key, their_key)
        node >>= ONE
        nodes[node].key, others[node].key = key, other_key
        nodes[node].client, others[node].client = first, second
