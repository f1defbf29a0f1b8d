"""Mechanisms with clients, for tests."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from env.tickets import drf, operations
from env.tickets.records import NOBODY, new_shares

SEED = np.random.SeedSequence(1995)
WHAT_IT_NEEDS: dict[str, dict[str, Any]] = {
    "multi_lottery": {"winners": 8},
    "drf": {"capacity": (1e6, 1e6)},
}
ONE_CHANCE_IN_A_MILLION = 4.89
"""Standard deviations that a normal variable exceeds with that probability."""


class Mechanism:
    """Records of a mechanism, and its operations as methods; amounts are in the resource's unit."""

    def __init__(self, name: str, clients: int, seed: np.random.SeedSequence, **told: Any) -> None:
        self.shares = new_shares(name, clients, seed, **(WHAT_IT_NEEDS.get(name, {}) | told))
        self.quantum = float(told.get("quantum", 1.0))

    def join(self, client: int, tickets: int, quantum: float | None = None) -> None:
        own = 1.0 if quantum is None else quantum / self.quantum
        operations.join(self.shares, client, tickets, own)

    def leave(self, client: int) -> None:
        operations.leave(self.shares, client)

    def change(self, client: int, tickets: int) -> None:
        operations.change(self.shares, client, tickets)

    def allocate(self) -> int | None:
        client = operations.allocate(self.shares)
        return None if client == NOBODY else client

    def allocate_many(self, count: int) -> np.ndarray:
        out = np.empty(count, np.int64)
        operations.allocate_many(self.shares, out)
        return out

    def used(self, client: int, amount: float) -> None:
        operations.used(self.shares, client, amount)

    def forget(self, client: int) -> None:
        operations.forget(self.shares, client)

    def tell_time(self, seconds: float) -> None:
        self.shares.head["clock"][0] = seconds

    def demand(self, client: int, amounts: tuple[float, float]) -> None:
        self.shares.clients["demand"][client] = amounts

    def give_back(self, client: int, amount: float) -> None:
        drf.give_back(self.shares, client, amount / self.quantum)


def made(name: str, tickets: Sequence[int], slots: int | None = None, **told: Any) -> Mechanism:
    """A mechanism with one client after another competing; of `drf`, each task needs 1 and 1."""
    mechanism = Mechanism(name, slots or len(tickets), SEED, **told)
    mechanism.shares.clients["demand"] = 1.0
    for client, amount in enumerate(tickets):
        mechanism.join(client, amount)
    return mechanism


def counts(order: np.ndarray, clients: int) -> np.ndarray:
    """How often each went."""
    return np.bincount(order, minlength=clients)
