"""Lottery of several winners: the first drawn, the others equally far apart; O(log n).

Waldspurger, "Lottery and Stride Scheduling" (MIT, 1995), section 3.2. Clients join, leave and
change as in `lottery`. Compensation comes after each superquantum, which is the more complex of its
two schemes: after each quantum, the superquantum would always end at once where no quantum is used
whole.
"""

from env.sim.jit import compiled
from env.sim.proportional.compensation import note_win
from env.sim.proportional.draws import below
from env.sim.proportional.sum_tree import holder
from env.sim.proportional.superquantum import over, settle, spread
from env.sim.records import NONE


@compiled
def offset_of(head, number):
    """Where the ticket of a winner is, by its number."""
    winners, total = head[0].winners, head[0].weight
    offset = head[0].first + number * head[0].space + number * head[0].space_rest // winners
    return offset - (total if offset >= total else 0)


@compiled
def begin(shares, first):
    """A superquantum begins, with the ticket of its first winner."""
    head = shares.head
    head[0].first = first
    head[0].space = head[0].weight // head[0].winners
    head[0].space_rest = head[0].weight % head[0].winners
    head[0].taken = head[0].step = 0


@compiled
def allocate(shares):
    """The client that goes next."""
    head = shares.head
    if head[0].competing == 0:
        return NONE
    if over(shares):
        settle(shares)
        begin(shares, below(head, head[0].weight))
    number, head[0].step = spread(head[0].step, head[0].winners)
    client = holder(shares.nodes, offset_of(head, number))
    head[0].taken += 1
    note_win(shares, client)
    return client
