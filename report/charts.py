"""The charts of an evaluation as Vega-Lite specifications: what is drawn from which fields.

Each function is one chart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from report import palette
from report.axes import axis, end_of_axis, is_wide, on_axis
from report.vega import HEIGHT, Spec, by_name, spec_of, tooltips

ROW = 32
"""Pixels of a policy in charts with a row each: two lines of text."""
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
"""Of the lines of policies, for every round through the colours."""

SHOWN = "shown"
"""Parameter of charts with a line a policy: names of the policies to draw."""
ONLY_SHOWN = f"indexof({SHOWN}, datum.policy) >= 0"
METRIC = "metric"
"""Parameter of the ranking: name of the metric to rank by."""
BACK = "back"
"""Parameter of charts with hollow points: the colour behind them."""

NAMES = "names"
"""Data of charts with named points: name, x, y, the ends of their intervals, whether the front has
them, and what template/draw.js fills in."""

KIND = by_name(alt.Color, "kind", palette.KINDS)
POLICIES = alt.Y(
    "label:N",
    sort=None,
    axis=alt.Axis(
        labelExpr="split(datum.label, '\\n')",
        # Baselines are those of the first line.
        labelBaseline={
            "condition": {"test": "indexof(datum.label, '\\n') > 0", "value": "bottom"},
            "value": "middle",
        },
        labelLimit=0,
        labelPadding=8,  # room for a point at the end of the axis
        title=None,
    ),
)
"""A row a policy, in the order of the data."""


def styles(kinds: Mapping[str, str]) -> list[dict[str, Any]]:
    """Colour and dashes of every policy's line: baselines have those of no other kind in turn.

    Args:
        kinds: by policy, in rank order.
    """
    others = [colour for colour in palette.SERIES if colour not in palette.KINDS.values()]
    colours = {kind: [colour] for kind, colour in palette.KINDS.items()}
    colours["baseline"] += others
    lines: list[dict[str, Any]] = []
    for policy, kind in kinds.items():
        own, place = colours[kind], sum(kinds[each["policy"]] == kind for each in lines)
        dash = DASHES[place // len(own) % len(DASHES)]
        lines.append({"policy": policy, "colour": own[place % len(own)], "dash": dash})
    return lines


def row_a_policy(chart: alt.TopLevelMixin, rows: pd.DataFrame) -> Spec:
    """A chart with the vertical axis `POLICIES`."""
    return spec_of(chart, ROW * rows["policy"].nunique())


def forest(rows: pd.DataFrame) -> Spec:
    """The paired difference of every policy to the measure, best policy on top.

    Args:
        rows: as for `estimates`, and p and better, the probability of an improvement.
    """
    signed = alt.Axis(labelExpr="datum.value ? format(datum.value, '+~%') : '0%'")
    x = alt.X("mean:Q", title="difference in J", axis=signed)
    zero = alt.Chart(pd.DataFrame({"zero": [0.0]})).mark_rule(strokeWidth=1.5).encode(x="zero:Q")
    points = estimates(alt.Chart(rows), x, POLICIES, p="p", better="P(better)")
    return row_a_policy(alt.layer(zero, points), rows)


def ranking(rows: pd.DataFrame, shares: Sequence[str]) -> Spec:
    """Mean and interval of every policy, best on top.

    Args:
        rows: as for `estimates`, and metric and place.
        shares: metrics whose axis is in percent.
    """
    written = f"indexof({list(shares)}, {METRIC}) < 0 ? datum.label : format(datum.value, '~%')"
    scale = alt.Scale(zero=False, nice=True)
    x = alt.X("mean:Q", title=None, scale=scale, axis=alt.Axis(labelExpr=written))
    y = POLICIES.sort(field="place", op="min")
    points = estimates(alt.Chart(rows).transform_filter(f"datum.metric === {METRIC}"), x, y)
    return row_a_policy(points.add_params(alt.param(METRIC, value="J")), rows)


def improvement(rows: pd.DataFrame) -> Spec:
    """How often every policy has a lower J than the measure, best policy on top.

    Args:
        rows: as for `estimates`, without the measure.
    """
    quarters = alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1])
    scale = alt.Scale(domain=[0, 1])
    x = alt.X("mean:Q", title="share of episodes with a lower J", scale=scale, axis=quarters)
    even = alt.Chart(pd.DataFrame({"even": [0.5]})).mark_rule(strokeDash=[4, 4]).encode(x="even:Q")
    return row_a_policy(alt.layer(even, estimates(alt.Chart(rows), x, POLICIES)), rows)


def estimates(
    chart: alt.Chart, x: alt.X, y: alt.Y, **titles: str
) -> alt.LayerChart | alt.FacetChart:
    """Points at `x` in their intervals, a row a policy; hollow where a difference is not clear.

    Args:
        chart: of rows with policy, label, kind, mean, low and high (equal if there is no interval),
            each (values of episodes, where there is no interval), beyond (what is written of
            a mean beyond the end of the axis), clear, told (the numbers as text).
        x: of the mean.
        y: of the policy.
        titles: of further fields that its tooltip tells.
    """
    base = chart.encode(y=y, color=KIND)
    low, each = x.copy(deep=False), x.copy(deep=False)
    low.shorthand, each.shorthand = "low:Q", "each:Q"
    layers = [
        base.mark_rule(strokeWidth=2).encode(low, alt.X2("high")),
        base.mark_point(size=80, opacity=1, strokeWidth=2).encode(
            x,
            shape=alt.condition(
                "datum.beyond", alt.value("triangle-right"), alt.value("circle"), empty=False
            ),
            fill=alt.condition(
                "datum.clear",
                by_name(alt.Fill, "kind", palette.KINDS),
                alt.value(alt.ExprRef(BACK)),
            ),
            tooltip=tooltips("policy", "kind", told="mean", **titles),
        ),
        chart.mark_text(align="right", dx=-9).encode(x, y, text="beyond:N"),
    ]
    if chart.data["each"].str.len().any():  # a layer without rows is complained of
        single = base.transform_flatten(["each"])
        layers.insert(0, single.mark_point(filled=True, size=20, opacity=0.6).encode(each))
    return alt.layer(*layers).add_params(alt.param(BACK, value="white"))


def folded(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of `estimates` whose axis is not set by a few that lie far outside.

    Args:
        rows: without the column beyond, but with written: means as text.
    """
    end = end_of_axis(rows["mean"].tolist(), rows["high"].tolist())
    far = rows["mean"] > end
    ends = {name: rows[name].clip(upper=end).where(~far, end) for name in ("low", "high")}
    beyond = rows["written"].where(far, "")
    each = [np.minimum(values, end).tolist() for values in rows["each"]]
    return rows.assign(**ends, each=each, beyond=beyond, mean=rows["mean"].clip(upper=end))


