"""Promises: bounds of the means of metrics over episodes, as they are written in `keep`.

A promise is kept or broken surely where the whole interval of the mean is on one side of the bound.
"""

import math
import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

from env.base.errors import InputError
from env.base.schema import nearest, short
from env.score.metrics import Metric
from evaluation.statistics import Estimate

Verdict = Literal["kept", "unsure", "broken", "unknown"]
"""Unknown is a promise of what these episodes have no number of."""
COMPARATORS = {"<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt}
WRITTEN = re.compile(r" *(<=|<|>=|>) *([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?) *")
LEAST_EPISODES = 2
"""Of which there is an interval."""


@dataclass(frozen=True)
class Promise:
    """What the mean of a metric over episodes has to be; the bound is in its unit."""

    metric: str
    comparator: str
    bound: float

    @classmethod
    def of(cls, metric: str, written: Any) -> Self:
        """A promise as it is written: `<3`.

        Raises:
            ValueError: it is none.
        """
        match = WRITTEN.fullmatch(str(written))
        if match is None or not math.isfinite(float(match[2])):
            raise ValueError(
                f"{metric}: one of <, <=, >, >= and a number is needed, found {short(written)}"
            )
        return cls(metric, match[1], float(match[2]))

    def __str__(self) -> str:
        return f"{self.metric} {self.comparator} {self.bound:g}"

    def verdict(self, mean: Estimate) -> Verdict:
        """Whether a mean keeps it."""
        if math.isnan(mean.value):
            return "unknown"
        keeps = COMPARATORS[self.comparator]
        within = [keeps(end, self.bound) for end in (mean.ci_low, mean.ci_high)]
        return "kept" if all(within) else "unsure" if any(within) else "broken"


def check_promises(
    promises: Sequence[Promise], minimised: str, metrics: Mapping[str, Metric]
) -> None:
    """Refuses promises of what is no metric, and to minimise what is better the higher it is.

    Raises:
        InputError: one is.
    """
    named = {f"keep.{each.metric}": each.metric for each in promises} | {"minimise": minimised}
    for key, name in named.items():
        if name not in metrics:
            raise InputError(f"{key}: {short(name)} is no metric, {nearest(name, list(metrics))}")
    if metrics[minimised].better == "higher":
        raise InputError(f"minimise: {minimised} is better the higher it is")
