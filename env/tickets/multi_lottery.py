"""Lottery of several winners: the first drawn, the others equally far apart; O(log n).

Waldspurger, "Lottery and Stride Scheduling" (MIT, 1995), section 3.2. Clients join, leave and
change as in `lottery`. Compensation comes after each superquantum, in O(n), which is the more
complex of its two schemes: after each quantum, the superquantum would always end at once where no
quantum is used whole.
"""

from typing import Final

from env.base.jit import compiled, compiled_apart
from env.tickets.clients import price, remember
from env.tickets.compensation import compensate, reciprocal
from env.tickets.draws import below
from env.tickets.records import NOBODY
from env.tickets.trees import holder, set_part

REMEMBERED: Final = 64.0
"""Quanta of a client whose mean use is compensated after a superquantum.

Fewer give those too much who win few of them: the mean of 1 / f lies above 1 / the mean of f. More
would be slow to notice that a client has changed.
"""


@compiled
def spread(step, winners):
    """The next of 0 to `winners` - 1 in an order that keeps consecutive ones far apart.

    The bits of a counter in reverse: 0, 2, 1, 3 of four. Those from `winners` on are left out.

    Args:
        step: value of the counter.
        winners: how many there are.

    Returns:
        the number, and the next value of the counter.
    """
    while True:
        rest, number, bit = step, 0, 1
        while bit < winners:
            number = (number << 1) + (rest & 1)
            rest >>= 1
            bit <<= 1
        step += 1
        if number < winners:
            return number, step


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
        return NOBODY
    if head[0].taken >= head[0].winners:
        settle(shares)
        begin(shares, below(head, head[0].weight))
    number, head[0].step = spread(head[0].step, head[0].winners)
    client = holder(shares.nodes, offset_of(head, number))
    head[0].taken += 1
    note_win(shares, client)
    return client


@compiled
def note_win(shares, client):
    """A win within a superquantum: compensated when that has ended."""
    own = shares.clients[client].quanta
    remember(shares, client, own)
    shares.clients[client].due = 1
    shares.clients[client].fresh += own
    shares.clients[client].out += own


@compiled
def used(shares, client, quanta):
    """What a client has really used of its oldest win of which no use was told yet."""
    clients = shares.clients
    own = clients[client].quanta
    remember(shares, client, quanta - own)
    clients[client].due = 1
    if clients[client].out > clients[client].fresh:
        clients[client].late = 1
    clients[client].won += own
    clients[client].consumed += quanta * price(shares, client)
    clients[client].out = max(0.0, clients[client].out - own)


@compiled_apart
def settle(shares):
    """Compensates the winners of the superquantum that has ended.

    What one used at once is the mean of the uses that are remembered. Wins of which none was told
    were whole quanta, but where uses are told late: then theirs are still to come.
    """
    clients = shares.clients
    for client in range(len(clients)):
        if clients[client].due == 0:
            continue
        own = clients[client].quanta
        if clients[client].late == 0:
            whole = min(clients[client].fresh, clients[client].out)
            clients[client].won += whole
            clients[client].consumed += whole * price(shares, client)
        compensate(shares, client, reciprocal(clients[client].consumed * own / clients[client].won))
        kept = min(1.0, REMEMBERED * own / clients[client].won)
        clients[client].won *= kept
        clients[client].consumed *= kept
        clients[client].fresh = 0.0
        clients[client].due = 0
        if clients[client].competing == 1:
            set_part(shares.nodes, client, clients[client].weight)
