"""Promises: who keeps them where, and what the cheapest way to keep them is.

A promise is a bound of the mean of a metric over episodes. It is kept or broken surely where the
whole interval of the mean is on one side of the bound.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
import pandas as pd

from agents.scheduler import Kind
from env.base.errors import InputError
from env.base.schema import nearest, short
from env.score.metrics import Metric
from evaluation.statistics import Estimate, StatisticsSettings, count_needed, estimate

Verdict = Literal["kept", "unsure", "broken", "unknown"]
VERDICTS: tuple[Verdict, ...] = ("kept", "unsure", "broken", "unknown")
"""In the order of tables; unknown is a promise of what these episodes have no number of."""
COMPARATORS: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
}
WRITTEN = re.compile(
    r" *(?P<comparator><=|<|>=|>) *"
    r"(?P<bound>[+-]?(?P<digits>[0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?) *"
)
LEAST_EPISODES = 2
"""Of which there is an interval."""
NOTHING = Estimate(math.nan, math.nan, math.nan)


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
        found = WRITTEN.fullmatch(str(written))
        bound = float(found["bound"]) if found else math.nan
        lost = found is not None and bound == 0 and found["digits"].strip("0.") != ""
        if found is None or lost or not math.isfinite(bound):
            raise ValueError(
                f"{metric}: one of <, <=, >, >= and a number is needed, found {short(written)}"
            )
        return cls(metric, found["comparator"], bound)

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


@dataclass(frozen=True)
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
        metrics: what is known of all these, by name.
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
    settings: StatisticsSettings,
) -> Judgement:
    """Judges every policy in every scenario.

    Args:
        results: rows of results.parquet; all have played the same episodes.
        promises: one or more.
        minimised: name of a metric.
        metrics: of the rows, by name.
        settings: of the intervals.
    """
    found = []
    spent: dict[tuple[str, str], np.ndarray] = {}
    promised: dict[tuple[str, str], list[np.ndarray]] = {}
    for (scenario, policy), own in results.groupby(["scenario", "policy"], sort=False):
        own = own.sort_values(["seed", "episode"])
        promised[scenario, policy] = [own[each.metric].to_numpy() for each in promises]
        means = tuple(_mean(values, settings) for values in promised[scenario, policy])
        verdicts = [each.verdict(mean) for each, mean in zip(promises, means, strict=True)]
        worst = max(verdicts, key=_severity)
        spent[scenario, policy] = own[minimised].to_numpy()
        cost = _mean(spent[scenario, policy], settings)
        found.append(Judged(scenario, policy, own["kind"].iloc[0], means, cost, NOTHING, worst))
    found.sort(key=lambda row: (VERDICTS.index(row.verdict), _last(row.spent.value)))
    kept = [row for row in found if row.verdict == "kept" and row.kind != "reference"]
    best = kept[0] if kept and not math.isnan(kept[0].spent.value) else None
    if best is not None:
        least = spent[best.scenario, best.policy]
        place = found.index(best)
        found = [
            replace(row, more=_mean(spent[row.scenario, row.policy] - least, settings))
            for row in found
        ]
        best = found[place]
    perhaps = _perhaps(found, promises, math.inf if best is None else best.spent.value)
    settling = None
    if perhaps is not None:
        values = promised[perhaps.scenario, perhaps.policy]
        settling = _settling(perhaps, promises, values, settings.confidence)
    known = {name: metrics[name] for name in (*(each.metric for each in promises), minimised)}
    return Judgement(
        tuple(promises),
        minimised,
        known,
        tuple(found),
        best,
        perhaps,
        settling,
        settings.confidence,
    )


def _perhaps(rows: Sequence[Judged], promises: Sequence[Promise], most: float) -> Judged | None:
    """The cheapest of sorted rows that spends less than `most` and keeps all by its means."""
    for row in rows:
        kept = [each.kept_by(mean.value) for each, mean in zip(promises, row.means, strict=True)]
        likely = row.verdict == "unsure" and row.kind != "reference" and all(kept)
        if likely and row.spent.value < most:
            return row
    return None


def _settling(
    row: Judged, promises: Sequence[Promise], values: Sequence[np.ndarray], confidence: float
) -> int | None:
    """How many episodes it takes until every interval of a row ends before its bound."""
    counts = []
    for promise, mean, own in zip(promises, row.means, values, strict=True):
        if promise.verdict(mean) == "unsure":
            known = np.isfinite(own)
            gap = abs(promise.bound - mean.value)
            count = count_needed(mean, int(known.sum()), gap, confidence)
            if count is None:
                return None
            # Some episodes have no such number.
            counts.append(math.ceil(count / known.mean()))
    return max(counts)


def _severity(verdict: Verdict) -> int:
    return ("kept", "unsure", "unknown", "broken").index(verdict)


def _last(value: float) -> float:
    return math.inf if math.isnan(value) else value


def _mean(values: np.ndarray, settings: StatisticsSettings) -> Estimate:
    """Over the episodes that have a number, if there are enough of them for an interval."""
    known = values[np.isfinite(values)]
    return NOTHING if len(known) < LEAST_EPISODES else estimate(known, settings.confidence)
