"""What all mechanisms know of a client: whether it competes, and what it has used.

Use can be remembered with a half-life: whoever had more than its share lately pays more. The price
of a quantum is 2^(u / s - 1), at least 1/2 and at most 2: u is the client's share of all remembered
use, s its share of the tickets. The formula is Slurm's fair-share factor 2^(-u / s), turned from a
priority into a price that is 1 at the entitled share.
"""

import math

from env.base.jit import compiled
from env.tickets.records import INF


@compiled
def enter(shares, client, tickets, quanta):
    """A client starts to compete with some tickets and a quantum of its own."""
    head, clients = shares.head, shares.clients
    if clients[client].known == 0:
        clients[client].known = 1
        clients[client].compensation = 1.0 / quanta
    clients[client].tickets = tickets
    clients[client].quanta = quanta
    clients[client].competing = 1
    head[0].competing += 1
    head[0].tickets += tickets


@compiled
def withdraw(shares, client):
    """A client stops to compete; its record remembers the rest."""
    shares.clients[client].competing = 0
    shares.head[0].competing -= 1
    shares.head[0].tickets -= shares.clients[client].tickets


@compiled
def hold(shares, client, tickets):
    """A client that competes gets another number of tickets."""
    shares.head[0].tickets += tickets - shares.clients[client].tickets
    shares.clients[client].tickets = tickets


@compiled
def faded(amount, seconds, half_life):
    """What is left of an amount after some seconds."""
    return amount * 2.0 ** (-seconds / half_life)


@compiled
def remember(shares, client, quanta):
    """A client has used some standard quanta; less than 0 takes some back."""
    head, clients = shares.head, shares.clients
    half_life, clock = head[0].half_life, head[0].clock
    if half_life == INF:
        return
    since = clock - clients[client].remembered_at
    left = faded(clients[client].remembered, since, half_life)
    clients[client].remembered = max(0.0, left + quanta)
    clients[client].remembered_at = clock
    left = faded(head[0].remembered, clock - head[0].remembered_at, half_life)
    head[0].remembered = max(0.0, left + quanta)
    head[0].remembered_at = clock


@compiled
def remembered_rate(shares, client):
    """Standard quanta per second, a mean in which the weight of the past halves per half-life.

    Constant use of 2 counts as 1, 1.5 and 1.75 after 1, 2 and 3 half-lives.
    """
    half_life = shares.head[0].half_life
    since = shares.head[0].clock - shares.clients[client].remembered_at
    return faded(shares.clients[client].remembered, since, half_life) * math.log(2.0) / half_life


@compiled
def price(shares, client):
    """What a quantum of a client counts as."""
    head, clients = shares.head, shares.clients
    half_life, clock = head[0].half_life, head[0].clock
    if half_life == INF or head[0].remembered <= 0.0 or clients[client].tickets == 0:
        return 1.0
    everything = faded(head[0].remembered, clock - head[0].remembered_at, half_life)
    if everything <= 0.0:  # so long ago that it has become 0
        return 1.0
    own = faded(clients[client].remembered, clock - clients[client].remembered_at, half_life)
    all_tickets = head[0].tickets
    if clients[client].competing == 0:
        all_tickets += clients[client].tickets
    share = clients[client].tickets / all_tickets
    return 2.0 ** min(1.0, own / everything / share - 1.0)
