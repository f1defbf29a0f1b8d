"""Statistics worked out by hand, and what holds for any sample."""

import math

import numpy as np
import pytest

from evaluation.statistics import compared, count_needed, distributions, estimate


def test_the_averages_of_a_sample() -> None:
    (found,) = distributions(np.array([[1.0, 2.0, 3.0, 10.0]]), 0.95)
    assert (found.mean.value, found.median, found.iqm) == (4.0, 2.5, 2.5)
    # Linear between the last two values: 3 + 0.85 * 7 and 3 + 0.97 * 7.
    assert (found.p95, found.p99) == (pytest.approx(8.95), pytest.approx(9.79))
    (found,) = distributions(np.array([[8.0, 100.0, 1.0, 2.0, 3.0, 4.0, 7.0, -50.0]]), 0.95)
    assert found.iqm == pytest.approx(4.0)  # of -50 1 | 2 3 4 7 | 8 100


def test_the_interval_of_few_seeds_by_hand() -> None:
    # Standard error of 1 2 3: 1 / sqrt(3); of Student's t with 2 degrees 97.5% are below 4.303.
    found = estimate([1.0, 2.0, 3.0], 0.95)
    assert found.value == 2.0
    assert found.half_width == pytest.approx(4.303 / math.sqrt(3), abs=1e-3)
    assert found.ci_low == pytest.approx(2.0 - found.half_width)


@pytest.mark.parametrize("values", [[4.5], [4.5, 4.5, 4.5]])
def test_an_interval_without_spread_has_no_width(values: list[float]) -> None:
    (found,) = distributions(np.array([values]), 0.95)
    assert (found.mean.value, found.mean.ci_low, found.mean.ci_high) == (4.5, 4.5, 4.5)
    assert found.median == found.iqm == found.p99 == 4.5


def test_a_share_has_an_interval_of_shares() -> None:
    # Better in nine of ten episodes: 0.9 + t * 0.1 would be beyond 1.
    found = compared(np.array([1.0] * 9 + [3.0]), np.full(10, 2.0), 0.95)
    assert found.probability.value == pytest.approx(0.9)
    assert found.probability.ci_high == 1.0 and found.probability.ci_low < 0.9


def test_episodes_without_a_number_are_left_out() -> None:
    nan = math.nan
    one, other = distributions(np.array([[1.0, nan, 3.0], [2.0, 5.0, 6.0]]), 0.95)
    assert (one.mean.value, other.mean.value) == (2.0, 4.0)
    one, never = distributions(np.array([[1.0, 3.0], [nan, nan]]), 0.95)
    assert one.mean.value == 2.0 and math.isnan(never.mean.value)
    (none,) = distributions(np.array([[nan, nan]]), 0.95)
    assert math.isnan(none.mean.value) and math.isnan(none.p99)


def test_policies_are_compared_in_pairs() -> None:
    one, other = np.array([1.0, 3.0, 2.0, 9.0]), np.array([2.0, 4.0, 6.0, 9.0])
    better, itself, worse = (compared(each, other, 0.95) for each in (one, other, other + 10))
    assert better.difference.value == pytest.approx((-1 - 1 - 4 + 0) / 4)
    # Standard error: sqrt(9 / 3) / sqrt(4); 97.5% of Student's t with 3 degrees are below 3.182.
    assert better.difference.ci_high == pytest.approx(-1.5 + 3.182 * math.sqrt(3) / 2, abs=1e-3)
    # t = 1.5 / (sqrt(3) / 2) = sqrt(3): beyond are 1/4 - 1/(2 pi) with 3 degrees, on either side.
    assert better.p_value == pytest.approx(1 / 2 - 1 / math.pi)
    # Better in three of four episodes; the equal one counts half.
    assert better.probability.value == pytest.approx(3.5 / 4)
    assert (itself.difference.value, itself.p_value, itself.probability.value) == (0, 1, 0.5)
    # Ten more in every episode: no doubt left.
    assert (worse.difference.ci_low, worse.difference.ci_high, worse.p_value) == (10, 10, 0)
    assert worse.probability.value == 0
    assert math.isnan(compared(one[:1], other[:1], 0.95).p_value)


def test_the_interval_and_the_test_never_disagree() -> None:
    random = np.random.default_rng(4)
    found = []
    for _ in range(400):
        one, other = random.lognormal(0.0, 1.5, (2, 30)) * [[0.6], [1.0]]
        each = compared(one, other, 0.95)
        assert each.difference.clear == (each.p_value < 0.05)
        found.append(each.difference.clear)
    assert 40 < sum(found) < 360  # both happen


def test_how_many_episodes_settle_a_difference() -> None:
    # The spread is sqrt(40 / 9) = 2.108: 2.093 of it / sqrt(20) is 0.99, 2.101 / sqrt(19) is 1.02.
    found = estimate([3.0, -1.0] * 5, 0.95)
    assert not found.clear and count_needed(found, 10, 1.0, 0.95) == 20
    assert count_needed(found, 10, 0.0, 0.95) == math.inf
