"""Promises: who keeps them where, and what the cheapest way to keep them is.

A promise is a bound of the mean of a metric over episodes. It is kept or broken surely where the
whole interval of the mean is on one side of the bound.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import pandas as pd

from agents.scheduler import Kind
from env.base.errors import InputError
from env.base.schema import nearest, short
from env.score.metrics import Metric
from evaluation.statistics import UNKNOWN, Estimate, count_needed, estimate

Verdict = Literal["kept", "unsure", "broken", "unknown"]
VERDICTS: tuple[Verdict, ...] = ("kept", "unsure", "broken", "unknown")
"""In the order of tables; unknown is a promise of what these episodes have no number of."""
SEVERITY: tuple[Verdict, ...] = ("kept", "unsure", "unknown", "broken")
"""Of several promises the last of these verdicts counts."""
COMPARATORS: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
}
WRITTEN = re.compile(r" *(<=|<|>=|>) *([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?) *")
LEAST_EPISODES = 2
"""Of which there is an interval."""


@dataclass(frozen=True)
class Promise:
    """What the mean of a metric over episodes has to be.

    Attributes:
        metric: its name.
        comparator: of `COMPARATORS`.
        bound: in its unit.
    """

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
        bound = float(match[2]) if match else math.nan
        if match is None or not math.isfinite(bound):
            raise ValueError(
                f"{metric}: one of <, <=, >, >= and a number is needed, found {short(written)}"
            )
        return cls(metric, match[1], bound)

    def __str__(self) -> str:
        return f"{self.metric} {self.comparator} {self.bound:g}"

    def verdict(self, mean: Estimate) -> Verdict:
        """Whether a mean keeps it."""
        if math.isnan(mean.value):
            return "unknown"
        within = [self.kept_by(end) for end in (mean.ci_low, mean.ci_high)]
        if all(within):
            return "kept"
        return "unsure" if any(within) else "broken"

    def kept_by(self, value: float) -> bool:
        """Whether a single number keeps it; one that is not known does not."""
        return COMPARATORS[self.comparator](value, self.bound)


@dataclass
class Judged:
    """One policy in one scenario.

    Attributes:
        scenario: where it played; "" where nothing is swept.
        policy: its name.
        kind: what it is.
        means: of the promised metrics, in the order of the promises.
        spent: mean of what is minimised.
        more: that less what the cheapest spends, a mean of paired differences; NaN where nobody is.
        verdict: the worst of those of the promises.
    """

    scenario: str
    policy: str
    kind: Kind
    means: tuple[Estimate, ...]
    spent: Estimate
    more: Estimate
    verdict: Verdict


@dataclass(frozen=True)
class Judgement:
    """Who keeps the promises where.

    Attributes:
        promises: as given.
        minimised: name of a metric.
        metrics: by name.
        rows: those that keep them first, the cheapest of them on top.
        best: the cheapest that surely keeps them, references aside; None where there is none.
        perhaps: the cheapest whose means keep them while an interval does not, references aside, if
            it is cheaper than `best`; None where there is none.
        settling: of how many episodes in all the intervals of `perhaps` would about keep them, were
            means and spread to stay; None where there is no `perhaps`, or no end of episodes.
        confidence: of the intervals.
    """

    promises: tuple[Promise, ...]
    minimised: str
    metrics: Mapping[str, Metric[Any]]
    rows: tuple[Judged, ...]
    best: Judged | None
    perhaps: Judged | None
    settling: int | None
    confidence: float

    def of(self, verdict: Verdict) -> tuple[Judged, ...]:
        """The rows with a verdict."""
        return tuple(row for row in self.rows if row.verdict == verdict)


def check_promises(
    promises: Sequence[Promise], minimised: str, metrics: Mapping[str, Metric[Any]], episodes: int
) -> None:
    """Refuses promises that cannot be judged.

    Args:
        promises: as given.
        minimised: name of a metric.
        metrics: of the results, by name.
        episodes: of all seeds together.

    Raises:
        InputError: a metric is unknown or higher is better of what is minimised, or there are too
            few episodes.
    """
    for key, name in (
        *((f"keep.{each.metric}", each.metric) for each in promises),
        ("minimise", minimised),
    ):
        if name not in metrics:
            raise InputError(f"{key}: {short(name)} is no metric, {nearest(name, list(metrics))}")
    if metrics[minimised].better == "higher":
        raise InputError(f"minimise: {minimised} is better the higher it is")
    if episodes < LEAST_EPISODES:
        raise InputError(
            f"keep: {LEAST_EPISODES} episodes or more have an interval, found {episodes}"
        )


def judge(
    results: pd.DataFrame,
    promises: Sequence[Promise],
    minimised: str,
    metrics: Mapping[str, Metric[Any]],
    confidence: float,
) -> Judgement:
    """Judges every policy in every scenario.

    Args:
        results: rows of results.parquet; all have played the same episodes.
        promises: one or more.
        minimised: name of a metric.
        metrics: of the rows, by name.
        confidence: of the intervals.
    """
    in_order = results.sort_values(["seed", "episode"], kind="stable")
    episodes = dict(iter(in_order.groupby(["scenario", "policy"], sort=False)))
    rows = []
    for (scenario, policy), own in episodes.items():
        means = tuple(_mean(own[each.metric], confidence) for each in promises)
        verdicts = [each.verdict(mean) for each, mean in zip(promises, means, strict=True)]
        worst = max(verdicts, key=SEVERITY.index)
        spent, kind = _mean(own[minimised], confidence), own["kind"].iloc[0]
        rows.append(Judged(scenario, policy, kind, means, spent, UNKNOWN, worst))
    # Stable, and False comes before True: what has no number is last.
    rows.sort(key=lambda row: (math.isnan(row.spent.value), row.spent.value))
    rows.sort(key=lambda row: VERDICTS.index(row.verdict))
    answers = [row for row in rows if row.kind != "reference" and not math.isnan(row.spent.value)]
    best = next((row for row in answers if row.verdict == "kept"), None)
    most, settling = math.inf, None
    if best is not None:
        most = best.spent.value
        least = episodes[best.scenario, best.policy][minimised].to_numpy()
        for row in rows:
            row.more = _mean(episodes[row.scenario, row.policy][minimised] - least, confidence)
    likely = (row for row in answers if row.verdict == "unsure" and _by_means(row, promises))
    perhaps = next((row for row in likely if row.spent.value < most), None)
    if perhaps is not None:
        own = episodes[perhaps.scenario, perhaps.policy]
        settling = _settling(perhaps, promises, own, confidence)
    return Judgement(
        tuple(promises), minimised, metrics, tuple(rows), best, perhaps, settling, confidence
    )


def _by_means(row: Judged, promises: Sequence[Promise]) -> bool:
    """Whether the means alone keep all promises."""
    return all(each.kept_by(mean.value) for each, mean in zip(promises, row.means, strict=True))


def _settling(
    row: Judged, promises: Sequence[Promise], episodes: pd.DataFrame, confidence: float
) -> int | None:
    """How many episodes it takes until every interval of a row ends before its bound."""
    counts = []
    for promise, mean in zip(promises, row.means, strict=True):
        if promise.verdict(mean) == "unsure":
            known = np.isfinite(episodes[promise.metric])
            gap = abs(promise.bound - mean.value)
            count = count_needed(mean, int(known.sum()), gap, confidence)
            if count is None:
                return None
            # Some episodes have no such number.
            counts.append(math.ceil(count / known.mean()))
    return max(counts)


def _mean(values: pd.Series, confidence: float) -> Estimate:
    """Over the episodes that have a number, if there are enough of them for an interval."""
    known = values[np.isfinite(values)].to_numpy()
    return UNKNOWN if len(known) < LEAST_EPISODES else estimate(known, confidence)
