"""Dominant resource fairness: cases 23, 24 and 26."""

import math

import numpy as np
import pytest

from env.tickets import drf
from env.tickets.records import NOBODY
from tests.env.tickets.made import SEED, Mechanism, counts


def cluster(*demands: tuple[float, float], capacity: tuple[float, float] = (9, 18)) -> Mechanism:
    mechanism = Mechanism("drf", len(demands), SEED, capacity=capacity)
    for client, demand in enumerate(demands):
        mechanism.demand(client, demand)
        mechanism.join(client, 1)
    return mechanism


def dominant_shares(mechanism: Mechanism) -> list[float]:
    capacity = mechanism.shares.head["capacity"][0]
    held = mechanism.shares.clients["held"]
    return [drf.dominant_share(one, capacity) for one in held]


def test_case_23_three_and_two_tasks_and_one_that_ends_makes_room() -> None:
    mechanism = cluster((1, 4), (3, 1))
    order = mechanism.allocate_many(10)
    assert counts(order[order >= 0], 2).tolist() == [3, 2]
    assert mechanism.allocate() == NOBODY
    assert dominant_shares(mechanism) == pytest.approx([2 / 3, 2 / 3])
    assert mechanism.shares.head["held"][0].tolist() == [9, 14]
    mechanism.give_back(1, 1.0)
    assert dominant_shares(mechanism) == pytest.approx([2 / 3, 1 / 3])
    assert mechanism.allocate() == 1
    assert mechanism.allocate() == NOBODY


def test_a_task_that_holds_less_counts_less_and_own_quanta_more() -> None:
    mechanism = Mechanism("drf", 2, SEED, capacity=(100, 100))
    for client, quantum in ((0, 1.0), (1, 4.0)):
        mechanism.demand(client, (1, 1))
        mechanism.join(client, 1, quantum)
    order = mechanism.allocate_many(10)
    assert counts(order, 2).tolist() == [8, 2]
    mechanism.used(1, 1.0)  # of the 4 that a task of its own needs
    assert mechanism.shares.clients["held"][:2, 0].tolist() == [8, 5]
    mechanism.give_back(1, 1.0)
    assert mechanism.shares.head["held"][0].tolist() == [12, 12]


Amounts = dict[str, float]


@pytest.mark.parametrize(
    "used, quota, lendable, weight, expected",
    [
        ({"gpu": 7}, {"gpu": 5}, {"gpu": 10}, 1, 200),
        ({"gpu": 7}, {"gpu": 5}, {"gpu": 10}, 2, 100),
        ({"gpu": 7}, {"gpu": 5}, {"gpu": 10}, 0.5, 400),
        ({"gpu": 7}, {"gpu": 5}, {"gpu": 10}, 0, math.inf),
        ({"cpu": 3}, {"cpu": 2}, {"cpu": 10}, 1, 100),
        ({"cpu": 1 + 4}, {"cpu": 2}, {"cpu": 10}, 1, 300),
        ({"cpu": 2}, {"cpu": 2}, {"cpu": 10}, 1, 0),
        ({"cpu": 2}, {"cpu": 2}, {"cpu": 10}, 0, 0),
        ({"cpu": 3, "gpu": 7}, {"cpu": 2, "gpu": 5}, {"cpu": 10, "gpu": 10}, 1, 200),
    ],
)
def test_case_24_shares_of_what_is_borrowed(
    used: Amounts, quota: Amounts, lendable: Amounts, weight: float, expected: float
) -> None:
    """On the level of the mechanism: quotas are of the platform.

    The share is thousandths of what can be lent that are borrowed.
    """
    borrowed = np.array([max(0.0, used[name] - quota[name]) for name in used])
    share = 1000 * drf.dominant_share(borrowed, np.array([lendable[name] for name in used]))
    assert drf.weighted(share, weight) == pytest.approx(expected)


@pytest.mark.parametrize(
    "used, guaranteed, expected",
    [
        ((100, 2500), (1000, 5000), 0.5),
        ((100, 0), (0, 0), 1.0),
        ((100, 2500), (0, 5000), 1.0),
        ((0, 2500), (0, 5000), 0.5),
        ((0, 0), (0, 0), 0.0),
    ],
)
def test_case_26_shares_of_what_is_guaranteed(
    used: tuple[float, float], guaranteed: tuple[float, float], expected: float
) -> None:
    assert drf.dominant_share(np.array(used, float), np.array(guaranteed, float)) == expected
