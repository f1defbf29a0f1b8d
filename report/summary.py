"""The summary of an evaluation: what every policy's metrics are, and how they compare."""

import csv
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from agents.scheduler import Kind
from env.base.files import table_row, written_whole
from env.score.metrics import Metric
from evaluation.contest import all_metrics
from evaluation.statistics import (
    Comparison,
    Distribution,
    StatisticsSettings,
    comparisons,
    distributions,
)

RANKED_BY = "J"
"""The metric that policies are ranked and compared by."""
RANKS: tuple[Kind, ...] = ("baseline", "learned", "reference")
"""Who is the measure of the others: the best of the first kind that is there."""


@dataclass(frozen=True)
class PolicySummary:
    """One policy.

    Attributes:
        policy: its name.
        kind: what it is.
        metrics: by name.
        against: J compared with that of the measure.
    """

    policy: str
    kind: Kind
    metrics: dict[str, Distribution]
    against: Comparison

    @property
    def label(self) -> str:
        """What tables and pictures call it: its name, and whether it is a reference."""
        return f"{self.policy} (reference)" if self.kind == "reference" else self.policy


@dataclass(frozen=True)
class Pair:
    """Two policies, compared.

    Attributes:
        policy: one of them.
        other: the other one.
        against: J of the one compared with that of the other.
    """

    policy: str
    other: str
    against: Comparison


@dataclass(frozen=True)
class Summary:
    """All policies of an evaluation, lowest mean J first.

    Attributes:
        title: what was evaluated.
        measure: the policy that all are compared with.
        metrics: in the order of columns.
        policies: the rows.
        pairs: of all policies, the one with the lower mean J first.
        confidence: of the intervals.
    """

    title: str
    measure: str
    metrics: tuple[Metric[Any], ...]
    policies: tuple[PolicySummary, ...]
    pairs: tuple[Pair, ...]
    confidence: float

    @property
    def shown_metrics(self) -> tuple[Metric[Any], ...]:
        """Those that have a number in any episode."""
        first = self.policies[0].metrics
        return tuple(each for each in self.metrics if not math.isnan(first[each.name].mean.value))


def values_of(results: pd.DataFrame, metric: str) -> pd.DataFrame:
    """A metric with a row a policy and a column an episode of a seed, in order of appearance."""
    table = results.pivot(index="policy", columns=["seed", "episode"], values=metric)
    return table.reindex(dict.fromkeys(results["policy"]))


def summarise(results: pd.DataFrame, settings: StatisticsSettings) -> Summary:
    """Summarises the rows of results.parquet.

    The measure is the baseline with the lowest mean J; without baselines the best learned policy,
    and else the best reference.

    Args:
        results: from `evaluation.results.read_results`; all policies have played the same episodes.
        settings: of the intervals.
    """
    kinds: Mapping[str, Kind] = dict(zip(results["policy"], results["kind"], strict=True))
    ranked = values_of(results, RANKED_BY).T.mean().sort_values(kind="stable")
    names = list(ranked.index)
    measure = min(names, key=lambda name: (RANKS.index(kinds[name]), names.index(name)))
    metrics = tuple(all_metrics().values())

    def values(metric: str) -> np.ndarray:
        return values_of(results, metric).loc[names].to_numpy()

    found = {metric.name: distributions(values(metric.name), settings) for metric in metrics}
    J, position = values(RANKED_BY), names.index(measure)
    against = comparisons(J, [(index, position) for index in range(len(names))], settings)
    pairs = list(combinations(range(len(names)), 2))
    seeds = sorted(set(results["seed"]))
    played = len(results[["seed", "episode"]].drop_duplicates())
    of = ("seed " if len(seeds) == 1 else "seeds ") + ", ".join(map(str, seeds))
    return Summary(
        title=f"{played} held-out episodes, {of}",
        measure=measure,
        metrics=metrics,
        policies=tuple(
            PolicySummary(
                name,
                kinds[name],
                {metric: each[index] for metric, each in found.items()},
                against[index],
            )
            for index, name in enumerate(names)
        ),
        pairs=tuple(
            Pair(names[one], names[other], compared)
            for (one, other), compared in zip(pairs, comparisons(J, pairs, settings), strict=True)
        ),
        confidence=settings.confidence,
    )


