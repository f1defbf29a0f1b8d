"""Mechanisms with clients, errors of their orders, and what can be seen of rights."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.tickets import allocate_many
from env.tickets import drf, operations
from env.tickets.records import new_shares
from env.tickets.rights import Currency, Rights

SEED = np.random.SeedSequence(1995)
WHAT_IT_NEEDS: dict[str, dict[str, Any]] = {
    "multi_lottery": {"winners": 8},
    "drf": {"capacity": (1e6, 1e6)},
}
ONE_CHANCE_IN_A_MILLION = 4.89
"""Standard deviations that a normal variable exceeds with that probability."""


class Mechanism:
    """Records of a mechanism, and the functions of `operations` as methods."""

    def __init__(
        self, name: str, clients: int, seed: np.random.SeedSequence = SEED, **told: Any
    ) -> None:
        self.shares = new_shares(name, clients, seed, **(WHAT_IT_NEEDS.get(name, {}) | told))
        self.quantum = float(told.get("quantum", 1.0))

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        return partial(getattr(operations, operation), self.shares)

    def join(self, client: int, tickets: int, quantum: float | None = None) -> None:
        own = 1.0 if quantum is None else quantum / self.quantum
        operations.join(self.shares, client, tickets, own)

    def allocate_many(self, count: int) -> np.ndarray:
        out = np.empty(count, np.int64)
        allocate_many(self.shares, out)
        return out

    def tell_time(self, seconds: float) -> None:
        self.shares.head["clock"][0] = seconds

    def demand(self, client: int, amounts: tuple[float, float]) -> None:
        self.shares.clients["demand"][client] = amounts

    def give_back(self, client: int, amount: float) -> None:
        drf.hold(self.shares, client, -amount / self.quantum)


def made(name: str, tickets: Sequence[int], slots: int | None = None, **told: Any) -> Mechanism:
    """A mechanism with one client after another competing; of `drf`, each task needs 1 and 1."""
    mechanism = Mechanism(name, slots or len(tickets), **told)
    mechanism.shares.clients["demand"] = 1.0
    for client, amount in enumerate(tickets):
        mechanism.join(client, amount)
    return mechanism


def counts(order: np.ndarray, clients: int) -> np.ndarray:
    """How often each went."""
    return np.bincount(order, minlength=clients)


def absolute_errors(order: np.ndarray, tickets: np.ndarray) -> np.ndarray:
    """float64 (C,): the largest |entitled - received| of each client after any allocation.

    It is reached just before or after an allocation of its own, or at the end (Waldspurger 1995,
    chapter 3).
    """
    share = tickets / tickets.sum()
    largest = np.zeros(len(tickets))
    for client in range(len(tickets)):
        own = np.flatnonzero(order == client)
        received = np.arange(len(own))
        before = np.append(np.abs(received - own * share[client]), 0)
        after = np.append(np.abs(received + 1 - (own + 1) * share[client]), 0)
        at_the_end = abs(len(own) - len(order) * share[client])
        largest[client] = max(before.max(), after.max(), at_the_end)
    return largest


def pairwise_error(order: np.ndarray, tickets: np.ndarray, one: int, other: int) -> float:
    """The largest absolute error of a client among the allocations of two."""
    of_both = order[(order == one) | (order == other)] == other
    pair = tickets[[one, other]]
    return float(absolute_errors(of_both.astype(np.int64), pair).max())


def enter(
    rights: Rights, name: str, amount: float, currency: str = "base", by: str | None = None
) -> None:
    """A new client that competes with a ticket."""
    rights.add_client(name)
    rights.issue(amount, currency, to=name, by=by)
    rights.start(name)


def picture(rights: Rights) -> dict[str, Any]:
    """Who holds what, what of it is borrowed, how much is issued, and what it is worth."""
    holders = rights.holders.values()
    return {
        "held": {
            name: Counter((str(ticket), len(ticket.loans)) for ticket in rights.held_by(name))
            for name in rights.holders
        },
        "issued": [unit.issued_amount for unit in holders if isinstance(unit, Currency)],
        "values": rights.values(),
    }
