"""The charts of an evaluation as Vega-Lite specifications: what is drawn from which fields.

Each function is one chart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import altair as alt
import numpy as np
import pandas as pd

from report import palette
from report.vega import HEIGHT, Spec, numbers, spec_of

LOG_FROM = 20.0
"""Axes are logarithmic where the largest value is this many times the smallest."""
LABEL = np.array([0.3, 0.12])
"""Of the width and height of a chart: the room that a policy's name takes on a phone."""
ROW = 32
"""Pixels of a policy in charts with a row each: two lines of text."""
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
"""Of the lines of policies, for every round through the colours."""

SHOWN = "shown"
"""Parameter of charts with a line a policy: names of the policies to draw."""
ONLY_SHOWN = f"indexof({SHOWN}, datum.policy) >= 0"
METRIC = "metric"
"""Parameter of the ranking: name of the metric to rank by."""

_KIND = alt.Color(
    "kind:N",
    legend=None,
    scale=alt.Scale(domain=list(palette.KINDS), range=list(palette.KINDS.values())),
)
POLICY_LABELS = alt.Axis(
    labelExpr="split(datum.label, '\\n')",
    # Baselines are those of the first line.
    labelBaseline={
        "condition": {"test": "indexof(datum.label, '\\n') > 0", "value": "bottom"},
        "value": "middle",
    },
    labelLimit=0,
    labelPadding=8,  # room for a point at the end of the axis
    title=None,
)


def wrapped(name: str) -> str:
    """A policy's name in two lines of similar length where it is long."""
    breaks = [at for at, letter in enumerate(name) if letter in "_ "]
    if len(name) <= 16 or not breaks:
        return name
    at = min(breaks, key=lambda at: abs(at - len(name) / 2))
    return f"{name[: at + 1]}\n{name[at + 1 :]}"


def styles(policies: Sequence[str]) -> list[dict[str, Any]]:
    """Colour and dashes of every policy's line, in the order given."""
    colours = palette.SERIES
    return [
        {
            "policy": policy,
            "colour": colours[index % len(colours)],
            "dash": DASHES[index // len(colours) % len(DASHES)],
        }
        for index, policy in enumerate(policies)
    ]


def ranking(rows: pd.DataFrame) -> Spec:
    """Mean and interval of every policy, best on top.

    Args:
        rows: policy, label, kind, metric, mean, ci_low, ci_high, low (where the interval is drawn
            from), place.
    """
    x = alt.X("mean:Q", title=None, scale=alt.Scale(zero=False, nice=True))
    y = alt.Y("label:N", sort=alt.EncodingSortField("place", "min"), axis=POLICY_LABELS)
    chart = alt.Chart(rows).transform_filter(f"datum.metric === {METRIC}")
    layers = _estimates(chart, x, y).add_params(alt.param(METRIC, value="J"))
    return spec_of(layers, ROW * rows["policy"].nunique())


def improvement(rows: pd.DataFrame) -> Spec:
    """How often every policy has a lower J than the measure, best policy on top.

    Args:
        rows: policy, label, kind, mean, ci_low, ci_high, low; without the measure.
    """
    x = alt.X(
        "mean:Q",
        title="share of episodes with a lower J",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1]),
    )
    y = alt.Y("label:N", sort=None, axis=POLICY_LABELS)
    even = alt.Chart(pd.DataFrame({"even": [0.5]})).mark_rule(strokeDash=[4, 4]).encode(x="even:Q")
    return spec_of(alt.layer(even, _estimates(alt.Chart(rows), x, y)), ROW * len(rows))


def _estimates(chart: alt.Chart, x: alt.X, y: alt.Y) -> alt.LayerChart:
    """Points at `x` in their intervals, a row a policy."""
    base = chart.encode(y=y, color=_KIND)
    low = x.copy(deep=False)
    low.shorthand = "low:Q"
    intervals = base.mark_rule(strokeWidth=2).encode(low, alt.X2("ci_high"))
    points = base.mark_point(filled=True, size=80, opacity=1).encode(
        x, tooltip=numbers(["policy", "kind", "mean", "ci_low", "ci_high"])
    )
    return intervals + points


