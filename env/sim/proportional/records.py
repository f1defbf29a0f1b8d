"""The records of all mechanisms: one of the whole, one a client, and trees over the clients.

Compiled functions take the whole `Shares` and indices. A client is a slot of `clients`: whoever
numbers the clients may give a slot to another after `forget`. Amounts of the resource are in the
caller's unit, core-seconds for example, and so are quanta.
"""

from typing import Final, NamedTuple

import numpy as np

MECHANISMS: Final = (
    "lottery_list",
    "lottery",
    "multi_lottery",
    "stochastic_remainder",
    "stride",
    "hierarchical_stride",
    "eevdf",
    "drf",
    "weighted_fair",
)
"""Names of the mechanisms; the engine knows each by its place."""

MOST_CLIENTS: Final = 1 << 20
MOST_QUANTA: Final = 1 << 16
"""That a client may use at once, and its own quantum in standard ones. Sums then fit 63 bits."""
MOST_WINNERS: Final = 1 << 16
NEVER: Final = (1 << 63) - 1
"""Key of who does not compete."""
RESOURCES: Final = 2
"""That `drf` looks at: cores and memory."""

HEAD = np.dtype(
    [
        ("mechanism", np.int64),  # place in MECHANISMS
        ("competing", np.int64),  # clients that do
        ("tickets", np.int64),  # of those
        ("quantum", np.float64),  # the standard one, in units of the resource
        ("seed", np.uint64),  # of the draws (draws.py)
        ("random", np.uint64),  # their state
        # Lotteries.
        ("weight", np.int64),  # of all that compete, with compensation, in parts of a ticket
        ("move_to_front", np.int64),  # 1: the winner goes to the front of the list
        ("winners", np.int64),  # quanta of a superquantum
        ("taken", np.int64),  # of these
        ("first", np.int64),  # offset of the first winner
        ("step", np.int64),  # of the order within the superquantum
        ("space", np.int64),  # parts between winners
        ("space_rest", np.int64),  # what this division has left
        ("certain", np.int64),  # quanta of the superquantum that are not left to chance
        ("last_won", np.int64),  # last of the chain of clients to be compensated, or NONE
        # Virtual time.
        ("global_pass", np.int64),
        ("global_rest", np.int64),  # what its divisions have left
        ("elapsed", np.int64),  # quanta since then, times STRIDE_ONE
        # Dominant resource fairness.
        ("capacity", np.float64, (RESOURCES,)),
        ("held", np.float64, (RESOURCES,)),
        # Memory of use.
        ("half_life", np.float64),  # seconds; INF: nothing is remembered
        ("clock", np.float64),  # seconds
        ("remembered", np.float64),  # quanta of all, at `remembered_at`
        ("remembered_at", np.float64),
    ]
)

CLIENT = np.dtype(
    [
        ("tickets", np.int64),
        ("competing", np.int64),
        ("known", np.int64),  # 1 from its first join on
        ("quanta", np.float64),  # its own quantum, in standard ones
        # Virtual time.
        ("pass_value", np.int64),  # when it goes next
        ("pass_rest", np.int64),  # what divisions have left, in parts of `tickets`
        ("stride", np.int64),
        ("stride_rest", np.int64),
        ("remain", np.int64),  # pass - global pass, of who does not compete
        # Lotteries.
        ("compensation", np.float64),  # factor of its tickets
        ("weight", np.int64),  # parts of a ticket
        ("place", np.int64),  # in the list
        ("won", np.float64),  # standard quanta that it was given and are remembered, use told
        ("consumed", np.float64),  # what it has really used of them
        ("fresh", np.float64),  # standard quanta that it was given in this superquantum
        ("out", np.float64),  # the same of all, of which no use was told
        ("late", np.int64),  # 1: a use was told after its superquantum had ended
        ("chained", np.int64),  # 1: it is to be compensated when the superquantum ends
        ("next_won", np.int64),  # in the chain of those to be compensated
        # Dominant resource fairness.
        ("demand", np.float64, (RESOURCES,)),  # of one of its tasks
        ("held", np.float64, (RESOURCES,)),
        # Memory of use.
        ("remembered", np.float64),  # quanta, at `remembered_at`
        ("remembered_at", np.float64),
    ]
)

# Entry 1 is the root of a tree, entries 2i and 2i + 1 are the children of entry i, and the second
# half are the leaves, one a client in the order of their slots.
NODE = np.dtype([("key", np.int64), ("client", np.int64)])

# Two groups under one entry: the left one goes first unless `lag` is above `bound`.
PAIR = np.dtype([("lag", np.float64), ("bound", np.float64)])


class Shares(NamedTuple):
    """All records of one mechanism; L is the number of slots, a power of two."""

    head: np.ndarray  # HEAD (1,)
    clients: np.ndarray  # CLIENT (L,)
    nodes: np.ndarray  # NODE (2 L,), a tree, or the list of `lottery_list`
    waiting: np.ndarray  # NODE (2 L,), of `eevdf`: who is not eligible yet
    pairs: np.ndarray  # PAIR (L,), of `hierarchical_stride`, by inner node