def time_against(spent: str, rows: pd.DataFrame, titles: Mapping[str, str]) -> Spec:
    """Every policy by its mean slowdown and what it spent, and the Pareto front of them.

    Names are placed by template/draw.js, which knows how large the chart is.

    Args:
        spent: a metric.
        rows: best policy first: policy, kind, and slowdown and what was spent, each with _low,
            _high and _told.
        titles: of the axes, by metric.
    """
    rows = rows.assign(front=pareto(rows[[spent, "slowdown"]].to_numpy()))
    for name in (spent, "slowdown"):
        rows[f"{name}_low"] = on_axis(rows[f"{name}_low"], rows[name])
    x = axis(alt.X, spent, titles[spent], rows[spent])
    y = axis(alt.Y, "slowdown", titles["slowdown"], rows["slowdown"])
    points = alt.Chart(rows).encode(x, y, KIND)
    tooltip = tooltips("policy", "kind", **{f"{m}_told": titles[m] for m in ("slowdown", spent)})
    places_of = {
        f"{field}{end}": f"{letter}{end}"
        for field, letter in ((spent, "x"), ("slowdown", "y"))
        for end in ("", "_low", "_high")
    }
    last = (rows["kind"] != "learned") & ~rows["front"]
    names = rows.assign(last=last).sort_values("last", kind="stable")
    names = names[["policy", "kind", "front", *places_of]]
    names = names.rename(columns={"policy": "name", **places_of})
    # Without the page around it a chart has the names that have room beside their points.
    places = names.join(_beside(names)).to_dict("records")
    moved: dict[str, Any] = {name: alt.ExprRef(f"datum.{name}") for name in ("align", "dx", "dy")}
    layers = [
        alt.Chart(rows[rows["front"]])
        .mark_line(strokeDash=[4, 4], color=palette.KINDS["reference"])
        .encode(x, y),
        *crosses(points, spent, "slowdown"),
        points.mark_point(filled=True, size=90, opacity=1).encode(tooltip=tooltip),
        alt.Chart(alt.InlineData(places, name=NAMES))
        .mark_text(baseline="middle", fontSize=11, **moved)
        .encode(
            alt.X("x:Q", title=titles[spent]),
            alt.Y("y:Q", title=titles["slowdown"]),
            text="text:N",
        ),
    ]
    return spec_of(alt.layer(*layers), HEIGHT)


def crosses(points: alt.Chart, x: str, y: str) -> tuple[alt.Chart, alt.Chart]:
    """The intervals of points, of which both fields have `_low` and `_high`."""
    rules = points.mark_rule(opacity=0.4)
    return (
        rules.encode(alt.X(f"{x}_low:Q"), alt.X2(f"{x}_high")),
        rules.encode(alt.Y(f"{y}_low:Q"), alt.Y2(f"{y}_high")),
    )


