"""Compensation tickets: a lottery has no other memory of how much of a quantum was used.

A client that used the fraction f of a quantum counts as 1 / f times its tickets until it wins
again. Tickets are counted in parts, so that what is compensated is still a whole number.
"""

from typing import Final

from env.base.jit import compiled
from env.tickets.clients import price, remember

PARTS: Final = 1 << 16
"""Of a ticket."""
MOST_WEIGHT: Final = 1 << 40
"""Parts of one client; those of all are below 2^60."""


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
