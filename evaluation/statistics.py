"""Statistics over paired episodes: averages, intervals, tests, performance profiles.

All policies play the same episodes. Intervals are Student's t, of means and of means of paired
differences. They are exact for few seeds whose numbers are normally distributed, right by the
central limit theorem for many episodes, and draw nothing at random.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final, Self

import numpy as np
from pydantic import Field
from scipy import stats

from env.base.schema import Strict

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
        """What stands behind a ±."""
        return (self.ci_high - self.ci_low) / 2


@dataclass(frozen=True)
class Distribution:
    """What a metric of a policy is over episodes.

    Attributes:
        mean: arithmetic, with its interval.
        median: half of the episodes are below.
        iqm: interquartile mean, of the middle half of the episodes (Agarwal et al., NeurIPS 2021).
        p95: 95th percentile.
        p99: 99th percentile.
    """

    mean: Estimate
    median: float
    iqm: float
    p95: float
    p99: float


NOTHING: Final = Distribution(Estimate(np.nan, np.nan, np.nan), *[np.nan] * 4)
"""Of a policy that never has such a number."""


@dataclass(frozen=True)
class Comparison:
    """A policy against another one on the same episodes.

    Attributes:
        difference: mean of the paired differences.
        p_value: of no difference, Wilcoxon's signed-rank test, two-sided.
        p_holm: the same, corrected for the number of comparisons.
        probability: that an episode is better, equal ones counting half.
    """

    difference: Estimate
    p_value: float
    p_holm: float
    probability: Estimate

    @property
    def reversed(self) -> Self:
        """The other policy against this one."""
        one, share = self.difference, self.probability
        return replace(
            self,
            difference=Estimate(0.0 - one.value, 0.0 - one.ci_high, 0.0 - one.ci_low),  # not -0.0
            probability=Estimate(1.0 - share.value, 1.0 - share.ci_high, 1.0 - share.ci_low),
        )


def estimate(values: Sequence[float] | np.ndarray, confidence: float) -> Estimate:
    """The mean of a sample and its interval, Student's t; that of a single value has no width."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return Estimate(mean, mean, mean)
    half = float(stats.sem(values) * stats.t.ppf(0.5 + confidence / 2, len(values) - 1))
    return Estimate(mean, mean - half, mean + half)


def count_needed(values: np.ndarray, gap: float, confidence: float) -> int | None:
    """How many values of this spread it takes until the interval of their mean is short enough.

    Args:
        values: two or more.
        gap: what half the width of the interval has to be below.
        confidence: of the interval.

    Returns:
        None: more than `MOST_COUNTED`.
    """
    spread = np.std(values, ddof=1)

    def enough(count: int) -> bool:
        half = stats.t.ppf(0.5 + confidence / 2, count - 1) * spread / math.sqrt(count)
        return bool(half < gap)

    count = bisect_left(range(MOST_COUNTED + 1), True, lo=2, key=enough)
    return count if count <= MOST_COUNTED else None


def interquartile_mean(values: np.ndarray) -> np.ndarray:
    """Mean over the last axis without the lowest and the highest quarter."""
    return np.asarray(stats.trim_mean(values, 0.25, axis=-1))


def distributions(values: np.ndarray, settings: StatisticsSettings) -> list[Distribution]:
    """Averages and tails of a metric of every policy.

    Args:
        values: (P, N), N episodes of each of P policies. Episodes in which one has no such number
            (NaN) are left out, for all policies but those that never have one.
        settings: of the intervals.
    """
    has_any = np.isfinite(values).any(axis=1)
    known = values[has_any][:, np.isfinite(values[has_any]).all(axis=0)]
    if known.size == 0:
        return [NOTHING] * len(values)
    means = [estimate(each, settings.confidence) for each in known]
    medians, iqms = np.median(known, axis=1).tolist(), interquartile_mean(known).tolist()
    tails = np.percentile(known, (95, 99), axis=1).tolist()
    found = map(Distribution, means, medians, iqms, *tails)
    return [next(found) if has else NOTHING for has in has_any]


def comparisons(
    values: np.ndarray, pairs: Sequence[tuple[int, int]], settings: StatisticsSettings
) -> list[Comparison]:
    """Policies compared in pairs; p-values are corrected for the number of pairs.

    Args:
        values: (P, N) of a metric of which less is better.
        pairs: positions of a policy and of the one it is compared with. A policy and itself are
            equal, and not counted.
        settings: of the intervals.
    """
    if not pairs:
        return []
    policies, others = np.array(pairs).T
    differences = values[policies] - values[others]
    better = (differences < 0) + 0.5 * (differences == 0)
    p_values = np.array([signed_rank(each) for each in differences])
    corrected = np.ones(len(pairs))
    corrected[policies != others] = holm(p_values[policies != others])
    return [
        Comparison(
            estimate(difference, settings.confidence),
            float(p_value),
            float(p_holm),
            _share(share, settings.confidence),
        )
        for difference, p_value, p_holm, share in zip(
            differences, p_values, corrected, better, strict=True
        )
    ]


def _share(counted: np.ndarray, confidence: float) -> Estimate:
    """The mean of numbers from 0 to 1, as is its interval."""
    found = estimate(counted, confidence)
    return Estimate(found.value, max(0.0, found.ci_low), min(1.0, found.ci_high))


def speedups(times: np.ndarray, first: int, settings: StatisticsSettings) -> list[Estimate]:
    """How much faster every policy is than one of them: the geometric mean of ratios of times.

    Args:
        times: (P, N) s, above 0.
        first: position of the policy whose times are divided by those of each.
        settings: of the intervals, which are those of the mean logarithm.
    """
    logarithms = np.log(times[first] / times)
    found = [estimate(each, settings.confidence) for each in logarithms]
    return [Estimate(*np.exp([each.value, each.ci_low, each.ci_high]).tolist()) for each in found]


def signed_rank(differences: np.ndarray) -> float:
    """p-value of Wilcoxon's signed-rank test, two-sided, as Demsar 2006 advises for pairs."""
    if not differences.any():
        return 1.0
    return float(stats.wilcoxon(differences).pvalue)


def holm(p_values: Sequence[float] | np.ndarray) -> list[float]:
    """p-values corrected for their number: the step-down method of Holm 1979."""
    count = len(p_values)
    corrected = np.empty(count)
    order = np.argsort(p_values)
    factors = count - np.arange(count)
    corrected[order] = np.maximum.accumulate(np.asarray(p_values)[order] * factors)
    return [float(min(1.0, each)) for each in corrected]


LARGEST_RATIO = 4.0
"""Where pictures of performance profiles end."""


def performance_profiles(values: np.ndarray, ratios: np.ndarray) -> np.ndarray:
    """(P, R) share of episodes in which a policy is within a ratio of the episode's best policy.

    Source: Dolan, More, Mathematical Programming 2002.

    Args:
        values: (P, N) of a metric above 0 of which less is better.
        ratios: (R,), 1 or more.
    """
    to_best = values / values.min(axis=0)
    profiles: np.ndarray = (to_best[:, :, None] <= ratios).mean(axis=1)
    return profiles
