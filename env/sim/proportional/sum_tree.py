"""A tree whose entries are the sums of their children: who holds the ticket at an offset."""

from env.sim.jit import compiled


@compiled
def set_key(nodes, client, key):
    """Gives a client another key, and its ancestors their new sums."""
    node = len(nodes) // 2 + client
    more = key - nodes[node].key
    while node >= 1:
        nodes[node].key += more
        node //= 2


@compiled
def sum_up(nodes):
    """All sums anew, from the keys of the clients."""
    for node in range(len(nodes) // 2 - 1, 0, -1):
        nodes[node].key = nodes[2 * node].key + nodes[2 * node + 1].key


@compiled
def follow(nodes, node, offset):
    """The child that holds an offset of an inner node, and the offset there."""
    left = nodes[2 * node].key
    beyond = offset >= left
    return 2 * node + (1 if beyond else 0), offset - (left if beyond else 0)


@compiled
def holder(nodes, offset):
    """The client that holds an offset of the root."""
    node = 1
    while node < len(nodes) // 2:
        node, offset = follow(nodes, node, offset)
    return node - len(nodes) // 2
