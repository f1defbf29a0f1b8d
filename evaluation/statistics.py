"""Statistics over paired episodes: averages, bootstrap intervals, tests, performance profiles.

All policies play the same episodes, so everything here resamples episodes, the same for all.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field
from scipy import stats

from env.base.schema import Strict


class StatisticsSettings(Strict):
    """How intervals are made (conf/evaluate.yaml explains each)."""

    confidence: Annotated[float, Field(gt=0, lt=1)]
    resamples: Annotated[int, Field(ge=100, le=1_000_000)]
    seed: Annotated[int, Field(ge=0, lt=2**32)]


@dataclass(frozen=True)
class Estimate:
    """A statistic of a sample with its bootstrap interval."""

    value: float
    ci_low: float
    ci_high: float


@dataclass(frozen=True)
class Distribution:
    """What a metric of a policy is over episodes.

    Attributes:
        mean: arithmetic.
        median: half of the episodes are below.
        iqm: interquartile mean, of the middle half of the episodes (Agarwal et al., NeurIPS 2021).
        p95: 95th percentile.
        p99: 99th percentile.
    """

    mean: Estimate
    median: Estimate
    iqm: Estimate
    p95: float
    p99: float


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


Statistic = Callable[..., np.ndarray]


def interquartile_mean(values: np.ndarray, axis: int = -1) -> np.ndarray:
    """Mean without the lowest and the highest quarter."""
    return np.asarray(stats.trim_mean(values, 0.25, axis=axis))


def estimates(
    values: np.ndarray, statistic: Statistic, settings: StatisticsSettings
) -> list[Estimate]:
    """A statistic of every policy with its percentile bootstrap interval (Efron 1979).

    Args:
        values: (P, N), N episodes of each of P policies.
        statistic: of the last axis, which is its argument `axis`.
        settings: of the interval; equal ones resample the same episodes.
    """
    found = statistic(values, axis=-1)
    if values.shape[1] < 2:  # nothing to resample
        return [Estimate(value, value, value) for value in map(float, found)]
    made = stats.bootstrap(
        (values,),
        statistic,
        axis=-1,
        n_resamples=settings.resamples,
        batch=max(1, MOST_RESAMPLED // values.size),
        confidence_level=settings.confidence,
        method="percentile",
        rng=np.random.default_rng(settings.seed),
    ).confidence_interval
    return [Estimate(*map(float, each)) for each in zip(found, made.low, made.high, strict=True)]


MOST_RESAMPLED = 4_000_000
"""Numbers that are resampled at once: 32 MB."""


def distributions(values: np.ndarray, settings: StatisticsSettings) -> list[Distribution]:
    """Averages and tails of a metric of every policy.

    Args:
        values: (P, N). Episodes that have no such number (NaN) are left out, for all policies.
        settings: of the intervals.
    """
    known = values[:, np.isfinite(values).all(axis=0)]
    if known.shape[1] == 0:
        nothing = Estimate(np.nan, np.nan, np.nan)
        return [Distribution(nothing, nothing, nothing, np.nan, np.nan)] * len(values)
    tails = np.percentile(known, (95, 99), axis=1).tolist()
    mean, median, iqm = (
        estimates(known, statistic, settings)
        for statistic in (np.mean, np.median, interquartile_mean)
    )
    return [Distribution(*each) for each in zip(mean, median, iqm, *tails, strict=True)]


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
        Comparison(difference, float(p_value), float(p_holm), probability)
        for difference, p_value, p_holm, probability in zip(
            estimates(differences, np.mean, settings),
            p_values,
            corrected,
            estimates(better, np.mean, settings),
            strict=True,
        )
    ]


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
