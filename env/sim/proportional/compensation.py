"""Compensation tickets: a lottery has no other memory of how much of a quantum was used.

A client that used the fraction f of a quantum counts as 1 / f times its tickets until it wins
again. Tickets are counted in parts, so that what is compensated is still a whole number.
"""

from typing import Final

from env.sim.jit import compiled
from env.sim.proportional.memory import price, remember
from env.sim.records import NONE

PARTS: Final = 1 << 16
"""Of a ticket."""
MOST_WEIGHT: Final = 1 << 40
"""Parts of one client; those of all are below 2^60."""
REMEMBERED: Final = 64.0
"""Quanta of a client whose mean use is compensated after a superquantum.

Fewer give those too much who win few of them: the mean of 1 / f lies above 1 / the mean of f. More
would be slow to notice that a client has changed.
"""


@compiled
def weigh(shares, client):
    """Counts the tickets of a client anew, and with them those of all."""
    head, clients = shares.head, shares.clients
    before = clients[client].weight
    exact = clients[client].tickets * clients[client].compensation * PARTS
    weight = max(1, int(min(float(MOST_WEIGHT), exact) + 0.5))
    clients[client].weight = weight
    if clients[client].competing == 1:
        head[0].weight += weight - before


@compiled
def admit(shares, client):
    """A client has joined: its tickets are among those drawn from."""
    shares.clients[client].weight = 0
    weigh(shares, client)


@compiled
def compensate(shares, client, factor):
    """Sets the factor of a client's tickets; returns whether they count otherwise than before."""
    before = shares.clients[client].weight
    if shares.clients[client].compensation != factor:
        shares.clients[client].compensation = factor
        weigh(shares, client)
    return shares.clients[client].weight != before


@compiled
def reciprocal(quanta):
    """1 / quanta, with the most that `weigh` allows for next to nothing."""
    return 1.0 / max(quanta, 1.0 / MOST_WEIGHT)


@compiled
def compensate_win(shares, client):
    """A client has won and is taken to use its own quantum; returns as `compensate`."""
    clients = shares.clients
    own = clients[client].quanta
    remember(shares, client, own)
    if clients[client].won > 0.0:  # one of the uses that were told is compensated
        left = max(0.0, 1.0 - own / clients[client].won)
        clients[client].won *= left
        clients[client].consumed *= left
    return _compensate_told(shares, client)


@compiled
def compensate_use(shares, client, quanta):
    """A client has really used some quanta of a win; returns as `compensate`.

    Each use is compensated until one more win. Uses that are told late can be several at a time.
    """
    clients = shares.clients
    own = clients[client].quanta
    remember(shares, client, quanta - own)
    clients[client].won += own
    clients[client].consumed += quanta * price(shares, client)
    return _compensate_told(shares, client)


@compiled
def _compensate_told(shares, client):
    """By the mean of the uses that were told, or else by its own quantum."""
    clients = shares.clients
    own = clients[client].quanta
    mean = own * price(shares, client)
    if clients[client].won > 0.0:
        mean = clients[client].consumed * own / clients[client].won
    return compensate(shares, client, reciprocal(mean))


@compiled
def note_win(shares, client):
    """A win within a superquantum: compensated when that has ended."""
    own = shares.clients[client].quanta
    remember(shares, client, own)
    _chain(shares, client)
    shares.clients[client].fresh += own
    shares.clients[client].out += own


@compiled
def note_use(shares, client, quanta):
    """What a client has really used of its oldest win of which no use was told yet."""
    clients = shares.clients
    own = clients[client].quanta
    remember(shares, client, quanta - own)
    _chain(shares, client)
    if clients[client].out > clients[client].fresh:
        clients[client].late = 1
    clients[client].won += own
    clients[client].consumed += quanta * price(shares, client)
    clients[client].out = max(0.0, clients[client].out - own)


@compiled
def _chain(shares, client):
    """Has a client compensated when the superquantum ends."""
    head, clients = shares.head, shares.clients
    if clients[client].chained == 0:
        clients[client].chained = 1
        clients[client].next_won = head[0].last_won
        head[0].last_won = client


@compiled
def settle_one(shares):
    """Compensates one client of the superquantum that has ended; NONE if there is no other.

    What it used at once is the mean of the uses that are remembered. Wins of which none was told
    were whole quanta, but where uses are told late: then theirs are still to come.
    """
    head, clients = shares.head, shares.clients
    client = head[0].last_won
    if client != NONE:
        head[0].last_won = clients[client].next_won
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
        clients[client].chained = 0
        clients[client].next_won = NONE
    return client
