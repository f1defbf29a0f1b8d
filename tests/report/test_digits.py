"""Numbers have the digits that their intervals leave, and three at most."""

import math

import pytest

from env.score.metrics import Shown
from evaluation.statistics import Estimate
from report.digits import exact, number, p_value, spread


@pytest.mark.parametrize(
    ("estimate", "shown", "text"),
    [
        ((4.4812, 4.3399, 4.6713), "number", "4.48 [4.34, 4.67]"),
        ((14.257, 13.412, 15.258), "number", "14.3 [13.4, 15.3]"),
        ((0.0012, -0.1, 0.1), "number", "0.00 [-0.10, 0.10]"),
        ((0.41234, 0.398, 0.426), "share", "41.2% [39.8, 42.6]"),
        ((12.4, 11.0, 13.8), "count", "12 [11, 14]"),
        ((1924.0, 1924.0, 1924.0), "count", "1,924"),
        ((1.0, 1.0 - 1e-12, 1.0 + 1e-12), "number", "1"),
        ((math.nan, math.nan, math.nan), "number", "-"),
    ],
)
def test_digits_follow_the_interval(
    estimate: tuple[float, float, float], shown: Shown, text: str
) -> None:
    assert spread(Estimate(*estimate), shown) == text
    assert number(Estimate(*estimate), shown) == text.partition(" [")[0]


@pytest.mark.parametrize(
    ("value", "shown", "text"),
    [
        (0.0, "number", "0"),
        (0.012345, "number", "0.0123"),
        (5678.9, "number", "5,680"),
        (-0.0493, "share", "-4.93%"),
    ],
)
def test_a_number_that_does_not_vary_has_three_figures(
    value: float, shown: Shown, text: str
) -> None:
    assert exact(value, shown) == text


def test_signs_stand_before_what_is_not_zero() -> None:
    assert exact(0.25, "share", "+") == "+25%"
    assert exact(0.0, "share", "+") == "0%"
    assert spread(Estimate(0.0, -1.0, 1.0), sign="+") == "0.0 [-1.0, +1.0]"


def test_small_p_values_are_bounds() -> None:
    assert [p_value(p) for p in (1.0, 0.04567, 0.0004)] == ["1", "0.046", "<0.001"]
