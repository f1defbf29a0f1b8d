"""Random numbers of compiled code: splitmix64, its state a word of the records.

Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014; its constants
are those of Java's SplittableRandom.
"""

import numpy as np

from env.base.jit import compiled

STEP = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)
HALF = np.uint64(32)
LOW = np.uint64(0xFFFFFFFF)


@compiled
def draw(head):
    """64 random bits."""
    state = head[0].random + STEP
    head[0].random = state
    word = (state ^ (state >> np.uint64(30))) * FIRST
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
