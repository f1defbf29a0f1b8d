"""Mechanisms with clients, for tests."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from env.tickets.mechanism import Mechanism

SEED = np.random.SeedSequence(1995)
WHAT_IT_NEEDS: dict[str, dict[str, Any]] = {
    "multi_lottery": {"winners": 8},
    "drf": {"capacity": (1e6, 1e6)},
}
ONE_CHANCE_IN_A_MILLION = 4.89
"""Standard deviations that a normal variable exceeds with that probability."""


def made(name: str, tickets: Sequence[int], slots: int | None = None, **told: Any) -> Mechanism:
    """A mechanism with one client after another competing; of `drf`, each task needs 1 and 1."""
    mechanism = Mechanism(name, slots or len(tickets), SEED, **(WHAT_IT_NEEDS.get(name, {}) | told))
    for client, amount in enumerate(tickets):
        if name == "drf":
            mechanism.demand(client, (1, 1))
        mechanism.join(client, amount)
    return mechanism


def counts(order: np.ndarray, clients: int) -> np.ndarray:
    """How often each went."""
    return np.bincount(order, minlength=clients)
