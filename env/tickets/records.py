"""The records of a mechanism: one of the whole, one a client, and a tree over the clients.

Below are what mechanisms have in common: trees, and past use that is remembered. Compiled functions
take the whole `Shares` and a client as its slot in `clients`. Amounts of the resource and quanta
are in the caller's unit, core-seconds for example.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from env.base.jit import compiled, compiled_apart

MECHANISMS: Final = ("lottery", "multi_lottery", "stride", "hierarchical_stride", "drf")
"""Names of the mechanisms; in compiled code each is a number, its position."""
LOTTERY, MULTI_LOTTERY, STRIDE, HIERARCHICAL_STRIDE, DRF = range(len(MECHANISMS))

NOBODY: Final = -1
"""In place of a client."""
INF: Final = np.inf

MOST_QUANTA: Final = 1 << 16
"""That a client may use at once, and its quantum in standard ones. Sums then fit 63 bits."""
MOST_WINNERS: Final = 1 << 16
NEVER: Final = (1 << 63) - 1
"""Key of a client that does not compete."""
RESOURCES: Final = 2
"""Of `drf`: cores and memory."""

HEAD = np.dtype(
    [
        ("mechanism", np.int64),  # position in MECHANISMS
        ("competing", np.int64),  # clients that do
        ("tickets", np.int64),  # of those
        ("quantum", np.float64),  # the standard one, in units of the resource
        ("random", np.uint64),  # state of the draws
        # Lotteries.
        ("weight", np.int64),  # of all that compete, with compensation, in parts of a ticket
        ("winners", np.int64),  # quanta of a superquantum
        ("taken", np.int64),  # of these
        ("first", np.int64),  # offset of the first winner
        ("step", np.int64),  # of the order within the superquantum
        ("space", np.int64),  # parts between winners
        ("space_rest", np.int64),  # what this division has left
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
        ("tickets", np.int64),  # 0 of a client that has never competed
        ("competing", np.int64),
        ("quanta", np.float64),  # its quantum, in standard ones
        # Virtual time.
        ("pass_value", np.int64),  # when it is served next
        ("pass_rest", np.int64),  # what divisions have left, in parts of `tickets`
        ("stride", np.int64),  # how much its quantum advances it
        ("stride_rest", np.int64),  # what this division leaves
        ("remain", np.int64),  # pass - global pass, of a client that does not compete
        # Lotteries.
        ("compensation", np.float64),  # factor of its tickets
        ("weight", np.int64),  # parts of a ticket, 0 of a client that does not compete
        ("won", np.float64),  # standard quanta that it was given and are remembered, use reported
        ("consumed", np.float64),  # what it has really used of them
        ("fresh", np.float64),  # standard quanta that it was given in this superquantum
        ("out", np.float64),  # the same of all, whose use was not reported
        ("late", np.int64),  # 1: a use was reported after its superquantum had ended
        ("due", np.int64),  # 1: it is to be compensated when the superquantum ends
        # Dominant resource fairness.
        ("demand", np.float64, (RESOURCES,)),  # of one of its tasks
        ("held", np.float64, (RESOURCES,)),
        # Memory of use.
        ("remembered", np.float64),  # quanta, at `remembered_at`
        ("remembered_at", np.float64),
    ]
)
BLANK = np.zeros(1, CLIENT)
"""A client that has never competed."""

# Entry 1 is the root of a tree, entries 2i and 2i + 1 are the children of entry i, and the second
# half are the leaves, one a client in the order of their slots. An entry of a tree of sums is the
# sum of its children, one of a tournament the least of them, of equal keys that of the lowest slot.
NODE = np.dtype([("key", np.int64), ("client", np.int64)])

# Two groups under one entry: the left one goes first unless `lag` is above `bound`.
PAIR = np.dtype([("lag", np.float64), ("bound", np.float64)])


class Shares(NamedTuple):
    """All records of a mechanism; L is the number of slots, a power of two."""

    head: np.ndarray  # HEAD (2,), the second as the first is before anybody competes
    clients: np.ndarray  # CLIENT (L,)
    nodes: np.ndarray  # NODE (2 L,), a tree
    pairs: np.ndarray  # PAIR (L,), of `hierarchical_stride`, by inner node


def new_shares(
    mechanism: str, clients: int, seed: np.random.SeedSequence, **settings: float | Sequence[float]
) -> Shares:
    """Records without any client.

    Args:
        mechanism: one of MECHANISMS.
        clients: slots that are needed, from 0 on; compiled code does not look whether there are
            more.
        seed: of all draws.
        settings: fields of HEAD where they are not the default: `quantum` (1), `half_life` (inf:
            nothing is remembered), `winners` (1) of `multi_lottery`, `capacity` of `drf` (1 each).
    """
    slots = 1 << max(1, clients - 1).bit_length()
    head = np.zeros(2, HEAD)
    head["mechanism"] = MECHANISMS.index(mechanism)
    head["random"] = seed.generate_state(1, np.uint64)
    default = {"quantum": 1.0, "half_life": INF, "winners": 1, "capacity": 1.0}
    for name, value in {**default, **settings}.items():
        head[name] = value
    pairs = slots if mechanism == "hierarchical_stride" else 1
    shares = Shares(head, np.zeros(slots, CLIENT), np.zeros(2 * slots, NODE), np.zeros(pairs, PAIR))
    reset(shares)
    return shares


@compiled_apart
def reset(shares: Shares) -> None:
    """Nobody has ever competed; the draws begin anew."""
    head, clients, nodes, pairs = shares
    head[0] = head[1]
    for client in range(len(clients)):
        clients[client] = BLANK[0]
    by_least_key = head[0].mechanism == STRIDE or head[0].mechanism == DRF
    for node in range(len(nodes)):
        nodes[node].key = NEVER if by_least_key else 0
        nodes[node].client = max(0, node - len(clients))
    for pair in range(len(pairs)):
        pairs[pair].lag = 0.0
        pairs[pair].bound = INF


# Trees over all clients.

ONE = np.uint64(1)


@compiled
def set_part(nodes: np.ndarray, client: int, key: int) -> None:
    """Gives a client another key of a tree of sums."""
    node = len(nodes) // 2 + client
    more = key - nodes[node].key
    while node >= 1:
        nodes[node].key += more
        node //= 2


@compiled
def follow(nodes: np.ndarray, node: int, offset):
    """The child that holds an offset of an inner node, and the offset there."""
    left = nodes[2 * node].key
    beyond = offset >= left
    return 2 * node + (1 if beyond else 0), offset - (left if beyond else 0)


@compiled
def holder(nodes: np.ndarray, offset):
    """The client that holds an offset of the root."""
    node = 1
    while node < len(nodes) // 2:
        node, offset = follow(nodes, node, offset)
    return node - len(nodes) // 2


@compiled
def set_key(nodes: np.ndarray, client: int, key: int) -> None:
    """Gives a client another key of a tournament and plays its matches; the winner is at entry 1.

    Without branches, which a processor would have to guess: that makes it three times as fast.
    """
    node = np.uint64(len(nodes) // 2 + client)
    nodes[node].key = key
    while node > ONE:
        other_key, other = nodes[node ^ ONE].key, nodes[node ^ ONE].client
        loses = (other_key < key) | ((other_key == key) & (other < client))
        client = other if loses else client
        key = min(key, other_key)
        node >>= ONE
        nodes[node].key = key
        nodes[node].client = client


# Past use, remembered with a half-life: a client that had more than its share pays more. The price
# of a quantum is 2^(u / s - 1), at least 1/2 and at most 2: u is the client's share of all
# remembered use, s its share of the tickets. The formula is Slurm's fair-share factor 2^(-u / s),
# turned from a priority into a price that is 1 at the entitled share.


@compiled
def left_of(record, head):
    """Quanta that are still remembered of a client, or of all."""
    return record.remembered * 2.0 ** (-(head.clock - record.remembered_at) / head.half_life)


@compiled
def remember(shares: Shares, client: int, quanta) -> None:
    """A client has used some standard quanta; less than 0 takes some back."""
    head, clients = shares.head, shares.clients
    if head[0].half_life < INF:
        clients[client].remembered = max(0.0, left_of(clients[client], head[0]) + quanta)
        clients[client].remembered_at = head[0].clock
        head[0].remembered = max(0.0, left_of(head[0], head[0]) + quanta)
        head[0].remembered_at = head[0].clock


@compiled
def price(shares: Shares, client: int):
    """What a quantum of a client counts as."""
    head, row = shares.head[0], shares.clients[client]
    if head.half_life == INF or row.tickets == 0:
        return 1.0
    everything = left_of(head, head)
    if everything <= 0.0:
        return 1.0
    all_tickets = head.tickets + (0 if row.competing == 1 else row.tickets)
    share = row.tickets / all_tickets
    return 2.0 ** min(1.0, left_of(row, head) / everything / share - 1.0)
