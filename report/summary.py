"""The summary of an evaluation: what every policy's metrics are, and how they compare."""

import csv
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from agents.scheduler import Kind
from env.base.files import table_row, written_whole
from env.score.metrics import Metric
from evaluation.episode_metrics import SHARES
from evaluation.statistics import (
    Comparison,
    Distribution,
    Estimate,
    StatisticsSettings,
    comparisons,
    distributions,
    speedups,
)

RANKED_BY = "J"
"""The metric that policies are ranked and compared by."""
RANKS: tuple[Kind, ...] = ("baseline", "learned", "reference")
"""Who is the measure of the others: the best of the first kind that is there."""


@dataclass(frozen=True)
class PolicySummary:
    """One policy in one scenario.

    Attributes:
        scenario: where it played; "" where nothing is swept.
        policy: its name.
        kind: what it is.
        metrics: by name.
        against: J compared with that of the measure.
        speedup: flow time of the first policy over its own, the geometric mean over episodes.
    """

    scenario: str
    policy: str
    kind: Kind
    metrics: dict[str, Distribution]
    against: Comparison
    speedup: Estimate

    @property
    def label(self) -> str:
        """What tables and pictures call it: its name, and whether it is a reference."""
        return f"{self.policy} (reference)" if self.kind == "reference" else self.policy


@dataclass(frozen=True)
class Pair:
    """Two policies of one scenario, compared.

    Attributes:
        scenario: where they played.
        policy: one of them.
        other: the other one.
        against: J of the one compared with that of the other.
    """

    scenario: str
    policy: str
    other: str
    against: Comparison


@dataclass(frozen=True)
class Summary:
    """All policies of an evaluation, scenario by scenario, lowest mean J first.

    Attributes:
        title: what was evaluated.
        measure: the policy that all are compared with.
        first: the policy that speedups are over: the first that was given, but no learned one.
        ranked: names of all policies, lowest mean J over all scenarios first.
        metrics: those that have a number in any episode, by name, in the order of columns.
        policies: the rows.
        pairs: of all policies of a scenario, the one with the lower mean J first.
        confidence: of the intervals.
    """

    title: str
    measure: str
    first: str
    ranked: tuple[str, ...]
    metrics: dict[str, Metric[Any]]
    policies: tuple[PolicySummary, ...]
    pairs: tuple[Pair, ...]
    confidence: float

    @cached_property
    def scenarios(self) -> tuple[str, ...]:
        """In the order in which they were given."""
        return tuple(dict.fromkeys(row.scenario for row in self.policies))

    @property
    def several(self) -> bool:
        """Whether there is more than one scenario, so that rows have to say theirs."""
        return len(self.scenarios) > 1

    def of(self, scenario: str) -> Self:
        """The same of one scenario alone."""
        rows = tuple(row for row in self.policies if row.scenario == scenario)
        pairs = tuple(pair for pair in self.pairs if pair.scenario == scenario)
        return replace(self, policies=rows, pairs=pairs)


def values_of(results: pd.DataFrame, metric: str) -> pd.DataFrame:
    """A metric of one scenario with a row a policy and a column an episode of a seed."""
    return results.pivot(index="policy", columns=["seed", "episode"], values=metric)


def summarise(
    results: pd.DataFrame, metrics: Mapping[str, Metric[Any]], settings: StatisticsSettings
) -> Summary:
    """Summarises the rows of results.parquet.

    The measure is the baseline with the lowest mean J over all scenarios; without baselines the
    best learned policy, and else the best reference.

    Args:
        results: from `evaluation.results.read_results`; in every scenario all policies have played
            the same episodes.
        metrics: of the rows, by name.
        settings: of the intervals.
    """
    kinds: Mapping[str, Kind] = dict(zip(results["policy"], results["kind"], strict=True))
    means = results.groupby("policy", sort=False)[RANKED_BY].mean()
    ranked = tuple(means.sort_values(kind="stable").index)
    measure = min(ranked, key=lambda name: (RANKS.index(kinds[name]), ranked.index(name)))
    first = next((name for name, kind in kinds.items() if kind != "learned"), ranked[0])
    known = {name: metric for name, metric in metrics.items() if results[name].notna().any()}
    policies: list[PolicySummary] = []
    pairs: list[Pair] = []
    for scenario, own in results.groupby("scenario", sort=False):
        J = values_of(own, RANKED_BY).loc[list(ranked)]
        J = J.loc[J.T.mean().sort_values(kind="stable").index]
        names, values = list(J.index), J.to_numpy()
        found = {
            metric: distributions(values_of(own, metric).loc[names].to_numpy(), settings)
            for metric in known
        }
        times = values_of(own, "flow_time").loc[names].to_numpy()
        faster = speedups(times, names.index(first), settings)
        position = names.index(measure)
        against = comparisons(values, [(index, position) for index in range(len(names))], settings)
        policies += [
            PolicySummary(
                scenario,
                name,
                kinds[name],
                {metric: each[index] for metric, each in found.items()},
                against[index],
                faster[index],
            )
            for index, name in enumerate(names)
        ]
        both = list(combinations(range(len(names)), 2))
        pairs += [
            Pair(scenario, names[one], names[other], compared)
            for (one, other), compared in zip(
                both, comparisons(values, both, settings), strict=True
            )
        ]
    return Summary(
        _title(results),
        measure,
        first,
        ranked,
        known,
        tuple(policies),
        tuple(pairs),
        settings.confidence,
    )


