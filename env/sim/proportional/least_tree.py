"""A tournament of all clients: the least key wins, of equal keys the lowest slot."""

from env.sim.jit import compiled


@compiled
def set_key(nodes, client, key):
    """Gives a client another key and plays its matches; the winner is at entry 1."""
    node = len(nodes) // 2 + client
    nodes[node].key = key
    while node > 1:
        other_key, other = nodes[node ^ 1].key, nodes[node ^ 1].client
        loses = (other_key < key) | ((other_key == key) & (other < client))
        key = other_key if loses else key
        client = other if loses else client
        node //= 2
        nodes[node].key = key
        nodes[node].client = client
