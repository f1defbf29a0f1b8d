"""Who keeps what was promised: in words, as a table, as a picture and as promise.json."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import altair as alt
import pandas as pd
from rich.table import Table

from env.base.files import written_whole
from evaluation.promise import VERDICTS, Judged, Judgement, Promise, Verdict
from report.axes import axis, on_axis
from report.charts import crosses
from report.digits import about, low_of, spread
from report.summary_files import without_nan
from report.table import plain_table
from report.vega import HEIGHT, Spec, by_name, spec_of, tooltips

MOST_NAMED = 5
"""Of those that are as good, in a sentence."""
WORDS: Mapping[Verdict, str] = {
    "kept": "kept",
    "unsure": "not sure",
    "broken": "broken",
    "unknown": "no number",
}
"""What readers are told."""
COLOURS = {"kept": "#009E73", "not sure": "#E69F00", "broken": "#999999"}
"""Okabe and Ito's, as in palette.py."""
SHAPES = {"kept": "circle", "not sure": "diamond", "broken": "cross"}
"""Of points, for those who see no colours."""


def answer(judgement: Judgement) -> list[str]:
    """What the promises come to, in sentences, the answer first."""
    promised = " and ".join(map(str, judgement.promises))
    kept, unsure, broken, unknown = (judgement.of(verdict) for verdict in VERDICTS)
    interval = f"the whole {judgement.confidence:.0%} interval"
    lines = []
    if (best := judgement.best) is not None:
        lines.append(
            f"Cheapest that surely keeps {promised}, with {interval}: {_numbers(best, judgement)}."
        )
        alike = [row for row in kept if row is not best and row.more.ci_low <= 0]
        if alike:
            more = f"; and {len(alike) - MOST_NAMED} more" if len(alike) > MOST_NAMED else ""
            named = "; ".join(map(_named, alike[:MOST_NAMED]))
            lines.append(f"Not surely dearer: {named}{more}.")
    elif any(row.kind != "reference" for row in kept):
        lines.append(f"{promised} is kept, but {judgement.minimised} has no number here.")
    else:
        lines.append(f"Nobody surely keeps {promised}, with {interval}.")
    if judgement.perhaps is not None:
        settled = (
            "It is too close for any number of episodes to settle"
            if judgement.settling is None
            else f"About {about(judgement.settling)} episodes in all would settle it"
        )
        lines.append(
            f"{'Perhaps' if best is None else 'Perhaps cheaper'}: "
            f"{_numbers(judgement.perhaps, judgement)}. The mean keeps it, the interval does "
            f"not. {settled}."
        )
    verdicts = {
        "surely keep it": kept,
        "cannot be told": unsure,
        "surely do not": broken,
        "have no number": unknown,
    }
    counts = ", ".join(f"{len(rows)} {text}" for text, rows in verdicts.items() if rows)
    who = "pairs of scenario and scheduler" if _several(judgement) else "schedulers"
    lines.append(f"Of {len(judgement.rows)} {who} {counts} ({judgement.confidence:.0%} intervals).")
    return lines


def promise_table(judgement: Judgement) -> Table:
    """A row a scheduler and scenario: verdict, means of what is promised, what it spends."""
    table = plain_table()
    whole = {"promise", "scenario", "policy", *map(str, judgement.promises)}
    for heading in headings(judgement):
        # Names stay whole, numbers give way.
        table.add_column(heading.replace(" ", "\n", 1), no_wrap=heading in whole)
    for row in judgement.rows:
        in_lines = row.scenario.replace(" ", "\n")  # a swept key a line, as names are long
        shown = [cell.replace(" [", "\n[") for cell in cells(row, judgement)]
        table.add_row(*(in_lines if cell == row.scenario else cell for cell in shown))
    return table


def headings(judgement: Judgement) -> list[str]:
    """Of the columns of tables."""
    return [
        "promise",
        *["scenario"] * _several(judgement),
        "policy",
        *map(str, judgement.promises),
        judgement.metrics[judgement.minimised].heading,
        *["more"] * (judgement.best is not None),
    ]


def cells(row: Judged, judgement: Judgement) -> list[str]:
    """Of a row of tables."""
    spent = judgement.metrics[judgement.minimised].shown
    return [
        WORDS[row.verdict],
        *[row.scenario] * _several(judgement),
        _label(row),
        *(
            spread(mean, judgement.metrics[promise.metric].shown)
            for promise, mean in zip(judgement.promises, row.means, strict=True)
        ),
        spread(row.spent, spent),
        *[spread(row.more, spent, sign="+")] * (judgement.best is not None),
    ]


