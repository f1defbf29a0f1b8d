"""Means with their confidence intervals, by Student's t."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A mean with its 95% confidence interval."""

    mean: float
    ci_low: float
    ci_high: float

    @property
    def half_width(self) -> float:
        """What stands behind a ±."""
        return (self.ci_high - self.ci_low) / 2


def interval(values: Sequence[float]) -> Interval:
    """Mean and interval; a single value has an interval of no width."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return Interval(mean, mean, mean)
    half = float(stats.sem(values) * stats.t.ppf(0.5 + CONFIDENCE / 2, len(values) - 1))
    return Interval(mean, mean - half, mean + half)