def _beside(points: pd.DataFrame) -> pd.DataFrame:
    """text, dx, dy and align of names of points; no text where it would be over another one.

    Args:
        points: name, x, y; the first ones come first.
    """
    pixels = [
        size * (values - values.min()) / (np.ptp(values) or 1.0)
        for name, size in (("x", 420), ("y", 200))  # about, as axes end beyond
        for values in [np.log(points[name]) if is_wide(points[name]) else points[name]]
    ]
    at = np.stack(pixels, axis=1)
    taken = [(x - 6, x + 6, y) for x, y in at]
    named: list[dict[str, Any]] = []
    for name, (x, y) in zip(points["name"], at, strict=True):
        size = 7 * len(name)
        place = {"text": "", "dx": 0, "dy": 0, "align": "left"}
        for align, dx, left in (("left", 8, x + 8), ("right", -8, x - 8 - size)):
            right = left + size
            if all(right < one or left > end or abs(y - row) > 14 for one, end, row in taken):
                taken.append((left, right, y))
                place |= {"text": name, "dx": dx, "align": align}
                break
        named.append(place)
    return pd.DataFrame(named, index=points.index)


def cold_starts(rows: pd.DataFrame, title: str) -> Spec:
    """How many episodes of a policy had how many cold starts, and the median.

    Args:
        rows: an episode each, in rank order of the policies: policy, label, kind, cold_starts.
        title: of the axis.
    """
    x = alt.X("cold_starts:Q", title=f"{title} of an episode", axis=alt.Axis(tickMinStep=1))
    size = alt.Size("count():Q", legend=None, scale=alt.Scale(rangeMin=20, rangeMax=250))
    tooltip = ["policy:N", "cold_starts:Q", alt.Tooltip("count():Q", title="episodes")]
    chart = alt.Chart(rows)
    episodes = chart.mark_circle(opacity=0.8).encode(x, POLICIES, KIND, size, tooltip=tooltip)
    medians = chart.mark_tick(thickness=2, size=20).encode(x.aggregate("median"), POLICIES)
    return row_a_policy(episodes + medians, rows)


def tenant_flow_time(rows: pd.DataFrame, colours: Mapping[str, str]) -> Spec:
    """Mean flow time of every tenant's workflows by policy, in rank order of the policies.

    Args:
        rows: a policy and tenant each: policy, label, tenant, flow_time, workflows.
        colours: by tenant.
    """
    x = axis(alt.X, "flow_time", "mean flow time (s)", rows["flow_time"])
    base = alt.Chart(rows)
    spans = base.mark_rule(opacity=0.5).encode(
        x.aggregate("min"), alt.X2("max(flow_time)"), POLICIES
    )
    means = base.mark_point(filled=True, size=90, opacity=1).encode(
        x,
        POLICIES,
        by_name(alt.Color, "tenant", colours),
        tooltip=tooltips("policy", "tenant", "flow_time", "workflows"),
    )
    return row_a_policy(spans + means, rows)


def parts(rows: pd.DataFrame) -> Spec:
    """What the time of functions is made of, a bar a policy, best policy on top.

    Args:
        rows: in rank order of the policies: policy, label, part, number (of the part, from the
            left), seconds.
    """
    chart = alt.Chart(rows).mark_bar()
    chart = chart.encode(
        alt.X("seconds:Q", title="seconds", axis=alt.Axis(tickCount=5)),
        POLICIES,
        by_name(alt.Color, "part", palette.PARTS),
        alt.Order("number:Q"),
        tooltip=tooltips("policy", "part", "seconds"),
    )
    return row_a_policy(chart, rows)


def learning_curve(rows: pd.DataFrame) -> Spec:
    """How policies compare with the best rule as training sees more decisions, a line a policy.

    Args:
        rows: an evaluation each: env_steps, difference (percent of J, in held-out episodes), and
            policy where it is said.
    """
    colour = palette.KINDS["learned"]
    # A line of one point is not drawn, and an axis around it has no room for numbers.
    point = {"color": colour} if len(rows) == 1 else False
    numbers = ("env_steps", "difference")
    chart = alt.Chart(rows).mark_line(color=colour, strokeWidth=2, point=point)
    chart = chart.encode(
        alt.X("env_steps:Q", title="decisions trained on", axis=alt.Axis(format="~s")),
        alt.Y("difference:Q", title="J against the best rule (%)"),
        tooltip=tooltips(*numbers),
    )
    if "policy" in rows and rows["policy"].nunique() > 1:
        legend = alt.Legend(orient="top", title=None, labelLimit=0)
        scale = alt.Scale(range=list(palette.SERIES))
        several = alt.Color("policy:N", legend=legend, scale=scale)
        chart = chart.encode(several, tooltip=tooltips("policy", *numbers))
    return spec_of(chart, HEIGHT)


def pareto(points: np.ndarray) -> np.ndarray:
    """(P,) whether no other point is as good in one coordinate and better in the other.

    Args:
        points: (P, 2), less is better.
    """
    no_worse = np.all(points[:, None] <= points[None], axis=2)
    better = np.any(points[:, None] < points[None], axis=2)
    return np.asarray(~np.any(no_worse & better, axis=0))