def time_against(spent: str, rows: pd.DataFrame, titles: Mapping[str, str]) -> Spec:
    """Every policy by its mean slowdown and what it spent, and the Pareto front of them.

    Args:
        spent: a metric.
        rows: best policy first: policy, label, kind, and slowdown and what was spent, each with
            _low, _high.
        titles: of the axes, by metric.
    """
    points_at = rows[[spent, "slowdown"]].to_numpy()
    rows = rows.assign(front=pareto(points_at))
    for name in (spent, "slowdown"):
        rows[f"{name}_low"] = on_axis(rows[f"{name}_low"], rows[name])
    right = rows[spent] > np.sqrt(rows[spent].min() * rows[spent].max())
    named = _with_room(np.log(points_at), (rows["front"] | (rows["kind"] == "learned")).to_numpy())
    x, y = (
        channel(
            f"{name}:Q", title=titles[name], scale=scale_of(rows[name]), axis=axis_of(rows[name])
        )
        for channel, name in ((alt.X, spent), (alt.Y, "slowdown"))
    )
    points = alt.Chart(rows).encode(x, y)
    layers = [
        alt.Chart(rows[rows["front"]])
        .mark_line(strokeDash=[4, 4], color=palette.KINDS["reference"])
        .encode(x, y),
        points.mark_rule(opacity=0.4).encode(
            alt.X(f"{spent}_low:Q"), alt.X2(f"{spent}_high"), color=_KIND
        ),
        points.mark_rule(opacity=0.4).encode(
            alt.Y("slowdown_low:Q"), alt.Y2("slowdown_high"), color=_KIND
        ),
        points.mark_point(filled=True, size=90, opacity=1).encode(
            color=_KIND, tooltip=numbers(["policy", "kind", "slowdown", spent])
        ),
    ]
    # Names are on the side of the line, which falls from left to right, that has room for them.
    for side, offset in ((~right, 1), (right, -1)):
        if (named & side).any():  # a layer without rows is complained of
            align: Literal["left", "right"] = "left" if offset > 0 else "right"
            layers.append(
                alt.Chart(rows[named & side])
                .mark_text(align=align, dx=8 * offset, dy=-15 * offset, lineBreak="\n", fontSize=11)
                .encode(x, y, text="label:N", color=_KIND)
            )
    return spec_of(alt.layer(*layers), HEIGHT)


def profiles(shares: Mapping[str, np.ndarray], ratios: np.ndarray, policies: Sequence[str]) -> Spec:
    """Share of episodes in which a policy is within a ratio of the best one, a line a policy.

    Args:
        shares: (R,) by policy.
        ratios: (R,).
        policies: all of them, see `line_channels`.
    """
    x = alt.X(
        "ratio:Q",
        title="J / lowest J of the episode",
        scale=alt.Scale(domain=[1.0, float(ratios[-1])], nice=False),
        axis=alt.Axis(tickCount=6),
    )
    points = {policy: (ratios, share) for policy, share in shares.items()}
    return curves(points, x, "share of episodes", policies)


def cold_starts(rows: pd.DataFrame, title: str) -> Spec:
    """How many episodes of a policy had how many cold starts, and the median.

    Args:
        rows: an episode each, in rank order of the policies: policy, label, kind, cold_starts.
        title: of the axis.
    """
    x = alt.X("cold_starts:Q", title=f"{title} of an episode", axis=alt.Axis(tickMinStep=1))
    y = alt.Y("label:N", sort=None, axis=POLICY_LABELS)
    episodes = (
        alt.Chart(rows)
        .mark_circle(opacity=0.8)
        .encode(
            x,
            y,
            color=_KIND,
            size=alt.Size("count():Q", legend=None, scale=alt.Scale(rangeMin=20, rangeMax=250)),
            tooltip=["policy:N", "cold_starts:Q", alt.Tooltip("count():Q", title="episodes")],
        )
    )
    medians = alt.Chart(rows).mark_tick(thickness=2, size=20).encode(x.aggregate("median"), y)
    return spec_of(episodes + medians, ROW * rows["policy"].nunique())


def tenant_flow_time(rows: pd.DataFrame, colours: Mapping[str, str]) -> Spec:
    """Mean flow time of every tenant's workflows by policy, in rank order of the policies.

    Args:
        rows: a policy and tenant each: policy, label, tenant, flow_time, workflows.
        colours: by tenant.
    """
    x = alt.X(
        "flow_time:Q",
        title="mean flow time (s)",
        scale=scale_of(rows["flow_time"]),
        axis=axis_of(rows["flow_time"]),
    )
    y = alt.Y("label:N", sort=None, axis=POLICY_LABELS)
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    base = alt.Chart(rows)
    spans = base.mark_rule(opacity=0.5).encode(x.aggregate("min"), alt.X2("max(flow_time)"), y)
    means = base.mark_point(filled=True, size=90, opacity=1).encode(
        x,
        y,
        color=alt.Color("tenant:N", legend=None, scale=scale),
        tooltip=numbers(["policy", "tenant", "flow_time", "workflows"]),
    )
    return spec_of(spans + means, ROW * rows["policy"].nunique())


