"""Stochastic remainder: whole quanta of each share are certain, what is left over is drawn.

Waldspurger, "Lottery and Stride Scheduling" (MIT, 1995), section 3.2.1, after Goldberg. A
superquantum takes O(n) to begin, each of its quanta O(log n). Quanta that are certain come first,
in an order that is drawn. Clients join, leave and change as in `lottery`; from the beginning of a
superquantum on the tree holds what can still be drawn, not the tickets.
"""

from typing import Final

from env.sim.jit import compiled, compiled_apart
from env.sim.proportional.compensation import note_win
from env.sim.proportional.draws import below
from env.sim.proportional.sum_tree import holder, set_key, sum_up
from env.sim.proportional.superquantum import over, settle
from env.sim.records import NONE

WHOLE: Final = float(1 << 40)
"""What the remainder of one whole quantum counts as."""


@compiled_apart
def begin(shares):
    """A superquantum begins: whole quanta can be drawn."""
    head, clients, nodes = shares.head, shares.clients, shares.nodes
    settle(shares)
    total, winners = head[0].weight, head[0].winners
    for client in range(len(clients)):
        weight = clients[client].weight if clients[client].competing == 1 else 0
        nodes[len(clients) + client].key = winners * weight // total
    sum_up(nodes)
    head[0].certain = nodes[1].key
    head[0].taken = 0


@compiled_apart
def leave_to_chance(shares):
    """Whole quanta have all been taken: remainders can be drawn."""
    head, clients, nodes = shares.head, shares.clients, shares.nodes
    total, winners = head[0].weight, head[0].winners
    for client in range(len(clients)):
        weight = clients[client].weight if clients[client].competing == 1 else 0
        nodes[len(clients) + client].key = int(winners * weight % total / total * WHOLE)
    sum_up(nodes)


@compiled
def allocate(shares):
    """The client that goes next."""
    head, nodes = shares.head, shares.nodes
    if head[0].competing == 0:
        return NONE
    if over(shares):
        begin(shares)
    if head[0].taken == head[0].certain:
        leave_to_chance(shares)
    client = holder(nodes, below(head, nodes[1].key))
    if head[0].taken < head[0].certain:
        set_key(nodes, client, nodes[len(nodes) // 2 + client].key - 1)
    head[0].taken += 1
    note_win(shares, client)
    return client
