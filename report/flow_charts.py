"""The charts of where time goes and of what was swept, as Vega-Lite; each function is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from report import palette
from report.charts import (
    DASHES,
    ONLY_SHOWN,
    POLICY_LABELS,
    ROW,
    SHOWN,
    axis_of,
    curves,
    line_channels,
    on_axis,
    scale_of,
)
from report.vega import HEIGHT, Spec, numbers, spec_of

SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")
"""Of the points of policies of a kind, used over again."""
PANEL = "panel"
"""Parameter of the sweep: values of the keys that are not its axis."""


def flow_time(
    times: Mapping[str, np.ndarray], shares: np.ndarray, kinds: Mapping[str, str]
) -> Spec:
    """Share of workflows that took no longer than a time, a line a policy.

    Args:
        times: (Q,) s by policy.
        shares: (Q,) of the workflows.
        kinds: of all policies, see `charts.styles`.
    """
    everyone = pd.Series(np.concatenate(list(times.values())))
    x = alt.X(
        "flow_time:Q", title="flow time (s)", scale=scale_of(everyone), axis=axis_of(everyone)
    )
    points = {policy: (own, shares) for policy, own in times.items()}
    return curves(points, x, "share of workflows", kinds)


def deadlines(rows: pd.DataFrame, kinds: Mapping[str, str]) -> Spec:
    """Share of workflows that meet each deadline, a line a policy.

    Args:
        rows: policy, deadline, mean, low, high, told.
        kinds: of all policies, see `charts.styles`.
    """
    x = alt.X(
        "deadline:Q",
        title="deadline / time alone",
        scale=alt.Scale(type="log", nice=False, padding=16),
        axis=alt.Axis(values=sorted(set(rows["deadline"])), format="~g"),
    )
    y = alt.Y(
        "mean:Q",
        title="share of workflows in time",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(format="%"),
    )
    return spec_of(_banded(alt.Chart(rows), x, y, list(kinds), *line_channels(kinds)), HEIGHT)


def parts(rows: pd.DataFrame) -> Spec:
    """What the time of functions is made of, a bar a policy, best policy on top.

    Args:
        rows: in rank order of the policies: policy, label, part, number (of the part, from the
            left), seconds.
    """
    scale = alt.Scale(domain=list(palette.PARTS), range=list(palette.PARTS.values()))
    chart = (
        alt.Chart(rows)
        .mark_bar()
        .encode(
            alt.X("seconds:Q", title="seconds", axis=alt.Axis(tickCount=5)),
            alt.Y("label:N", sort=None, axis=POLICY_LABELS),
            alt.Color("part:N", legend=None, scale=scale),
            alt.Order("number:Q"),
            tooltip=numbers(["policy", "part", "seconds"]),
        )
    )
    return spec_of(chart, ROW * rows["policy"].nunique())


def sweep(rows: pd.DataFrame, axis: str, kinds: Mapping[str, str], metric: str) -> Spec:
    """A metric against a key that was swept: a line a policy over numbers, else points.

    Args:
        rows: x (value of the key, text if it is no number), panel, policy, mean, low and high
            (of the interval), told (all three as text).
        axis: the key.
        kinds: by policy, all of them.
        metric: its heading.
    """
    values = list(dict.fromkeys(rows["x"]))
    rows = rows.assign(low=on_axis(rows["low"], rows["mean"]))
    chart = alt.Chart(rows).transform_filter(f"datum.panel === {PANEL}")
    axis_y = axis_of(rows["mean"])
    if "%" in "".join(rows["told"]):
        axis_y = alt.Axis(format="~%")
    y = alt.Y("mean:Q", title=metric, scale=scale_of(rows["mean"], padding=0), axis=axis_y)
    if pd.api.types.is_numeric_dtype(rows["x"]):
        ticks = alt.Axis(values=values, format="~g")
        x = alt.X("x:Q", title=axis, scale=scale_of(rows["x"]), axis=ticks)
    else:
        x = alt.X("x:N", title=axis, sort=values, axis=alt.Axis(labelAngle=0))
    names: dict[str, list[str]] = {}
    for name, kind in kinds.items():
        names.setdefault(kind, []).append(name)
    legend = alt.Legend(values=alt.ExprRef(SHOWN), orient="top", columns=3, title=None)

    def scale(styles: Sequence[Any]) -> alt.Scale:
        """By the place of a policy among those of its kind."""
        own = [styles[names[kind].index(name) % len(styles)] for name, kind in kinds.items()]
        return alt.Scale(domain=list(kinds), range=own)

    colours = alt.Scale(domain=list(kinds), range=[palette.KINDS[kind] for kind in kinds.values()])
    lines = _banded(
        chart,
        x,
        y,
        list(kinds),
        alt.Color("policy:N", scale=colours, legend=legend),
        alt.StrokeDash("policy:N", scale=scale(DASHES), legend=legend),
        alt.Shape("policy:N", scale=scale(SHAPES), legend=legend),
    )
    panel = alt.param(PANEL, value=rows["panel"].iloc[0])
    return spec_of(lines.add_params(panel), HEIGHT)


def _banded(
    chart: alt.Chart,
    x: alt.X,
    y: alt.Y,
    policies: Sequence[str],
    *styles: alt.Color | alt.StrokeDash | alt.Shape,
) -> alt.LayerChart | alt.FacetChart:
    """A line a policy in the band of its intervals; points with theirs if x is no number.

    Args:
        chart: of the rows.
        x, y: the axes.
        policies: all of them.
        styles: of lines: their colour, their dashes, and where they have some their points.
    """
    colour, dash, *shape = styles
    low = y.copy(deep=False)
    low.shorthand = "low:Q"
    base = chart.transform_filter(ONLY_SHOWN).encode(x, colour)
    if x.shorthand.endswith(":Q"):
        # Symmetric intervals may reach beyond what a share can be.
        layers = [
            base.mark_area(opacity=0.15, clip=True).encode(low, alt.Y2("high")),
            base.mark_line(strokeWidth=2).encode(y, dash),
        ]
    else:
        beside = alt.XOffset("policy:N", scale=alt.Scale(domain=policies, paddingOuter=0.5))
        base = base.encode(xOffset=beside)
        layers = [base.mark_rule(strokeWidth=2).encode(low, alt.Y2("high"))]
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        y,
        *shape,
        tooltip=[
            "policy:N",
            alt.Tooltip(x.shorthand, title=x["title"]),
            alt.Tooltip("told:N", title="mean"),
        ],
    )
    drawn = alt.layer(*layers, points)
    return drawn.add_params(alt.param(SHOWN, value=list(policies)))