def learning_curve(rows: pd.DataFrame) -> Spec:
    """J of training episodes over the decisions that training has seen, a line a policy.

    Args:
        rows: an iteration each: env_steps, J, and policy where it is said.
    """
    colour = palette.KINDS["learned"]
    # A line of one point is not drawn, and an axis around it has no room for numbers.
    alone = len(rows) == 1
    chart = (
        alt.Chart(rows)
        .mark_line(color=colour, strokeWidth=2, point={"color": colour} if alone else False)
        .encode(
            alt.X("env_steps:Q", title="decisions trained on", axis=alt.Axis(format="~s")),
            alt.Y("J:Q", title="J", scale=alt.Scale(zero=alone)),
            tooltip=numbers(["env_steps", "J"]),
        )
    )
    if "policy" in rows and rows["policy"].nunique() > 1:
        several = alt.Color("policy:N", legend=alt.Legend(orient="top", title=None, labelLimit=0))
        scale = alt.Scale(range=list(palette.SERIES))
        chart = chart.encode(several.scale(scale), tooltip=numbers(["policy", "env_steps", "J"]))
    return spec_of(chart, HEIGHT)


def pareto(points: np.ndarray) -> np.ndarray:
    """(P,) whether no other point is as good in one coordinate and better in the other.

    Args:
        points: (P, 2), less is better.
    """
    no_worse = np.all(points[:, None] <= points[None], axis=2)
    better = np.any(points[:, None] < points[None], axis=2)
    return np.asarray(~np.any(no_worse & better, axis=0))


def _with_room(points: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """(P,) which of the wanted points can have a name: those not too near to one before them.

    Args:
        points: (P, 2), most important first.
        wanted: (P,) whether the point is to be named at all.
    """
    near = LABEL * np.maximum(np.ptp(points, axis=0), np.finfo(float).tiny)
    named = np.zeros(len(points), bool)
    for index in np.flatnonzero(wanted):
        apart = np.any(np.abs(points[named] - points[index]) > near, axis=1)
        named[index] = bool(np.all(apart))
    return named


def curves(
    points: Mapping[str, tuple[np.ndarray, np.ndarray]],
    x: alt.X,
    title: str,
    policies: Sequence[str],
) -> Spec:
    """A curve of shares a policy over `x`, of those in `SHOWN`.

    Args:
        points: (values of x, shares) by policy.
        x: its axis.
        title: of the shares.
        policies: all of them, see `line_channels`.
    """
    field = x.shorthand.removesuffix(":Q")
    colour, dash = line_channels(policies)
    rows = pd.DataFrame(
        {"policy": policy, field: at.round(4).tolist(), "share": share.round(4).tolist()}
        for policy, (at, share) in points.items()
    )
    chart = (
        alt.Chart(rows)
        .transform_filter(ONLY_SHOWN)
        .transform_flatten([field, "share"])
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            x,
            alt.Y("share:Q", title=title, axis=alt.Axis(format="%")),
            colour,
            dash,
            tooltip=numbers(["policy", field, "share"]),
        )
        .add_params(alt.param(SHOWN, value=list(policies)))
    )
    return spec_of(chart, HEIGHT)


def line_channels(policies: Sequence[str]) -> tuple[alt.Color, alt.StrokeDash]:
    """Colour and dashes of the lines of policies, given in the order that says which has which."""
    lines = styles(policies)
    colours, dashes = ([line[key] for line in lines] for key in ("colour", "dash"))
    return (
        alt.Color("policy:N", legend=None, scale=alt.Scale(domain=policies, range=colours)),
        alt.StrokeDash("policy:N", legend=None, scale=alt.Scale(domain=policies, range=dashes)),
    )


def scale_of(values: pd.Series, padding: int = 16) -> alt.Scale:
    """Logarithmic where values lie far apart; else with pixels of `padding` around them."""
    if _wide(values):
        return alt.Scale(type="log", nice=False, padding=24)
    return alt.Scale(zero=False, nice=True, padding=padding)


def axis_of(values: pd.Series) -> alt.Axis:
    """Few ticks where the axis is logarithmic."""
    return (
        alt.Axis(tickCount=5, labelOverlap=True, labelBound=True) if _wide(values) else alt.Axis()
    )


def on_axis(low: pd.Series, values: pd.Series) -> pd.Series:
    """Where intervals are drawn from: a logarithmic axis of `values` has no 0."""
    return low.clip(lower=values.min() / 2) if _wide(values) else low


def _wide(values: pd.Series) -> bool:
    return bool(values.min() > 0 and values.max() > LOG_FROM * values.min())
