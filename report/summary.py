"""The summary of an evaluation: what every policy's metrics are, and how they compare."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Self

import numpy as np
import pandas as pd

from agents.scheduler import Kind
from env.score.metrics import Metric, Shown
from evaluation.statistics import (
    Comparison,
    Distribution,
    Estimate,
    compared,
    count_needed,
    distributions,
    estimate,
)
from report.digits import about, number, spread, varies

RANKED_BY = "J"
"""The metric that policies are ranked and compared by."""
RANKS: tuple[Kind, ...] = ("baseline", "learned", "reference")
"""Who is the measure of the others: the best of the first kind that is there."""
BEST = 6
"""Policies whose lines are drawn, unless the reader asks for others."""
FEWEST_FOR_INTERVALS = 5
"""Episodes; of fewer, pictures show each as a point, tables have neither intervals nor p-values."""


@dataclass(frozen=True)
class PolicySummary:
    """One policy in one scenario."""

    scenario: str  # "" where nothing is swept
    policy: str
    kind: Kind
    metrics: dict[str, Distribution]  # by name
    against: Comparison  # J compared with that of the measure
    relative: Estimate  # the difference in J, over the mean J of the measure
    speedup: Estimate  # flow time of the first policy over its own, geometric mean over episodes

    @property
    def label(self) -> str:
        """What tables and pictures call it."""
        return labelled(self.policy, self.kind)


@dataclass(frozen=True)
class Summary:
    """All policies of an evaluation, scenario by scenario, lowest mean J first."""

    measure: str  # the policy that all are compared with
    first: str  # the policy that speedups are over: the first that was given, but no learned one
    kinds: dict[str, Kind]  # of all policies, lowest mean J over all scenarios first
    metrics: dict[str, Metric]  # that have a number in any episode, by name, in order of columns
    confidence: float  # of the intervals
    results: pd.DataFrame  # rows of results.parquet
    overall: tuple[PolicySummary, ...] = ()  # the rows over all scenarios, which count alike
    policies: tuple[PolicySummary, ...] = ()  # the rows of every scenario
    note: str = ""  # what else the title says

    @property
    def title(self) -> str:
        """How many episodes were played, where, and with which seeds."""
        count, seeds = self.episodes, sorted(set(self.results["seed"]))
        episodes = "1 held-out episode" if count == 1 else f"{count} held-out episodes"
        where = f" in each of {len(self.scenarios)} scenarios" if self.several else ""
        of = ("seed " if len(seeds) == 1 else "seeds ") + ", ".join(map(str, seeds))
        return f"{episodes}{where}, {of}{self.note}"

    @cached_property
    def scenarios(self) -> tuple[str, ...]:
        """In the order in which they were given."""
        return tuple(self.results["scenario"].unique())

    @cached_property
    def episodes(self) -> int:
        """How many were played, in each scenario, with all seeds."""
        return len(self.results[["seed", "episode"]].drop_duplicates())

    @property
    def several(self) -> bool:
        """Whether there is more than one scenario, so that rows have to say theirs."""
        return len(self.scenarios) > 1

    @property
    def shown(self) -> list[str]:
        """The policies whose lines are drawn: the best ones, and all that have learned."""
        kinds = enumerate(self.kinds.items())
        return [name for rank, (name, kind) in kinds if rank < BEST or kind == "learned"]

    def of(self, scenario: str) -> Self:
        """The same of one scenario alone."""
        own = self.results[self.results["scenario"] == scenario]
        rows = tuple(row for row in self.policies if row.scenario == scenario)
        return replace(self, results=own, overall=rows, policies=rows)

    def versus(self, one: str, other: str) -> Comparison:
        """J of a policy of one scenario compared with that of another one."""
        own, others = self._J.loc[one], self._J.loc[other]
        return compared(own.to_numpy(), others.to_numpy(), self.confidence)

    @cached_property
    def _J(self) -> pd.DataFrame:
        return self.values(RANKED_BY)

    def values(self, metric: str) -> pd.DataFrame:
        """A metric of one scenario with a row a policy and a column an episode of a seed."""
        episodes = self.results.pivot(index="policy", columns=["seed", "episode"], values=metric)
        return episodes.loc[[row.policy for row in self.policies]]

    @property
    def few(self) -> bool:
        """Whether the episodes are too few for intervals."""
        return self.episodes < FEWEST_FOR_INTERVALS

    def spread(self, estimate: Estimate, shown: Shown = "number", sign: str = "") -> str:
        """A mean with its interval, if there are enough episodes."""
        return spread(self.shown_of(estimate), shown, sign)

    def number(self, estimate: Estimate, shown: Shown = "number", sign: str = "") -> str:
        """The mean alone, in the digits that its interval leaves."""
        return number(self.shown_of(estimate), shown, sign)

    def shown_of(self, estimate: Estimate) -> Estimate:
        """An estimate without its interval where the episodes are too few."""
        return Estimate(*[estimate.value] * 3) if self.few else estimate

    def is_clear(self, compared: Comparison) -> bool:
        """Whether a difference is more than chance makes it."""
        return not self.few and compared.difference.clear

    @property
    def finding(self) -> str:
        """What learned policies are against the measure; else who has the lowest J, who is next."""
        best, *others = self.overall
        measure = f" against {self.measure}"
        measure += ", the best baseline" if self.kinds[self.measure] == "baseline" else ""
        sentences = [
            f"learned policy {self._against(row, measure)}, rank {rank} of {len(self.overall)}"
            for rank, row in enumerate(self.overall, 1)
            if row.kind == "learned" and row.policy != self.measure
        ]
        if best.policy == self.measure:
            lowest = f"lowest {RANKED_BY}: {best.label}"
            differ = [each for each in others if each.relative.value or varies(each.relative)]
            if len(differ) < len(others):
                lowest += f" and {len(others) - len(differ)} more, equal in every episode"
            if differ and not sentences:
                lowest += f"; next is {self._against(differ[0])}"
            sentences.append(lowest)
        elif best.kind != "learned":
            lowest = self._against(best, "" if sentences else measure)
            sentences.append(f"lowest {RANKED_BY}: {lowest}")
        if self.several:
            rivals = [row for row in self.policies if row.kind != "reference"]
            firsts = {row.scenario: row.policy for row in reversed(rivals)}
            counts = Counter(firsts.values()).most_common()
            sentences[0] = f"over all {len(self.scenarios)} scenarios, {sentences[0]}"
            where = ", ".join(f"{name} in {count}" for name, count in counts)
            sentences.append(f"lowest by scenario: {where}")
        text = "; ".join(sentences)
        return text[0].upper() + text[1:]

    @property
    def means_are(self) -> str:
        """What stands in tables."""
        means = "One episode" if self.episodes == 1 else f"Means over {self.episodes} episodes"
        interval = f" [{self.confidence:.0%} interval]."
        means += ", too few for intervals and tests." if self.few else interval
        if "failed" in self.results and self.results["failed"].max() > 0:
            failing = ", ".join(self.results.loc[self.results["failed"] > 0, "policy"].unique())
            means += f" Functions failed under {failing}: workflows end early, which lowers J."
        return means

    @property
    def difference_is(self) -> str:
        """What stands in tables in the column of comparisons."""
        return f"J against {self.measure}: mean paired difference over its mean {RANKED_BY}."

    def _against(self, row: PolicySummary, measure: str = "") -> str:
        """`a, J -4.9% [-8.7, -1.1] against b: surely better`."""
        text = f"{row.label}, {RANKED_BY} {self.spread(row.relative, 'share', '+')}{measure}"
        return text if self.few else f"{text}: {self._verdict(row.against.difference)}"

    def _verdict(self, difference: Estimate) -> str:
        """Whether a difference is sure, and else what would settle it."""
        if difference.clear:
            return f"surely {'better' if difference.value < 0 else 'worse'}"
        gap = abs(difference.value)
        count = count_needed(difference, self.episodes, gap, self.confidence)
        if math.isinf(count):
            return "too close for any number of episodes to settle"
        more = int(count) - self.episodes
        episodes = "1 more episode" if more == 1 else f"{about(more)} more episodes"
        return f"not sure yet, about {episodes} would settle it"


def summarise(results: pd.DataFrame, metrics: Mapping[str, Metric], confidence: float) -> Summary:
    """Summarises the rows of results.parquet.

    The measure is the baseline with the lowest mean J over all scenarios; without baselines the
    best learned policy, and else the best reference.

    Args:
        results: in every scenario all policies have played the same episodes.
        metrics: of the rows, by name.
        confidence: of the intervals.
    """
    kinds: Mapping[str, Kind] = dict(zip(results["policy"], results["kind"], strict=True))
    ranked = _by_mean(results, kinds)
    measure = min(ranked, key=lambda name: (RANKS.index(kinds[name]), ranked.index(name)))
    summary = Summary(
        measure=measure,
        first=next((name for name, kind in kinds.items() if kind != "learned"), ranked[0]),
        kinds={name: kinds[name] for name in ranked},
        metrics={name: each for name, each in metrics.items() if results[name].notna().any()},
        confidence=confidence,
        results=results,
    )
    scenarios = results.groupby("scenario", sort=False)
    blocks = [_compared(summary, rows, name) for name, rows in scenarios]
    policies = overall = tuple(chain.from_iterable(blocks))
    if len(blocks) > 1:
        episodes = results.groupby(["policy", "seed", "episode"])
        means = episodes[list(summary.metrics)].mean().reset_index()
        overall = tuple(_compared(summary, means, ""))
    return replace(summary, overall=overall, policies=policies)


def _compared(summary: Summary, results: pd.DataFrame, scenario: str) -> list[PolicySummary]:
    """Every policy of a scenario, lowest mean J first."""
    names, confidence = _by_mean(results, summary.kinds), summary.confidence
    columns = ["seed", "episode"]
    episodes = results.pivot(index="policy", columns=columns, values=list(summary.metrics))
    episodes = episodes.loc[list(names)]
    J, times = episodes[RANKED_BY], episodes["flow_time"]
    measure = J.loc[summary.measure].to_numpy()
    metrics = {
        metric: distributions(episodes[metric].to_numpy(), confidence) for metric in summary.metrics
    }
    rows = []
    for index, name in enumerate(names):
        against = compared(J.loc[name].to_numpy(), measure, confidence)
        relative = against.difference.over(float(measure.mean()))
        values = {metric: each[index] for metric, each in metrics.items()}
        faster = np.log(times.loc[summary.first] / times.loc[name]).to_numpy()
        speedup = estimate(faster, confidence).exp()
        kind = summary.kinds[name]
        rows.append(PolicySummary(scenario, name, kind, values, against, relative, speedup))
    return rows


def _by_mean(results: pd.DataFrame, names: Iterable[str]) -> tuple[str, ...]:
    """Policies, lowest mean J first; equal ones stay in order."""
    means = results.groupby("policy")[RANKED_BY].mean()
    return tuple(sorted(names, key=means.__getitem__))


def labelled(policy: str, kind: Kind) -> str:
    """A policy's name, and whether it is a reference."""
    return f"{policy} (reference)" if kind == "reference" else policy


def wrapped(name: str) -> str:
    """A policy's name in two lines of similar length where it is long."""
    breaks = [at for at, letter in enumerate(name) if letter in "_ "]
    if len(name) <= 16 or not breaks:
        return name
    at = min(breaks, key=lambda at: abs(at - len(name) / 2))
    return f"{name[: at + 1]}\n{name[at + 1 :]}"
