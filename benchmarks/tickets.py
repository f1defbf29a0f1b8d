"""What a decision by tickets costs: `python -m benchmarks.tickets [--json]`.

Every mechanism of `env/tickets` at 10, 1,000 and 100,000 clients with 1 to 100 tickets,
beside the same in plain Python (benchmarks/plain_shares.py, with lists and heapq). Compiled
operations are timed as one call for many: allocations by the thousand, joins, leaves and changes of
up to 1,000 clients in random order. Times are those of one thread's processor, best of some
repeats, so other work on the machine blurs them less.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks import plain_shares
from benchmarks.plain_shares import Plain
from env.base.jit import compiled_apart
from env.base.pipes import until_reader_leaves
from env.tickets import operations
from env.tickets.records import MECHANISMS, new_shares

SIZES = (10, 1_000, 100_000)
FITTED = (10, 32, 100, 316, 1_000, 3_162, 10_000, 31_623, 100_000)
"""Sizes that growth is fitted to."""
WINNERS = 16
CAPACITY = 1e12
MOST_TICKETS = 100
AT_ONCE = 1_000
OPERATIONS = ("allocate", "join", "leave", "change")
ALLOCATIONS = {"compiled": 20_000, "plain": 2_000}
"""That are timed at once."""

SETTINGS: dict[str, dict[str, float]] = {
    "multi_lottery": {"winners": WINNERS},
    "drf": {"capacity": CAPACITY},
}
PEERS: dict[str, Callable[[int], Plain]] = {
    "lottery": plain_shares.TreeLottery,
    "multi_lottery": lambda clients: plain_shares.MultiLottery(clients, WINNERS),
    "stride": plain_shares.Stride,
    "hierarchical_stride": plain_shares.HierarchicalStride,
    "drf": lambda clients: plain_shares.Drf(clients, CAPACITY),
}


@dataclass(frozen=True)
class Clients:
    """Who competes, and what is done to whom.

    Attributes:
        tickets: int64 (n,), of each.
        chosen: int64 (k,), who leaves, joins again and changes.
        later: int64 (k,), tickets after the change.
    """

    tickets: np.ndarray
    chosen: np.ndarray
    later: np.ndarray

    @classmethod
    def drawn(cls, count: int) -> Clients:
        """The same for both sides."""
        rng = np.random.default_rng(count)
        chosen = rng.permutation(count)[:AT_ONCE]
        tickets = rng.integers(1, MOST_TICKETS, count, endpoint=True)
        return cls(tickets, chosen, rng.integers(1, MOST_TICKETS, len(chosen), endpoint=True))


@compiled_apart
def allocate_many(shares, out):
    """`allocate` as often as `out` has entries, which become the clients."""
    for index in range(len(out)):
        out[index] = operations.allocate(shares)


@compiled_apart
def join_many(shares, clients, tickets):
    """Some clients join, with standard quanta."""
    for index in range(len(clients)):
        operations.join(shares, clients[index], tickets[index], 1.0)


@compiled_apart
def leave_many(shares, clients):
    """Some clients leave."""
    for index in range(len(clients)):
        operations.leave(shares, clients[index])


@compiled_apart
def change_many(shares, clients, tickets):
    """Some clients get another number of tickets."""
    for index in range(len(clients)):
        operations.change(shares, clients[index], tickets[index])


Steps = dict[str, Callable[[], None]]
"""What is timed, by operation, in the order in which it is done again and again."""


def compiled_steps(name: str, clients: Clients, allocations: int) -> Steps:
    """The operations of a mechanism, each one call."""
    count = len(clients.tickets)
    shares = new_shares(name, count, np.random.SeedSequence(0), **SETTINGS.get(name, {}))
    shares.clients["demand"] = 1.0
    join_many(shares, np.arange(count), clients.tickets)
    out = np.empty(allocations, np.int64)
    return {
        "allocate": lambda: allocate_many(shares, out),
        "leave": lambda: leave_many(shares, clients.chosen),
        "join": lambda: join_many(shares, clients.chosen, clients.tickets[clients.chosen]),
        "change": lambda: change_many(shares, clients.chosen, clients.later),
    }


def plain_steps(name: str, clients: Clients, allocations: int) -> Steps:
    """The same of the plain peer."""
    peer = PEERS[name](len(clients.tickets))
    tickets, later = clients.tickets.tolist(), clients.later.tolist()
    chosen = clients.chosen.tolist()
    for client, amount in enumerate(tickets):
        peer.join(client, amount)

    def allocate() -> None:
        for _ in range(allocations):
            peer.allocate()

    def leave() -> None:
        for client in chosen:
            peer.leave(client)

    def join() -> None:
        for client in chosen:
            peer.join(client, tickets[client])

    def change() -> None:
        for client, amount in zip(chosen, later, strict=True):
            peer.change(client, amount)

    return {"allocate": allocate, "leave": leave, "join": join, "change": change}


def nanoseconds(steps: Steps, each: dict[str, int], repeats: int) -> dict[str, float]:
    """Of one operation, by name: the best of some repeats, after one to warm up.

    Args:
        steps: what is timed.
        each: operations that one call is.
        repeats: how often all steps are done.
    """
    best = dict.fromkeys(steps, float("inf"))
    for repeat in range(repeats + 1):
        for operation, step in steps.items():
            begin = time.thread_time_ns()
            step()
            passed = (time.thread_time_ns() - begin) / each[operation]
            if repeat > 0:
                best[operation] = min(best[operation], passed)
    return best


def measure(name: str, count: int, repeats: int) -> tuple[dict[str, float], dict[str, float]]:
    """Nanoseconds by operation, compiled and plain."""
    clients = Clients.drawn(count)
    found = []
    for steps_of, allocations in zip(
        (compiled_steps, plain_steps), ALLOCATIONS.values(), strict=True
    ):
        each = dict.fromkeys(OPERATIONS, len(clients.chosen)) | {"allocate": allocations}
        found.append(nanoseconds(steps_of(name, clients, allocations), each, repeats))
    return found[0], found[1]


def fitted(name: str, repeats: int) -> dict[str, float]:
    """How the time of an allocation grows with the clients n, by least squares.

    Returns:
        of a + b log2 n: `start_ns` and `ns_per_doubling`; of a n^p: `power`.
    """
    times = []
    for count in FITTED:
        allocations = ALLOCATIONS["compiled"]
        steps = compiled_steps(name, Clients.drawn(count), allocations)
        only = {"allocate": steps["allocate"]}
        times.append(nanoseconds(only, {"allocate": allocations}, repeats)["allocate"])
    doublings = np.log2(FITTED)
    slope, start = np.polyfit(doublings, times, 1)
    power = np.polyfit(doublings, np.log2(times), 1)[0]
    figures = {"start_ns": start, "ns_per_doubling": slope, "power": power}
    return {what: float(value) for what, value in figures.items()}


def measure_all(sizes: Sequence[int], repeats: int) -> dict[str, float]:
    """All figures, flat, by names like `stride_allocate_1000_ns`."""
    figures: dict[str, float] = {}
    for name in MECHANISMS:
        for count in sizes:
            ours, peers = measure(name, count, repeats)
            for operation in OPERATIONS:
                key = f"{name}_{operation}_{count}"
                figures[f"{key}_ns"] = ours[operation]
                figures[f"{key}_plain_ns"] = peers[operation]
                figures[f"{key}_ratio"] = peers[operation] / ours[operation]
            figures[f"{name}_ratio_{count}"] = figures[f"{name}_allocate_{count}_ratio"]
    for name in MECHANISMS:
        for what, value in fitted(name, repeats).items():
            figures[f"{name}_fit_{what}"] = value
    return figures


def print_tables(figures: dict[str, float], sizes: Sequence[int]) -> None:
    """Nanoseconds, and how many times that plain Python takes; then how they grow."""
    console = Console()
    title = "nanoseconds (times as fast as plain Python)"
    table = Table("mechanism", "clients", *OPERATIONS, title=title)
    for name in MECHANISMS:
        for count in sizes:
            cells = [f"{name}_{operation}_{count}" for operation in OPERATIONS]
            shown = [f"{figures[f'{c}_ns']:,.0f} ({figures[f'{c}_ratio']:,.0f}x)" for c in cells]
            table.add_row(name, f"{count:,}", *shown)
    console.print(table)
    # O(n) has the power 1. Records that leave the processor's caches make it more than 0.
    fits = Table("allocate", "ns at 1 client", "ns each doubling", "power of n", title="growth")
    for name in MECHANISMS:
        keys = [f"{name}_fit_{what}" for what in ("start_ns", "ns_per_doubling", "power")]
        fits.add_row(name, *(f"{figures[key]:,.2f}" for key in keys))
    console.print(fits)


@until_reader_leaves()
def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints, as tables or as one JSON object."""
    parser = argparse.ArgumentParser(usage=argparse.SUPPRESS, description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args(arguments)
    if options.repeats < 1:
        parser.error(f"--repeats is {options.repeats}, at least 1 is needed")
    figures = measure_all(SIZES, options.repeats)
    if options.json:
        print(json.dumps(figures))
    else:
        print_tables(figures, SIZES)


if __name__ == "__main__":
    main()