def _title(results: pd.DataFrame) -> str:
    """How many episodes were played, where, and with which seeds."""
    seeds = sorted(set(results["seed"]))
    scenarios = results["scenario"].nunique()
    played = len(results[["seed", "episode"]].drop_duplicates())
    episodes = "1 held-out episode" if played == 1 else f"{played} held-out episodes"
    where = f" in each of {scenarios} scenarios" if scenarios > 1 else ""
    of = ("seed " if len(seeds) == 1 else "seeds ") + ", ".join(map(str, seeds))
    return f"{episodes}{where}, {of}"


def flow_times(results: pd.DataFrame) -> np.ndarray:
    """(Q,) s, flow times of one policy at `SHARES`, all episodes counting alike.

    Args:
        results: its rows, of one scenario.
    """
    times = np.concatenate(results["flow_time_quantiles"].to_list())
    return np.asarray(np.quantile(times, SHARES, method="inverted_cdf"))


def write_summary(folder: Path, summary: Summary) -> None:
    """Writes `summary.json`, `summary.csv` and `summary.md`: the same numbers for three readers."""
    policies, pairs = (
        [asdict(each) for each in rows] for rows in (summary.policies, summary.pairs)
    )
    if not summary.several:
        for row in (*policies, *pairs):
            del row["scenario"]
    tree = {
        "title": summary.title,
        "measure": summary.measure,
        "first": summary.first,
        "ranked_by": RANKED_BY,
        "confidence": summary.confidence,
        "metrics": [
            {key: getattr(metric, key) for key in ("name", "unit", "better", "formula")}
            for metric in summary.metrics.values()
        ],
        "policies": policies,
        "pairs": pairs,
    }
    text = json.dumps(without_nan(tree), indent=2, allow_nan=False)
    with written_whole(folder / "summary.json") as temporary:
        temporary.write_text(text + "\n")
    rows = [_flat(each) for each in policies]
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
    headings = [
        *["scenario"] * summary.several,
        "policy",
        f"J - J of {as_text(summary.measure)}",
        "p (Holm)",
        "P(better)",
        f"speedup over {as_text(summary.first)}",
        *(metric.heading for metric in summary.metrics.values()),
    ]
    lines = [f"# {summary.title}", "", row_of(headings), row_of(["---"] * len(headings))]
    for each in summary.policies:
        cells = [
            *[as_text(each.scenario)] * summary.several,
            as_text(each.label),
            spread(each.against.difference, sign="+"),
            f"{each.against.p_holm:.2g}",
            spread(each.against.probability),
            spread(each.speedup),
            *(spread(each.metrics[name].mean) for name in summary.metrics),
        ]
        lines.append(row_of(cells))
    lines += ["", f"Mean over episodes [{summary.confidence:.0%} interval, Student's t].", ""]
    lines += [
        f"- {metric.heading}: {metric.formula}"
        + ("" if metric.better is None else f"; {metric.better} is better")
        for metric in summary.metrics.values()
    ]
    return "\n".join(lines) + "\n"


def means(summary: Summary) -> dict[str, float]:
    """The mean of every metric that a policy has, as TensorBoard calls them: `J/first_fit`.

    Of several scenarios each has a place of its own: `J/lease.step=60/first_fit`.
    """
    return {
        "/".join(
            [name, *[policy.scenario] * summary.several, policy.policy]
        ): distribution.mean.value
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


def spread(estimate: Estimate, sign: str = "") -> str:
    """`4.89 [4.67, 5.11]`."""
    shown = number(estimate.value, sign)
    if math.isnan(estimate.value):
        return shown
    return f"{shown} [{number(estimate.ci_low, sign)}, {number(estimate.ci_high, sign)}]"


def low_of(estimate: Estimate) -> float:
    """Where pictures draw an interval from: symmetric ones reach below 0, where no metric is."""
    return estimate.ci_low if estimate.value < 0 else max(0.0, estimate.ci_low)


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
