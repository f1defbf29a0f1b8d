"""The summary of an evaluation under queued dispatch: means over seeds, speedups, and a table."""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.table import Table

from env.base.files import table_row, written_whole
from env.score.metrics import Metric
from evaluation.interval import CONFIDENCE, Interval, interval
from evaluation.queued_evaluation import SHARES, Case
from evaluation.queued_rows import CASE
from evaluation.statistics import Estimate
from report.summary import as_text, explained, number, row_of, spread, without_nan

PARTS = ("mean", "ci_low", "ci_high")
SHOWN = {
    "speedup": ("speedup", ".2f"),
    "completion": ("mean", ".2f"),
    "completion_median": ("median", ".2f"),
    "queueing": ("queue", ".2f"),
    "cold_start": ("cold\nstart", ".2f"),
    "execution": ("work", ".2f"),
    "late": ("late", ".1%"),
    "slowdown": ("slow-\ndown", ".2f"),
}
"""Metrics of the table, their headings and how they are written; summary.csv has all."""
INTERVALS = ("speedup", "completion")
"""Metrics that are shown with their interval."""

Cells = dict[str, Interval]
"""Of one case, by metric: the mean over seeds and its interval."""


@dataclass(frozen=True)
class Summary:
    """All cases of an evaluation.

    Attributes:
        title: what was played.
        first: order that the others are compared to.
        metrics: in the order of columns, `speedup` among them.
        cases: in the order of the configuration.
    """

    title: str
    first: str
    metrics: tuple[Metric[Any], ...]
    cases: tuple[tuple[Case, Cells], ...]


def summarise(
    results: pd.DataFrame, metrics: Mapping[str, Metric[Any]], first: str, title: str
) -> Summary:
    """Summarises the rows of results.parquet.

    Args:
        results: from `evaluation.results.read_results`; all cases were played with the same seeds.
        metrics: of the rows.
        first: order that the others are compared to.
        title: what was played.
    """
    rows: dict[Case, list[dict[str, float]]] = {}
    for row in results.to_dict("records"):
        case = Case(**{name: row[name] for name in CASE})
        rows.setdefault(case, []).append({name: row[name] for name in metrics})
    speedup: Metric[Any] = Metric(
        "speedup",
        "",
        "higher",
        f"completion under {first} / completion, with the same seed; geometric mean over seeds",
        lambda _: np.nan,
    )
    return Summary(title, first, (speedup, *metrics.values()), summarise_cases(rows, first))


def summarise_cases(
    rows: Mapping[Case, Sequence[Mapping[str, float]]], first: str
) -> tuple[tuple[Case, Cells], ...]:
    """Per case an interval over seeds for each metric, and for `speedup`.

    `speedup` is the mean completion time under the order `first` over that of the case, both with
    the same seed: the geometric mean over seeds, its interval that of the mean logarithm. It is NaN
    where `first` was not played.

    Args:
        rows: metrics of every case, in the order of the seeds.
        first: order that the others are compared to.
    """
    found = []
    for case, own in rows.items():
        others = rows.get(Case(case.sample, case.ratio, case.keep_alive, first))
        speedup = Interval(np.nan, np.nan, np.nan)
        if others is not None:
            ratios = [a["completion"] / b["completion"] for a, b in zip(others, own, strict=True)]
            logs = interval(np.log(ratios).tolist())
            speedup = Interval(*np.exp([logs.mean, logs.ci_low, logs.ci_high]).tolist())
        means = {key: interval([row[key] for row in own]) for key in own[0]}
        found.append((case, {"speedup": speedup, **means}))
    return tuple(found)


def pooled_quantiles(rows: pd.DataFrame) -> np.ndarray:
    """(Q,) seconds: completion times at `SHARES` over all seeds, each counting by what arrived.

    Args:
        rows: of results.parquet, of one case.
    """
    times = np.stack(rows["completion_quantiles"].to_list())
    arrived = rows["requests" if "requests" in rows else "workflows"].to_numpy()
    weights = np.broadcast_to(arrived[:, None], times.shape).ravel()
    order = np.argsort(times, axis=None)
    shares = np.cumsum(weights[order]) / weights.sum()
    # Sums of shares may miss a step by rounding.
    at = np.searchsorted(shares, SHARES - 1e-9)
    return np.asarray(times.ravel()[order][np.minimum(at, len(order) - 1)])


