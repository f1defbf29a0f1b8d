"""Lotteries: the holder of a ticket that is drawn is served next.

Waldspurger, "Lottery and Stride Scheduling" (MIT, 1995), sections 3.1 and 3.2. Clients stand in a
tree of sums: O(log n) for everything. `multi_lottery` draws the first winner of a superquantum, and
the others are equally far apart. A client that joins, leaves or changes ends the superquantum.

A client that used the fraction f of a quantum is compensated: it counts as 1 / f times its tickets
until it wins again. Tickets are counted in parts, so that this is still a whole number. In
`multi_lottery` compensation comes after each superquantum, in O(n): after each quantum the
superquantum would always end at once where no quantum is used whole.
"""

from typing import Final

import numpy as np

from env.base.jit import compiled, compiled_apart
from env.tickets.records import MULTI_LOTTERY, Shares, holder, price, remember, set_part

PARTS: Final = 1 << 16
"""Of a ticket."""
MOST_WEIGHT: Final = 1 << 40
"""Parts of one client; those of all are below 2^60."""
REMEMBERED: Final = 64.0
"""Quanta of a client whose mean use is compensated after a superquantum.

With fewer, clients that win seldom get too much: the mean of 1 / f lies above 1 / the mean of f.
With more, a change of a client would be noticed late."""


@compiled
def weigh(shares: Shares, client: int) -> None:
    """Counts the tickets of a client anew, and with them the tickets of all."""
    head, clients = shares.head, shares.clients
    weight = 0
    if clients[client].competing == 1:
        exact = clients[client].tickets * clients[client].compensation * PARTS
        weight = max(1, int(min(float(MOST_WEIGHT), exact) + 0.5))
    if weight != clients[client].weight:
        head[0].weight += weight - clients[client].weight
        clients[client].weight = weight
        set_part(shares.nodes, client, weight)


@compiled
def compensate(shares: Shares, client: int) -> None:
    """Weighs a client by the mean of its reported uses, or else by its quantum."""
    clients = shares.clients
    quantum = clients[client].quanta
    mean = quantum * price(shares, client)
    if clients[client].won > 0.0:
        mean = clients[client].consumed * quantum / clients[client].won
    factor = 1.0 / max(mean, 1.0 / MOST_WEIGHT)
    if clients[client].compensation != factor:
        clients[client].compensation = factor
        weigh(shares, client)


@compiled
def keep(clients: np.ndarray, client: int, share: float) -> None:
    """Only a share of the reported uses is still to be compensated."""
    clients[client].won *= share
    clients[client].consumed *= share


@compiled
def allocate(shares: Shares):
    """Draws the client that is served next, of at least one that competes."""
    head, clients = shares.head, shares.clients
    if head[0].mechanism == MULTI_LOTTERY:
        client = next_winner(shares)
        quantum = clients[client].quanta
        remember(shares, client, quantum)
        clients[client].due = 1
        clients[client].fresh += quantum
        clients[client].out += quantum
        return client
    client = holder(shares.nodes, below(head, head[0].weight))
    quantum = clients[client].quanta
    remember(shares, client, quantum)
    if clients[client].won > 0.0:  # one of the reported uses is compensated
        keep(clients, client, max(0.0, 1.0 - quantum / clients[client].won))
    compensate(shares, client)
    return client


@compiled
def used(shares: Shares, client: int, quanta) -> None:
    """A client has really used some quanta of its oldest win whose use was not reported yet.

    Each use is compensated until one more win; late reports can be several at a time.
    """
    clients = shares.clients
    quantum = clients[client].quanta
    remember(shares, client, quanta - quantum)
    clients[client].won += quantum
    clients[client].consumed += quanta * price(shares, client)
    if shares.head[0].mechanism == MULTI_LOTTERY:
        clients[client].due = 1
        if clients[client].out > clients[client].fresh:
            clients[client].late = 1
        clients[client].out = max(0.0, clients[client].out - quantum)
    else:
        compensate(shares, client)


# Draws: splitmix64. Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA
# 2014; the constants are those of Java's SplittableRandom.

STEP = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)
HALF = np.uint64(32)
LOW = np.uint64(0xFFFFFFFF)


@compiled
def draw(head):
    """64 random bits."""
    head[0].random += STEP
    return mixed(head[0].random)


@compiled
def mixed(word):
    """64 bits that look as if they had nothing to do with the given ones."""
    word = (word ^ (word >> np.uint64(30))) * FIRST
    word = (word ^ (word >> np.uint64(27))) * SECOND
    return word ^ (word >> np.uint64(31))


@compiled
def below(head, limit):
    """A whole number of 0 to `limit` - 1: the upper half of the product of `limit` and 64 bits.

    The probability of any range of numbers is exact to 2^-64.
    """
    word = draw(head)
    factor = np.uint64(limit)
    word_high, word_low = word >> HALF, word & LOW
    high, low = factor >> HALF, factor & LOW
    middle = word_high * low + ((word_low * low) >> HALF)
    carried = (middle & LOW) + word_low * high
    return np.int64(word_high * high + (middle >> HALF) + (carried >> HALF))


# Superquanta of `multi_lottery`.


@compiled
def begin(shares: Shares, first) -> None:
    """A superquantum begins, with the ticket of its first winner."""
    head = shares.head
    head[0].first = first
    head[0].space = head[0].weight // head[0].winners
    head[0].space_rest = head[0].weight % head[0].winners
    head[0].taken = head[0].step = 0


@compiled
def spread(step, winners):
    """The next number of 0 to `winners` - 1 in an order that keeps consecutive ones far apart.

    The bits of the counter `step` in reverse: 0, 2, 1, 3 of four. Returns the number and the next
    value of the counter.
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
def offset_of(head, number: int):
    """The offset of the ticket of a winner, by its number."""
    winners, total = head[0].winners, head[0].weight
    offset = head[0].first + number * head[0].space + number * head[0].space_rest // winners
    return offset - (total if offset >= total else 0)


@compiled
def next_winner(shares: Shares):
    """The next winner of the superquantum, or the first of another."""
    head = shares.head
    if head[0].taken >= head[0].winners:
        settle(shares)
        begin(shares, below(head, head[0].weight))
    number, head[0].step = spread(head[0].step, head[0].winners)
    head[0].taken += 1
    return holder(shares.nodes, offset_of(head, number))


@compiled_apart
def settle(shares: Shares) -> None:
    """Compensates the winners of the superquantum that has ended, by the mean of their uses.

    Wins without a report were whole quanta, but of a client that reports late: its uses are still
    to come.
    """
    clients = shares.clients
    for client in range(len(clients)):
        if clients[client].due == 0:
            continue
        if clients[client].late == 0:
            whole = min(clients[client].fresh, clients[client].out)
            clients[client].won += whole
            clients[client].consumed += whole * price(shares, client)
        compensate(shares, client)
        quanta = REMEMBERED * clients[client].quanta
        keep(clients, client, min(1.0, quanta / clients[client].won))
        clients[client].fresh = 0.0
        clients[client].due = 0
