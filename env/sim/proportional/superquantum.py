"""What the lotteries of several winners have in common: a superquantum of so many quanta."""

from env.sim.jit import compiled, compiled_apart
from env.sim.proportional.compensation import settle_one
from env.sim.proportional.sum_tree import set_key
from env.sim.records import NONE


@compiled
def over(shares):
    """Whether all its quanta are taken."""
    return shares.head[0].taken >= shares.head[0].winners


@compiled
def end(shares):
    """Ends it, however many of its quanta are taken."""
    shares.head[0].taken = shares.head[0].winners


@compiled_apart
def settle(shares):
    """Compensates the winners of the superquantum that has ended."""
    client = settle_one(shares)
    while client != NONE:
        if shares.clients[client].competing == 1:
            set_key(shares.nodes, client, shares.clients[client].weight)
        client = settle_one(shares)


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