def load_names(cases: Sequence[Case]) -> dict[tuple[str, float, str], str]:
    """What pictures call (sample, ratio, keep_alive): the parts in which they differ."""
    loads = list(dict.fromkeys((case.sample, case.ratio, case.keep_alive) for case in cases))
    varies = [len(set(parts)) > 1 for parts in zip(*loads, strict=True)]
    return {
        (sample, ratio, keep_alive): ", ".join(
            text
            for text, differs in zip((sample, f"{ratio:g}", keep_alive), varies, strict=True)
            if differs
        )
        for sample, ratio, keep_alive in loads
    }


def write_summary(folder: Path, summary: Summary) -> None:
    """Writes `summary.json`, `summary.csv` and `summary.md`: the same numbers for three readers."""
    tree = {
        "title": summary.title,
        "first": summary.first,
        "confidence": CONFIDENCE,
        "metrics": [
            {key: getattr(metric, key) for key in ("name", "unit", "better", "formula", "heading")}
            for metric in summary.metrics
        ],
        "cases": [
            {**asdict(case), "metrics": {name: asdict(cell) for name, cell in cells.items()}}
            for case, cells in summary.cases
        ],
    }
    with written_whole(folder / "summary.json") as temporary:
        temporary.write_text(json.dumps(without_nan(tree), indent=2, allow_nan=False) + "\n")
    names = [metric.name for metric in summary.metrics]
    with (
        written_whole(folder / "summary.csv") as temporary,
        temporary.open("w", newline="") as file,
    ):
        writer = csv.writer(file)
        writer.writerow([*CASE, *(f"{name}_{part}" for name in names for part in PARTS)])
        for case, cells in summary.cases:
            numbers = [getattr(cells[name], part) for name in names for part in PARTS]
            writer.writerow(table_row([*(getattr(case, name) for name in CASE), *numbers]))
    with written_whole(folder / "summary.md") as temporary:
        temporary.write_text(markdown(summary))


def markdown(summary: Summary) -> str:
    """All cells as a table for documents, with what its columns mean below."""
    headings = [*(name.replace("_", " ") for name in CASE), *(m.heading for m in summary.metrics)]
    lines = [f"# {summary.title}", "", row_of(headings), row_of(["---"] * len(headings))]
    for case, cells in summary.cases:
        written = [shown(asdict(cells[metric.name])) for metric in summary.metrics]
        names = (case.sample, f"{case.ratio:g}", case.keep_alive, case.order)
        lines.append(row_of([*map(as_text, names), *written]))
    lines += ["", f"Mean over seeds [{CONFIDENCE:.0%} interval, Student's t].", ""]
    return "\n".join([*lines, *explained(summary.metrics)]) + "\n"


def means(summary: Summary) -> dict[str, float]:
    """The mean of every metric of every case, as TensorBoard calls them: metric, load, order."""
    return {
        f"{name}/{case.sample}/{case.ratio:g}/{case.keep_alive}/{case.order}": cell.mean
        for case, cells in summary.cases
        for name, cell in cells.items()
    }


def shown(cell: Mapping[str, float | None]) -> str:
    """A cell of summary.json as text: `4.89 [4.67, 5.11]`."""
    mean, low, high = (cell[part] for part in PARTS)
    if mean is None or low is None or high is None:  # NaN, in JSON
        return number(np.nan)
    return spread(Estimate(mean, low, high))


def queued_table(summary: Summary) -> Table:
    """A row a case, for the terminal."""
    table = Table(
        title=f"{summary.title}; times in seconds, means over seeds [{CONFIDENCE:.0%} interval]",
        caption="completion time: mean, median, its parts, share of late ones; speedup of the mean "
        "over that of the first order",
        title_justify="left",
        caption_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    for name in CASE:
        table.add_column(name.replace("_", " "), no_wrap=True)
    named = {metric.name for metric in summary.metrics}
    columns = {key: column for key, column in SHOWN.items() if key in named}
    for heading, _ in columns.values():
        table.add_column(heading, justify="right", no_wrap=True)
    for case, cells in summary.cases:
        written = []
        for key, (_, form) in columns.items():
            mean, low, high = astuple(cells[key])
            interval_of = f" [{low:{form}}, {high:{form}}]" if key in INTERVALS else ""
            written.append(number(mean) if np.isnan(mean) else f"{mean:{form}}{interval_of}")
        table.add_row(case.sample, f"{case.ratio:g}", case.keep_alive, case.order, *written)
    return table
