"""What the charts of an evaluation have in common: rows, colours and dashes, intervals, fronts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from env.score.metrics import Shown
from evaluation.statistics import Estimate
from report import palette
from report.axes import axis, end_of_axis, on_axis
from report.digits import low_of, number, spread, varies
from report.summary import RANKED_BY, PolicySummary, Summary, wrapped
from report.vega import Spec, by_name, layered, mark, quantity, tooltips

ROW = 32
"""Pixels of a policy in charts with a row each: two lines of text."""
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
"""Of the lines of policies, for every round through the colours."""
DIFFERENCE = "difference"
"""What stands beside the names of metrics for the paired difference in J to the measure."""

SHOWN = "shown"
"""Parameter of charts with a line a policy: names of the policies to draw."""
BACK = "back"
"""Parameter of charts with hollow points: the colour behind them."""

KIND = by_name("kind", palette.KINDS)
POLICIES: Spec = {
    "field": "label",
    "type": "nominal",
    "sort": None,
    "axis": {
        "labelExpr": "split(datum.label, '\\n')",
        # Baselines are those of the first line.
        "labelBaseline": {
            "condition": {"test": "indexof(datum.label, '\\n') > 0", "value": "bottom"},
            "value": "middle",
        },
        "labelLimit": 0,
        "labelPadding": 8,  # room for a point at the end of the axis
        "title": None,
    },
}
"""A row a policy, in the order of the data."""


def turns(kinds: Mapping[str, str]) -> dict[str, int]:
    """The place of every policy among those of its kind."""
    of = pd.Series(kinds)
    return dict(of.groupby(of).cumcount())


def styles(kinds: Mapping[str, str]) -> list[dict[str, Any]]:
    """Colour and dashes of every policy's line: baselines have those of no other kind in turn.

    Args:
        kinds: by policy, in rank order.
    """
    others = [colour for colour in palette.SERIES if colour not in palette.KINDS.values()]
    colours = {kind: [colour] for kind, colour in palette.KINDS.items()}
    colours["baseline"] += others
    lines = []
    for policy, turn in turns(kinds).items():
        own = colours[kinds[policy]]
        dash = DASHES[turn // len(own) % len(DASHES)]
        lines.append({"policy": policy, "colour": own[turn % len(own)], "dash": dash})
    return lines


def headings_of(summary: Summary) -> dict[str, str]:
    """The metrics, and the difference to the measure, as people call them."""
    headings = {name: metric.heading for name, metric in summary.metrics.items()}
    return {DIFFERENCE: f"{RANKED_BY} against {summary.measure}", **headings}


def names_of(summary: Summary) -> pd.DataFrame:
    """A row a policy: policy, label, kind."""
    return pd.DataFrame(
        {"policy": row.policy, "label": wrapped(row.policy), "kind": row.kind}
        for row in summary.policies
    )


def estimated(
    summary: Summary, of: Callable[[PolicySummary], Estimate], shown: Shown, sign: str = ""
) -> pd.DataFrame:
    """`names_of` with an estimate, where there is a mean.

    Returns:
        Beside the names: mean, low and high (equal if there is no interval), each (values of
        episodes, none yet), written (the mean as text), told (with its interval), clear (True).
    """
    rows: list[tuple[Any, ...]] = []
    for row in summary.policies:
        found = summary.tellable(of(row))
        low = found.ci_low if sign else low_of(found)
        ends = (low, found.ci_high) if varies(found) else (found.value, found.value)
        texts = number(found, shown, sign), spread(found, shown, sign)
        rows.append((found.value, *ends, [], *texts, True))
    columns = ("mean", "low", "high", "each", "written", "told", "clear")
    return names_of(summary).join(pd.DataFrame(rows, columns=columns)).dropna(subset="mean")


def means_of(summary: Summary, name: str) -> pd.DataFrame:
    """`estimated` of a metric, or of the difference to the measure."""
    if name == DIFFERENCE:
        return estimated(summary, lambda row: row.relative, "share", "+")
    return estimated(summary, lambda row: row.metrics[name].mean, summary.metrics[name].shown)


def row_a_policy(layers: Sequence[Spec], rows: pd.DataFrame, **more: Any) -> Spec:
    """A chart with the vertical axis `POLICIES`."""
    return layered(layers, rows, ROW * rows["policy"].nunique(), **more)


def estimates(
    rows: pd.DataFrame, x: Spec, *behind: Spec, y: Spec = POLICIES, **titles: str
) -> list[Spec]:
    """Points at `x` in their intervals, a row a policy; hollow where a difference is not clear.

    Args:
        rows: as of `estimated`, and beyond (what is written of a mean beyond the end of the axis).
        x: of the mean.
        behind: layers that are behind the points.
        y: of the policy.
        titles: of further fields that the tooltip tells.
    """
    at = {"y": y, "color": KIND}
    triangle = {"test": "datum.beyond", "value": "triangle-right"}
    means = mark(
        "point",
        {"size": 80, "opacity": 1, "strokeWidth": 2},
        **at,
        x=x,
        shape={"condition": triangle, "value": "circle"},
        fill={"condition": {"test": "datum.clear", **KIND}, "value": {"expr": BACK}},
        tooltip=tooltips("policy", "kind", told="mean", **titles),
    )
    ends = {"x": x | {"field": "low"}, "x2": {"field": "high"}}
    intervals = mark("rule", {"strokeWidth": 2}, **at, **ends)
    beyond = mark("text", {"align": "right", "dx": -9}, x=x, y=y, text={"field": "beyond"})
    layers = [*behind, intervals, means, beyond]
    if rows["each"].str.len().any():  # a layer without rows is complained of
        small = {"filled": True, "size": 20, "opacity": 0.6}
        episodes = mark("point", small, **at, x=x | {"field": "each"})
        layers.insert(len(behind), {"transform": [{"flatten": ["each"]}], **episodes})
    return layers


def folded(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of `estimated` whose axis is not set by a few that lie far outside, with `beyond`."""
    end = end_of_axis(rows["mean"], rows["high"])
    far = rows["mean"] > end
    ends = {name: rows[name].clip(upper=end).where(~far, end) for name in ("low", "high")}
    beyond = rows["written"].where(far, "")
    each = [np.minimum(values, end).tolist() for values in rows["each"]]
    return rows.assign(**ends, each=each, beyond=beyond, mean=rows["mean"].clip(upper=end))


