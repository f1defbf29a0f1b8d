"""Dominant resource fairness: the client with the lowest dominant share is served next.

Ghodsi et al., "Dominant Resource Fairness" (NSDI 2011). A client asks for tasks of one demand of
cores and memory, times its quantum. Its dominant share is the largest share that it holds of any
resource, here over its tickets. O(log n) for everything.
"""

from env.base.jit import compiled, compiled_apart
from env.tickets.records import INF, NEVER, RESOURCES, Shares, price, remember, set_key

WHOLE = float(1 << 60)
"""Key of a client with one ticket that holds all of a resource."""
MOST = float(1 << 62)


@compiled
def dominant_share(used, available):
    """The largest share used / available of any resource, rows of as many entries.

    A resource of which there is none counts as wholly used if it is used, and not at all if not.
    """
    largest = 0.0
    for resource in range(len(used)):
        share = 1.0 if used[resource] > 0.0 else 0.0
        if available[resource] > 0.0:
            share = used[resource] / available[resource]
        largest = max(largest, share)
    return largest


@compiled
def weighted(share: float, weight):
    """A share over a weight: with a weight of 0, infinite from the first use on."""
    if share == 0.0:
        return 0.0
    return share / weight if weight > 0.0 else INF


@compiled
def place(shares: Shares, client: int) -> None:
    """Brings a client to its position in the tournament."""
    clients, key = shares.clients, NEVER
    if clients[client].competing == 1:
        share = dominant_share(clients[client].held, shares.head[0].capacity)
        share = weighted(share * price(shares, client), float(clients[client].tickets))
        key = int(min(share * WHOLE, MOST))
    set_key(shares.nodes, client, key)


@compiled_apart
def take(shares: Shares, client: int, quanta) -> None:
    """A client holds so many demands more, or less, and uses them."""
    demand = shares.clients[client].demand
    remember(shares, client, quanta * dominant_share(demand, shares.head[0].capacity))
    hold(shares, client, quanta)


@compiled_apart
def hold(shares: Shares, client: int, quanta) -> None:
    """A client holds so many demands more, or less: a task begins, or has ended."""
    head, clients = shares.head, shares.clients
    for resource in range(RESOURCES):
        amount = quanta * clients[client].demand[resource]
        clients[client].held[resource] = max(0.0, clients[client].held[resource] + amount)
        head[0].held[resource] = max(0.0, head[0].held[resource] + amount)
    place(shares, client)


@compiled
def fits(shares: Shares, client: int) -> bool:
    """Whether another task of a client finds room."""
    head, clients = shares.head, shares.clients
    for resource in range(RESOURCES):
        needed = clients[client].quanta * clients[client].demand[resource]
        if head[0].held[resource] + needed > head[0].capacity[resource]:
            return False
    return True
