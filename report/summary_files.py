"""The summary of an evaluation as files: JSON, a table of comma-separated values, Markdown."""

import csv
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from env.base.files import table_row, written_whole
from report.summary import RANKED_BY, Summary


def write_summary(folder: Path, summary: Summary) -> None:
    """Writes `summary.json`, `summary.csv` and `summary.md`: the same numbers for three readers."""
    policies, pairs = (
        [asdict(each) for each in rows] for rows in (summary.policies, summary.pairs)
    )
    overall = {"overall": list(map(asdict, summary.overall))} if summary.several else {}
    for row in overall.get("overall", (*policies, *pairs)):
        del row["scenario"]
    keys = ("name", "unit", "better", "formula")
    tree = {
        "title": summary.title,
        "measure": summary.measure,
        "first": summary.first,
        "ranked_by": RANKED_BY,
        "confidence": summary.confidence,
        "metrics": [{key: getattr(each, key) for key in keys} for each in summary.metrics.values()],
        **overall,
        "policies": policies,
        "pairs": pairs,
    }
    text = json.dumps(without_nan(tree), indent=2, allow_nan=False)
    with written_whole(folder / "summary.json") as temporary:
        temporary.write_text(text + "\n")
    rows = pd.json_normalize(policies)  # metrics.J.mean.ci_low; means themselves are .value
    rows.columns = rows.columns.str.removeprefix("metrics.").str.removesuffix(".value")
    rows.columns = rows.columns.str.replace(".", "_")
    cells = map(table_row, rows.itertuples(index=False, name=None))
    with (
        written_whole(folder / "summary.csv") as temporary,
        temporary.open("w", newline="") as file,
    ):
        csv.writer(file).writerows([rows.columns, *cells])
    with written_whole(folder / "summary.md") as temporary:
        temporary.write_text(markdown(summary))


def markdown(summary: Summary) -> str:
    """The ranking as a table for documents, with what its columns mean below."""
    measure, metrics = as_text(summary.measure), summary.metrics
    headings = ["policy", f"J against {measure}", "P(better)"]
    headings += [f"speedup over {as_text(summary.first)}"]
    headings += [metric.heading for metric in metrics.values()]
    lines = [f"# {summary.title}", "", as_text(summary.finding), ""]
    scenario = ["scenario"] * summary.several
    lines += [row_of([*scenario, *headings]), row_of(["---"] * len([*scenario, *headings]))]
    for each in summary.policies:
        cells = [
            *[as_text(each.scenario)] * summary.several,
            as_text(each.label),
            summary.told(each.relative, "share", "+"),
            summary.told(each.against.probability, "share"),
            summary.told(each.speedup),
        ]
        cells += [summary.told(each.metrics[name].mean, metrics[name].shown) for name in metrics]
        lines.append(row_of(cells))
    lines += ["", f"{as_text(summary.difference_is)} {summary.means_are}", ""]
    for metric in metrics.values():
        better = "" if metric.better is None else f"; {metric.better} is better"
        lines.append(f"- {metric.heading}: {metric.formula}{better}")
    return "\n".join(lines) + "\n"


def as_text(name: str) -> str:
    """A name in Markdown, where nothing in it is mark-up; `_` within a word is none."""
    return re.sub(r"[\\`*\[\]<>|~&$]|(?<![^\W_])_|_(?![^\W_])", r"\\\g<0>", name)


def row_of(cells: Sequence[str]) -> str:
    """A row of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


def without_nan(tree: Any) -> Any:
    """The same with null for NaN, which JSON does not have."""
    if isinstance(tree, Mapping):
        return {key: without_nan(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [without_nan(value) for value in tree]
    return None if isinstance(tree, float) and math.isnan(tree) else tree
