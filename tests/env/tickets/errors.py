"""Errors of an order of allocations, by the definitions of Waldspurger 1995, chapter 3."""

import numpy as np


def absolute_errors(order: np.ndarray, tickets: np.ndarray) -> np.ndarray:
    """float64 (C,): the largest |entitled - received| of each client after any allocation.

    It is reached just before or after an allocation of its own, or at the end.
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