def promise_charts(judgement: Judgement) -> dict[str, Spec]:
    """What is spent against each promised metric, by the id of its place on the page."""
    return {
        f"promise-{place}": _chart(_points(judgement, place), promise, judgement)
        for place, promise in enumerate(judgement.promises)
    }


def _points(judgement: Judgement, place: int) -> pd.DataFrame:
    """policy, scenario, verdict, best; spent and mean, each with _low, _high and as it is shown.

    Rows that lack a number are left out.
    """
    points = []
    for row in judgement.rows:
        point = {
            "policy": _label(row),
            "scenario": row.scenario,
            "verdict": WORDS[row.verdict],
            "best": row is judgement.best,
        }
        for name, each in (("spent", row.spent), ("mean", row.means[place])):
            point |= {
                name: each.value,
                f"{name}_low": low_of(each),
                f"{name}_high": each.ci_high,
                f"shown_{name}": spread(each),
            }
        if row.verdict != "unknown" and not math.isnan(row.spent.value):
            points.append(point)
    return pd.DataFrame(points)


def _chart(rows: pd.DataFrame, promise: Promise, judgement: Judgement) -> Spec:
    """A point a scheduler and scenario, and the bound as a line.

    Args:
        rows: see `_points`.
        promise: on the vertical axis.
        judgement: says what is minimised, on the horizontal one.
    """
    for name in ("spent", "mean"):
        rows = rows.assign(**{f"{name}_low": on_axis(rows[f"{name}_low"], rows[name])})
    titles = {
        name: judgement.metrics[metric].heading
        for name, metric in (("mean", promise.metric), ("spent", judgement.minimised))
    }
    reached = pd.concat([rows["mean"], pd.Series([promise.bound])])
    x = axis(alt.X, "spent", titles["spent"], rows["spent"])
    y = axis(alt.Y, "mean", titles["mean"], reached)
    told = {f"shown_{name}": title for name, title in titles.items()}
    base = alt.Chart(rows).encode(x, y, by_name(alt.Color, "verdict", COLOURS))
    bound = alt.Chart(pd.DataFrame({"mean": [promise.bound], "text": [str(promise)]}))
    layers = [
        bound.mark_rule(strokeDash=[4, 4]).encode(y),
        bound.mark_text(align="right", dy=-6, fontSize=11).encode(
            y, x=alt.value("width"), text="text:N"
        ),
        *crosses(base, "spent", "mean"),
        base.mark_point(filled=True, size=70, opacity=0.9).encode(
            by_name(alt.Shape, "verdict", SHAPES),
            tooltip=tooltips("verdict", "policy", "scenario", **told),
        ),
    ]
    if rows["best"].any():  # a layer without rows is complained of
        best = alt.Chart(rows[rows["best"]]).encode(x, y)
        layers.append(best.mark_point(size=220, strokeWidth=2, color=COLOURS["kept"]))
    return spec_of(alt.layer(*layers), HEIGHT)


def write_promises(folder: Path, judgement: Judgement) -> None:
    """Writes `promise.json`."""
    tree = asdict(replace(judgement, metrics={}))
    tree = {
        "keep": {each.metric: f"{each.comparator}{each.bound:g}" for each in judgement.promises},
        "minimise": judgement.minimised,
        "confidence": judgement.confidence,
        **{key: tree[key] for key in ("best", "perhaps", "settling", "rows")},
    }
    with written_whole(folder / "promise.json") as temporary:
        temporary.write_text(json.dumps(without_nan(tree), indent=2, allow_nan=False) + "\n")


def _several(judgement: Judgement) -> bool:
    return any(row.scenario for row in judgement.rows)


def _label(row: Judged) -> str:
    return f"{row.policy} (reference)" if row.kind == "reference" else row.policy


def _named(row: Judged) -> str:
    return f"{_label(row)} with {row.scenario}" if row.scenario else _label(row)


def _numbers(row: Judged, judgement: Judgement) -> str:
    """Who it is, with its numbers."""
    means = {judgement.minimised: row.spent}
    for promise, mean in zip(judgement.promises, row.means, strict=True):
        means[promise.metric] = mean
    numbers = (
        f"{judgement.metrics[name].heading} {spread(mean, judgement.metrics[name].shown)}"
        for name, mean in means.items()
    )
    return ", ".join((_named(row), *numbers))
