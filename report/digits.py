"""How numbers are written: digits follow the interval, shares are in percent, counts are whole."""

import math

from env.score.metrics import Shown
from evaluation.statistics import Estimate

FIGURES = 3
"""Of a number, at most."""
INTERVAL_FIGURES = 2
"""Of half the width of its interval."""
ROUNDING = 1e-9
"""Relative difference of numbers that are equal but for the rounding of sums."""


def number(estimate: Estimate, shown: Shown = "number", sign: str = "") -> str:
    """`4.48`, `41.2%`, `+0.231`: the mean with as many digits as its interval lets one tell.

    Args:
        estimate: a dash stands for NaN.
        shown: whether it is a share, or a count.
        sign: "+" for one before positive numbers, too.
    """
    return _numbers(estimate, shown, sign)[0]


def spread(estimate: Estimate, shown: Shown = "number", sign: str = "") -> str:
    """`4.48 [4.34, 4.67]`; of what does not vary the number alone."""
    value, *ends = _numbers(estimate, shown, sign)
    return f"{value} [{', '.join(ends)}]" if ends else value


def exact(value: float, shown: Shown = "number", sign: str = "") -> str:
    """A number that is no mean, or has no interval."""
    return number(Estimate(value, value, value), shown, sign)


def p_value(p: float) -> str:
    """`<0.001` or two figures."""
    return "<0.001" if p < 0.001 else f"{p:.2g}"


def about(count: int) -> str:
    """`1,200`: a count in two figures."""
    return f"{round(count, 2 - len(str(count))):,}"


def low_of(estimate: Estimate) -> float:
    """Where pictures draw an interval from: symmetric ones reach below 0, where no metric is."""
    return estimate.ci_low if estimate.value < 0 else max(0.0, estimate.ci_low)


def varies(estimate: Estimate) -> bool:
    """Whether there is an interval to speak of."""
    return estimate.half_width > ROUNDING * abs(estimate.value)


def _numbers(estimate: Estimate, shown: Shown, sign: str) -> list[str]:
    """The value, and the ends of the interval where there is one."""
    if math.isnan(estimate.value):
        return ["-"]
    factor = 100.0 if shown == "share" else 1.0
    value, unit = factor * estimate.value, "%" if shown == "share" else ""
    if not varies(estimate):
        return [_alone(value, shown, sign) + unit]
    numbers = (value, factor * estimate.ci_low, factor * estimate.ci_high)
    places = min(
        _place(max(map(abs, numbers)), FIGURES),
        _place(factor * estimate.half_width, INTERVAL_FIGURES),
    )
    if shown == "count" and abs(value) >= 10:
        places = min(places, 0)
    text, *ends = (_rounded(each, places, sign) for each in numbers)
    return [text + unit, *(ends if {text} != set(ends) else [])]


def _alone(value: float, shown: Shown, sign: str) -> str:
    """Whole numbers and counts in full, others in three figures without zeros at the end."""
    whole = math.isclose(value, round(value), rel_tol=ROUNDING, abs_tol=ROUNDING)
    if whole or (shown == "count" and abs(value) >= 10):
        return _rounded(value, 0, sign)
    text = _rounded(value, _place(abs(value), FIGURES), sign)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _place(value: float, figures: int) -> int:
    """How many digits stand behind the point if so many are shown; less than 0 for tens, ..."""
    return figures - 1 - math.floor(math.log10(value))


def _rounded(value: float, places: int, sign: str) -> str:
    rounded = round(value, places)
    return f"{rounded:{sign},.{max(0, places)}f}" if rounded else f"{0:.{max(0, places)}f}"