def crossed(rows: pd.DataFrame, titles: Mapping[str, str]) -> tuple[Spec, Spec, pd.DataFrame]:
    """The axes of points with two intervals each, and the rows with ends that these axes have.

    Args:
        rows: both fields, each with `_low` and `_high`.
        titles: of the horizontal and of the vertical axis, by field.
    """
    x, y = (axis(field, title, rows[field]) for field, title in titles.items())
    lows = {f"{field}_low": on_axis(rows[f"{field}_low"], rows[field]) for field in titles}
    return x, y, rows.assign(**lows)


def crosses(x: Spec, y: Spec, color: Spec) -> list[Spec]:
    """The intervals of such points, along both axes."""
    look, at = {"opacity": 0.4}, {"x": x, "y": y, "color": color}
    ends = [
        {along: quantity(f"{field}_low"), f"{along}2": {"field": f"{field}_high"}}
        for along, field in (("x", x["field"]), ("y", y["field"]))
    ]
    return [mark("rule", look, **at | both) for both in ends]


def pareto(points: np.ndarray) -> np.ndarray:
    """(P,) whether no other point is as good in one coordinate and better in the other.

    Args:
        points: (P, 2), less is better.
    """
    no_worse = np.all(points[:, None] <= points[None], axis=2)
    better = np.any(points[:, None] < points[None], axis=2)
    return np.asarray(~np.any(no_worse & better, axis=0))
