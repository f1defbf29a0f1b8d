"""Weighted fair queueing by start times: by hand, its bound, and who was away."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.env.sim.proportional.made import made


def order_of(tickets: list[int], count: int) -> list[int]:
    return made("weighted_fair", tickets).allocate_many(count).tolist()


def test_by_hand() -> None:
    """Start tags of tickets 2 : 1 are 0, 1/2, 1, ... and 0, 1, 2, ...; ties to the first client."""
    assert order_of([2, 1], 7) == [0, 1, 0, 0, 1, 0, 0]


@settings(deadline=None, derandomize=True)
@given(
    st.lists(st.integers(1, 50), min_size=2, max_size=8),
    st.integers(0, 2**32 - 1),
)
def test_pairs_stay_within_a_quantum_of_each(tickets: list[int], seed: int) -> None:
    """Goyal, Vin and Cheng, theorem 1: |W_f / r_f - W_m / r_m| <= l_f / r_f + l_m / r_m."""
    rng = np.random.default_rng(seed)
    mechanism = made("weighted_fair", tickets)
    served, longest = np.zeros(len(tickets)), np.ones(len(tickets))
    for _ in range(200):
        client = mechanism.allocate()
        assert client is not None
        amount = float(rng.uniform(0.0, 3.0))
        mechanism.used(client, amount)
        served[client] += amount
        longest[client] = max(longest[client], amount)
        per_ticket = served / tickets
        most = longest / tickets
        apart = np.abs(per_ticket[:, None] - per_ticket[None])
        assert (apart <= most[:, None] + most[None] + 1e-6).all()


def test_who_was_away_has_nothing_to_make_up_for() -> None:
    """Both competed once; then one alone has 100 turns. Stride gives the other its due, too."""
    mechanism = made("weighted_fair", [1, 1])
    assert [mechanism.allocate(), mechanism.allocate()] == [0, 1]
    mechanism.leave(1)
    assert mechanism.allocate_many(100).tolist() == [0] * 100
    mechanism.join(1, 1)
    assert np.bincount(mechanism.allocate_many(10)).tolist() == [5, 5]


def test_who_used_too_much_before_it_left_waits_when_it_returns() -> None:
    mechanism = made("weighted_fair", [1, 1])
    assert mechanism.allocate() == 0
    mechanism.used(0, 5.0)
    mechanism.leave(0)
    assert mechanism.allocate() == 1
    mechanism.join(0, 1)
    assert mechanism.allocate_many(5).tolist() == [1, 1, 1, 1, 0]


@pytest.mark.parametrize("tickets", [1, 7])
def test_virtual_time_counts_on_for_ever(tickets: int) -> None:
    """Beyond 2^20 quanta of one ticket passes are counted anew; shares stay as they are."""
    mechanism = made("weighted_fair", [tickets, 1])
    for _ in range(200):
        client = mechanism.allocate()
        assert client is not None
        mechanism.used(client, 60_000.0)
    mechanism.allocate_many(1_000_000)  # whoever is ahead has waited for the other
    found = np.bincount(mechanism.allocate_many(8 * 700), minlength=2)
    assert found[0] == pytest.approx(tickets * found[1], abs=tickets + 1)
