"""Statistics over paired episodes: averages, intervals, tests.

All policies play the same episodes. Intervals are Student's t, of means and of means of paired
differences; the test of a difference is the paired t-test, which says the same as its interval.
Both are exact for few seeds whose numbers are normally distributed, right by the central limit
theorem for many episodes, and draw nothing at random. None is corrected for how many there are.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
from pydantic import Field
from scipy import stats

from env.base.schema import Strict

CONFIDENCE = 0.95
"""Of intervals that no configuration asks for, as in conf/evaluate.yaml."""
MOST_COUNTED = 1_000_000
"""Episodes: that it takes more is not worth knowing closer."""


class StatisticsSettings(Strict):
    """How intervals are made (conf/evaluate.yaml)."""

    confidence: Annotated[float, Field(gt=0, lt=1)]


@dataclass(frozen=True)
class Estimate:
    """A mean with its confidence interval."""

    value: float
    ci_low: float
    ci_high: float

    @property
    def half_width(self) -> float:
        """The number behind a ±."""
        return (self.ci_high - self.ci_low) / 2

    @property
    def clear(self) -> bool:
        """Of a difference: whether it is more than chance makes it, as its interval is not at 0."""
        return self.ci_low > 0 or self.ci_high < 0

    def exp(self) -> Self:
        """The geometric mean of a sample, of whose logarithms this is the mean."""
        return type(self)(*np.exp([self.value, self.ci_low, self.ci_high]).tolist())

    def over(self, mean: float) -> Self:
        """A difference as a share of a mean, which is taken as it is; NaN where that is 0."""
        scale = 1.0 / mean if mean else math.nan
        return type(self)(scale * self.value, scale * self.ci_low, scale * self.ci_high)


@dataclass(frozen=True)
class Distribution:
    """What a metric of a policy is over episodes.

    `iqm` is the interquartile mean, of the middle half of the episodes (Agarwal et al., NeurIPS
    2021), `p95` and `p99` are percentiles.
    """

    mean: Estimate
    median: float
    iqm: float
    p95: float
    p99: float


UNKNOWN = Estimate(math.nan, math.nan, math.nan)
"""Of what no episode has a number."""


@dataclass(frozen=True)
class Comparison:
    """A policy against another one on the same episodes.

    The p-value is of no difference, the paired t-test, two-sided: below 0.05 where a 95% interval
    of the difference is not at 0.
    """

    difference: Estimate  # mean of the paired differences
    p_value: float
    probability: Estimate  # that an episode is better, equal ones counting half


def estimate(values: Sequence[float] | np.ndarray, confidence: float) -> Estimate:
    """The mean of a sample and its interval, Student's t; that of a single value has no width."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return Estimate(mean, mean, mean)
    half = float(stats.sem(values) * stats.t.ppf(0.5 + confidence / 2, len(values) - 1))
    return Estimate(mean, mean - half, mean + half)


def count_needed(mean: Estimate, count: int, gap: float, confidence: float) -> float:
    """How many values of this spread it takes until the interval of their mean is short enough.

    Args:
        mean: of `count` values, two or more.
        count: of the values so far.
        gap: what half the width of the interval has to be below.
        confidence: of the interval.

    Returns:
        Infinity: more than `MOST_COUNTED`.
    """

    def factor(number: int) -> float:
        return float(stats.t.ppf(0.5 + confidence / 2, number - 1) / math.sqrt(number))

    spread = mean.half_width / factor(count)
    counts = range(MOST_COUNTED + 1)
    needed = bisect_left(counts, True, lo=2, key=lambda number: factor(number) * spread < gap)
    return needed if needed <= MOST_COUNTED else math.inf


def distributions(values: np.ndarray, confidence: float) -> list[Distribution]:
    """Averages and tails of a metric of every policy.

    Args:
        values: (P, N), N episodes of each of P policies. Episodes in which one has no such number
            (NaN) are left out, for all policies but those that never have one.
        confidence: of the intervals.
    """
    nothing = Distribution(UNKNOWN, *[math.nan] * 4)
    has_any = np.isfinite(values).any(axis=1)
    finite = values[has_any][:, np.isfinite(values[has_any]).all(axis=0)]
    if finite.size == 0:
        return [nothing] * len(values)
    means = [estimate(each, confidence) for each in finite]
    medians = np.median(finite, axis=1).tolist()
    iqms = stats.trim_mean(finite, 0.25, axis=1).tolist()
    tails = np.percentile(finite, (95, 99), axis=1).tolist()
    rows = map(Distribution, means, medians, iqms, *tails)
    return [next(rows) if has else nothing for has in has_any]


def compared(one: np.ndarray, other: np.ndarray, confidence: float) -> Comparison:
    """A policy against another one: (N,) of a metric of which less is better, in every episode."""
    differences = one - other
    mean, count = estimate(differences, confidence), len(differences)
    p_value = float(mean.value == 0)  # where they do not vary
    if count < 2:
        p_value = math.nan
    elif error := stats.sem(differences):
        p_value = float(2 * stats.t.sf(abs(mean.value) / error, count - 1))
    better = estimate((differences < 0) + 0.5 * (differences == 0), confidence)
    share = Estimate(better.value, max(0.0, better.ci_low), min(1.0, better.ci_high))
    return Comparison(mean, p_value, share)