def write_summary(folder: Path, summary: Summary) -> None:
    """Writes `summary.json`, `summary.csv` and `summary.md`: the same numbers for three readers."""
    tree = {
        "title": summary.title,
        "measure": summary.measure,
        "ranked_by": RANKED_BY,
        "confidence": summary.confidence,
        "metrics": [
            {
                "name": metric.name,
                "unit": metric.unit,
                "better": metric.better,
                "formula": metric.formula,
            }
            for metric in summary.metrics
        ],
        "policies": [asdict(each) for each in summary.policies],
        "pairs": [asdict(each) for each in summary.pairs],
    }
    text = json.dumps(without_nan(tree), indent=2, allow_nan=False)
    with written_whole(folder / "summary.json") as temporary:
        temporary.write_text(text + "\n")
    rows = [_flat(asdict(each)) for each in summary.policies]
    with (
        written_whole(folder / "summary.csv") as temporary,
        temporary.open("w", newline="") as file,
    ):
        writer = csv.writer(file)
        writer.writerow(table_row(rows[0]))
        writer.writerows(table_row(row.values()) for row in rows)
    with written_whole(folder / "summary.md") as temporary:
        temporary.write_text(markdown(summary))


def markdown(summary: Summary) -> str:
    """The ranking as a table for documents, with what its columns mean below."""
    share = f"{summary.confidence:.0%}"
    headings = [
        "policy",
        f"J - J of {as_text(summary.measure)}",
        "p (Holm)",
        "P(better)",
        *(metric.heading for metric in summary.shown_metrics),
    ]
    lines = [f"# {summary.title}", "", row_of(headings), row_of(["---"] * len(headings))]
    for each in summary.policies:
        cells = [
            as_text(each.label),
            spread(each.against.difference, sign="+"),
            f"{each.against.p_holm:.2g}",
            spread(each.against.probability),
            *(spread(each.metrics[metric.name].mean) for metric in summary.shown_metrics),
        ]
        lines.append(row_of(cells))
    lines += ["", f"Mean over episodes [{share} interval, Student's t].", ""]
    return "\n".join([*lines, *explained(summary.shown_metrics)]) + "\n"


def explained(metrics: Iterable[Metric[Any]]) -> list[str]:
    """A line of Markdown a metric: what it is."""
    return [
        f"- {metric.heading}: {metric.formula}"
        + ("" if metric.better is None else f"; {metric.better} is better")
        for metric in metrics
    ]


def means(summary: Summary) -> dict[str, float]:
    """The mean of every metric that a policy has, as TensorBoard calls them: `J/first_fit`."""
    return {
        f"{name}/{policy.policy}": distribution.mean.value
        for policy in summary.policies
        for name, distribution in policy.metrics.items()
        if not math.isnan(distribution.mean.value)
    }


def number(value: float, sign: str = "") -> str:
    """Four significant digits; a dash where there is no number."""
    if math.isnan(value):
        return "-"
    digits = 0 if abs(value) >= 1000 else max(0, 3 - math.floor(math.log10(abs(value) or 1.0)))
    return f"{value:{sign},.{min(digits, 4)}f}"


def spread(estimate: Any, sign: str = "") -> str:
    """`4.89 [4.67, 5.11]`."""
    shown = number(estimate.value, sign)
    if math.isnan(estimate.value):
        return shown
    return f"{shown} [{number(estimate.ci_low, sign)}, {number(estimate.ci_high, sign)}]"


def as_text(name: str) -> str:
    """A name in Markdown, where nothing in it is mark-up; `_` within a word is none."""
    return re.sub(r"[\\`*\[\]<>|~&$]|(?<![^\W_])_|_(?![^\W_])", r"\\\g<0>", name)


def row_of(cells: Sequence[str]) -> str:
    """A row of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A tree as one row: `J_mean_ci_low`; values of estimates have no word of their own."""
    row: dict[str, Any] = {}
    for key, value in tree.items():
        name = prefix.removesuffix("_") if key == "value" else f"{prefix}{key}"
        if isinstance(value, Mapping):
            row |= _flat(value, "" if key == "metrics" else f"{name}_")
        else:
            row[name] = value
    return row


def without_nan(tree: Any) -> Any:
    """The same with null for NaN, which JSON does not have."""
    if isinstance(tree, Mapping):
        return {key: without_nan(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [without_nan(value) for value in tree]
    return None if isinstance(tree, float) and math.isnan(tree) else tree
