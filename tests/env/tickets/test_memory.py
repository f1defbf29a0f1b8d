"""Use remembered with a half-life: case 25, and what it does in every mechanism."""

import math

import numpy as np
import pytest

from env.tickets.records import MECHANISMS
from env.tickets.use import left_of
from tests.env.tickets.made import Mechanism, counts, made


def remembered_rate(mechanism: Mechanism, client: int) -> float:
    """Quanta per second, a mean in which the weight of the past halves per half-life."""
    head, own = mechanism.shares.head[0], mechanism.shares.clients[client]
    return float(left_of(own, head) * math.log(2.0) / head["half_life"])


def test_case_25_constant_use_counts_more_and_more() -> None:
    """Use of 2 a second, told in steps of a thousandth of a half-life."""
    mechanism = made("stride", [1], half_life=100.0)
    remembered = []
    for step in range(1, 3001):
        mechanism.tell_time(step * 0.1)
        mechanism.allocate()
        mechanism.used(0, 2 * 0.1)
        if step % 1000 == 0:
            remembered.append(remembered_rate(mechanism, 0))
    assert remembered == pytest.approx([1, 1.5, 1.75], rel=1e-3)


@pytest.mark.parametrize("name", MECHANISMS)
def test_who_was_away_gets_more_for_a_while_and_then_its_share(name: str) -> None:
    """One client uses all for ten half-lives before another with as many tickets comes."""
    mechanism = made(name, [1], slots=2, half_life=100.0)
    seconds = 0.0

    def share_of_the_other(quanta: int) -> float:
        nonlocal seconds
        order = []
        for _ in range(quanta):
            seconds += 1.0
            mechanism.tell_time(seconds)
            order.append(mechanism.allocate())
            if name == "drf" and len(order) > 50:  # of which so many run at once
                mechanism.give_back(order[-51], 1.0)
        while name == "drf" and order[-50:]:
            mechanism.give_back(order.pop(), 1.0)
            if len(order) < quanta - 50:
                break
        return float(counts(np.array(order), 2)[1] / len(order))

    assert share_of_the_other(1000) == 0
    mechanism.join(1, 1)
    assert share_of_the_other(60) > 0.6
    share_of_the_other(2000)
    assert share_of_the_other(2000) == pytest.approx(0.5, abs=0.06)
