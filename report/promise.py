"""Who keeps what was promised: in words, as a table, as a picture and as promise.json."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.table import Table

from env.base.files import written_whole
from evaluation.promise import VERDICTS, Judged, Judgement, Promise, Verdict
from report.charts import axis_of, on_axis, scale_of
from report.digits import about, low_of, spread
from report.summary_files import without_nan
from report.vega import HEIGHT, Spec, spec_of

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
    told = []
    if (best := judgement.best) is not None:
        told.append(
            f"Cheapest that surely keeps {promised}, with {interval}: {_named(best)}, "
            f"{_numbers(best, judgement)}."
        )
        alike = [row for row in kept if row is not best and row.more.ci_low <= 0]
        if alike:
            more = f"; and {len(alike) - MOST_NAMED} more" if len(alike) > MOST_NAMED else ""
            named = "; ".join(map(_named, alike[:MOST_NAMED]))
            told.append(f"Not surely dearer: {named}{more}.")
    elif any(row.kind != "reference" for row in kept):
        told.append(f"{promised} is kept, but {judgement.minimised} has no number here.")
    else:
        told.append(f"Nobody surely keeps {promised}, with {interval}.")
    if judgement.perhaps is not None:
        told.append(_perhaps(judgement.perhaps, judgement))
    counts = [
        f"{len(rows)} {text}"
        for rows, text in (
            (kept, "surely keep it"),
            (unsure, "cannot be told"),
            (broken, "surely do not"),
            (unknown, "have no number"),
        )
        if rows
    ]
    whole = (
        f"Of {len(judgement.rows)} pairs of scenario and scheduler "
        if _several(judgement)
        else (f"Of {len(judgement.rows)} schedulers ")
    )
    told.append(f"{whole}{', '.join(counts)} ({judgement.confidence:.0%} intervals).")
    return told


def _perhaps(row: Judged, judgement: Judgement) -> str:
    words = "Perhaps" if judgement.best is None else "Perhaps cheaper"
    count = judgement.settling
    settled = (
        "It is too close for any number of episodes to settle"
        if count is None
        else f"About {about(count)} episodes in all would settle it"
    )
    return (
        f"{words}: {_named(row)}, {_numbers(row, judgement)}. The mean keeps it, the interval does "
        f"not. {settled}."
    )


def promise_table(judgement: Judgement) -> Table:
    """A row a scheduler and scenario: verdict, means of what is promised, what it spends."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    whole = {"promise", "scenario", "policy", *map(str, judgement.promises)}
    for heading in headings(judgement):
        # Names stay whole, numbers give way.
        table.add_column(heading.replace(" ", "\n", 1), no_wrap=heading in whole)
    for row in judgement.rows:
        in_lines = row.scenario.replace(" ", "\n")  # a swept key a line, as names are long
        told = [cell.replace(" [", "\n[") for cell in cells(row, judgement)]
        table.add_row(*(in_lines if cell == row.scenario else cell for cell in told))
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


def _chart(rows: pd.DataFrame, promise: Promise, judgement: Judgement) -> Spec:
    """A point a scheduler and scenario, and the bound as a line.

    Args:
        rows: see `_points`.
        promise: on the vertical axis.
        judgement: says what is minimised, on the horizontal one.
    """
    for name in ("spent", "mean"):
        rows = rows.assign(**{f"{name}_low": on_axis(rows[f"{name}_low"], rows[name])})
    reached = pd.concat([rows["mean"], pd.Series([promise.bound])])
    x = alt.X(
        "spent:Q",
        title=judgement.metrics[judgement.minimised].heading,
        scale=scale_of(rows["spent"]),
        axis=axis_of(rows["spent"]),
    )
    y = alt.Y(
        "mean:Q",
        title=judgement.metrics[promise.metric].heading,
        scale=scale_of(reached),
        axis=axis_of(reached),
    )
    verdicts = list(COLOURS)
    colour = alt.Color(
        "verdict:N", legend=None, scale=alt.Scale(domain=verdicts, range=list(COLOURS.values()))
    )
    shapes = alt.Scale(domain=verdicts, range=list(SHAPES.values()))
    told = [alt.Tooltip(f"{name}:N") for name in ("verdict", "policy", "scenario")]
    told += [
        alt.Tooltip(f"{field}:N", title=judgement.metrics[name].heading)
        for field, name in (
            ("shown_mean", promise.metric),
            ("shown_spent", judgement.minimised),
        )
    ]
    base = alt.Chart(rows).encode(x, y, colour)
    bound = pd.DataFrame({"mean": [promise.bound], "text": [str(promise)]})
    best = alt.Chart(rows[rows["best"]]).encode(x, y)
    layers = [
        alt.Chart(bound).mark_rule(strokeDash=[4, 4]).encode(y),
        alt.Chart(bound)
        .mark_text(align="right", dy=-6, fontSize=11)
        .encode(y, x=alt.value("width"), text="text:N"),
        base.mark_rule(opacity=0.4).encode(alt.X("spent_low:Q"), alt.X2("spent_high")),
        base.mark_rule(opacity=0.4).encode(alt.Y("mean_low:Q"), alt.Y2("mean_high")),
        base.mark_point(filled=True, size=70, opacity=0.9).encode(
            shape=alt.Shape("verdict:N", legend=None, scale=shapes), tooltip=told
        ),
    ]
    if rows["best"].any():  # a layer without rows is complained of
        layers.append(best.mark_point(size=220, strokeWidth=2, color=COLOURS["kept"]))
    return spec_of(alt.layer(*layers), HEIGHT)


def write_promises(folder: Path, judgement: Judgement) -> None:
    """Writes `promise.json`."""
    rows = [asdict(row) for row in judgement.rows]
    tree = {
        "keep": {each.metric: f"{each.comparator}{each.bound:g}" for each in judgement.promises},
        "minimise": judgement.minimised,
        "confidence": judgement.confidence,
        "best": None if judgement.best is None else asdict(judgement.best),
        "perhaps": None if judgement.perhaps is None else asdict(judgement.perhaps),
        "settling": judgement.settling,
        "rows": rows,
    }
    with written_whole(folder / "promise.json") as temporary:
        temporary.write_text(json.dumps(without_nan(tree), indent=2, allow_nan=False) + "\n")


def _points(judgement: Judgement, place: int) -> pd.DataFrame:
    """policy, scenario, verdict, best; spent and mean, each with _low, _high and as it is shown."""
    found = []
    for row in _known(judgement, place):
        point: dict[str, Any] = {
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
        found.append(point)
    return pd.DataFrame(found)


def _known(judgement: Judgement, place: int) -> list[Judged]:
    """The rows that have a place in a picture."""
    return [
        row
        for row in judgement.rows
        if row.verdict != "unknown"
        and not math.isnan(row.spent.value)
        and not math.isnan(row.means[place].value)
    ]


def _several(judgement: Judgement) -> bool:
    return any(row.scenario for row in judgement.rows)


def _label(row: Judged) -> str:
    return f"{row.policy} (reference)" if row.kind == "reference" else row.policy


def _named(row: Judged) -> str:
    return f"{_label(row)} with {row.scenario}" if row.scenario else _label(row)


def _numbers(row: Judged, judgement: Judgement) -> str:
    told = [(judgement.minimised, row.spent)]
    told += [
        (promise.metric, mean) for promise, mean in zip(judgement.promises, row.means, strict=True)
    ]
    return ", ".join(
        f"{judgement.metrics[name].heading} {spread(mean, judgement.metrics[name].shown)}"
        for name, mean in dict(told).items()
    )
