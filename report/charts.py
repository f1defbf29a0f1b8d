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
from report.axes import end_of_axis, is_wide, log_ticks
from report.vega import HEIGHT, Spec, numbers, spec_of

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

KINDS = alt.Scale(domain=list(palette.KINDS), range=list(palette.KINDS.values()))
_KIND = alt.Color("kind:N", legend=None, scale=KINDS)
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


def styles(kinds: Mapping[str, str]) -> list[dict[str, Any]]:
    """Colour and dashes of every policy's line: baselines have those of no other kind in turn.

    Args:
        kinds: by policy, in rank order.
    """
    others = [colour for colour in palette.SERIES if colour not in palette.KINDS.values()]
    colours = {kind: [colour] for kind, colour in palette.KINDS.items()}
    colours["baseline"] += others
    found: list[dict[str, Any]] = []
    for policy, kind in kinds.items():
        own, place = colours[kind], sum(kinds[each["policy"]] == kind for each in found)
        dash = DASHES[place // len(own) % len(DASHES)]
        found.append({"policy": policy, "colour": own[place % len(own)], "dash": dash})
    return found


def forest(rows: pd.DataFrame) -> Spec:
    """The paired difference of every policy to the measure, best policy on top.

    Args:
        rows: as for `estimates`, and p and better, the probability of an improvement.
    """
    signed = alt.Axis(labelExpr="datum.value ? format(datum.value, '+~%') : '0%'")
    x = alt.X("mean:Q", title="difference in J", axis=signed)
    y = alt.Y("label:N", sort=rows["label"].tolist(), axis=POLICY_LABELS)
    zero = alt.Chart(pd.DataFrame({"zero": [0.0]})).mark_rule(strokeWidth=1.5).encode(x="zero:Q")
    told = [alt.Tooltip("p:N"), alt.Tooltip("better:N", title="P(better)")]
    return spec_of(alt.layer(zero, estimates(alt.Chart(rows), x, y, told)), ROW * len(rows))


def ranking(rows: pd.DataFrame, shares: Sequence[str]) -> Spec:
    """Mean and interval of every policy, best on top.

    Args:
        rows: as for `estimates`, and metric and place.
        shares: metrics whose axis is in percent.
    """
    written = f"indexof({list(shares)}, {METRIC}) < 0 ? datum.label : format(datum.value, '~%')"
    x = alt.X(
        "mean:Q",
        title=None,
        scale=alt.Scale(zero=False, nice=True),
        axis=alt.Axis(labelExpr=written),
    )
    y = alt.Y("label:N", sort=alt.EncodingSortField("place", "min"), axis=POLICY_LABELS)
    chart = alt.Chart(rows).transform_filter(f"datum.metric === {METRIC}")
    layers = estimates(chart, x, y).add_params(alt.param(METRIC, value="J"))
    return spec_of(layers, ROW * rows["policy"].nunique())


def improvement(rows: pd.DataFrame) -> Spec:
    """How often every policy has a lower J than the measure, best policy on top.

    Args:
        rows: as for `estimates`, without the measure.
    """
    x = alt.X(
        "mean:Q",
        title="share of episodes with a lower J",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1]),
    )
    y = alt.Y("label:N", sort=None, axis=POLICY_LABELS)
    even = alt.Chart(pd.DataFrame({"even": [0.5]})).mark_rule(strokeDash=[4, 4]).encode(x="even:Q")
    return spec_of(alt.layer(even, estimates(alt.Chart(rows), x, y)), ROW * len(rows))


def estimates(
    chart: alt.Chart, x: alt.X, y: alt.Y, told: Sequence[alt.Tooltip] = ()
) -> alt.LayerChart | alt.FacetChart:
    """Points at `x` in their intervals, a row a policy; hollow where a difference is not clear.

    Args:
        chart: of rows with policy, label, kind, mean, low and high (equal if there is no interval),
            each (values of episodes, where there is no interval), beyond (what is written of
            a mean beyond the end of the axis), clear, told (the numbers as text).
        x: of the mean.
        y: of the policy.
        told: more that its tooltip tells.
    """
    base = chart.encode(y=y, color=_KIND)
    low, each = x.copy(deep=False), x.copy(deep=False)
    low.shorthand, each.shorthand = "low:Q", "each:Q"
    tooltip = [
        *(alt.Tooltip(f"{field}:N") for field in ("policy", "kind")),
        alt.Tooltip("told:N", title="mean"),
        *told,
    ]
    points = base.mark_point(size=80, opacity=1, strokeWidth=2)
    layers = [
        base.mark_rule(strokeWidth=2).encode(low, alt.X2("high")),
        points.encode(
            x,
            shape=alt.condition(
                "datum.beyond", alt.value("triangle-right"), alt.value("circle"), empty=False
            ),
            fill=alt.condition(
                "datum.clear",
                alt.Fill("kind:N", legend=None, scale=KINDS),
                alt.value(alt.ExprRef(BACK)),
            ),
            tooltip=tooltip,
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
    x, y = (
        channel(
            f"{name}:Q", title=titles[name], scale=scale_of(rows[name]), axis=axis_of(rows[name])
        )
        for channel, name in ((alt.X, spent), (alt.Y, "slowdown"))
    )
    points = alt.Chart(rows).encode(x, y)
    tooltip = [
        *(alt.Tooltip(f"{field}:N") for field in ("policy", "kind")),
        *(alt.Tooltip(f"{name}_told:N", title=titles[name]) for name in ("slowdown", spent)),
    ]
    important = rows.assign(last=(rows["kind"] != "learned") & ~rows["front"])
    places_of = {
        f"{field}{end}": f"{axis}{end}"
        for field, axis in ((spent, "x"), ("slowdown", "y"))
        for end in ("", "_low", "_high")
    }
    names = important.sort_values("last", kind="stable")[["policy", "kind", "front", *places_of]]
    names = names.rename(columns={"policy": "name", **places_of})
    # Without the page around it a chart has the names that have room beside their points.
    places = names.join(_beside(names)).to_dict("records")
    layers = [
        alt.Chart(rows[rows["front"]])
        .mark_line(strokeDash=[4, 4], color=palette.KINDS["reference"])
        .encode(x, y),
        *crosses(points.encode(_KIND), spent, "slowdown"),
        points.mark_point(filled=True, size=90, opacity=1).encode(color=_KIND, tooltip=tooltip),
        alt.Chart(alt.InlineData(places, name=NAMES))
        .mark_text(
            align=alt.ExprRef("datum.align"),
            dx=alt.ExprRef("datum.dx"),
            dy=alt.ExprRef("datum.dy"),
            baseline="middle",
            fontSize=11,
        )
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
    found: list[dict[str, Any]] = []
    for name, (x, y) in zip(points["name"], at, strict=True):
        size = 7 * len(name)
        place = {"text": "", "dx": 0, "dy": 0, "align": "left"}
        for align, dx, left in (("left", 8, x + 8), ("right", -8, x - 8 - size)):
            right = left + size
            if all(right < one or left > end or abs(y - row) > 14 for one, end, row in taken):
                taken.append((left, right, y))
                place |= {"text": name, "dx": dx, "align": align}
                break
        found.append(place)
    return pd.DataFrame(found, index=points.index)


def profiles(
    shares: Mapping[str, np.ndarray], ratios: np.ndarray, kinds: Mapping[str, str]
) -> Spec:
    """Share of episodes in which a policy is within a ratio of the best one, a line a policy.

    Args:
        shares: (R,) by policy.
        ratios: (R,).
        kinds: of all policies, see `styles`.
    """
    x = alt.X(
        "ratio:Q",
        title="J / lowest J of the episode",
        scale=alt.Scale(domain=[1.0, float(ratios[-1])], nice=False),
        axis=alt.Axis(tickCount=6),
    )
    points = {policy: (ratios, share) for policy, share in shares.items()}
    return curves(points, x, "share of episodes", kinds)


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
    """How policies compare with the best rule as training sees more decisions, a line a policy.

    Args:
        rows: an evaluation each: env_steps, difference (percent of J, in held-out episodes), and
            policy where it is said.
    """
    colour = palette.KINDS["learned"]
    # A line of one point is not drawn, and an axis around it has no room for numbers.
    alone = len(rows) == 1
    chart = (
        alt.Chart(rows)
        .mark_line(color=colour, strokeWidth=2, point={"color": colour} if alone else False)
        .encode(
            alt.X("env_steps:Q", title="decisions trained on", axis=alt.Axis(format="~s")),
            alt.Y("difference:Q", title="J against the best rule (%)"),
            tooltip=numbers(["env_steps", "difference"]),
        )
    )
    if "policy" in rows and rows["policy"].nunique() > 1:
        several = alt.Color("policy:N", legend=alt.Legend(orient="top", title=None, labelLimit=0))
        scale = alt.Scale(range=list(palette.SERIES))
        chart = chart.encode(
            several.scale(scale), tooltip=numbers(["policy", "env_steps", "difference"])
        )
    return spec_of(chart, HEIGHT)


def pareto(points: np.ndarray) -> np.ndarray:
    """(P,) whether no other point is as good in one coordinate and better in the other.

    Args:
        points: (P, 2), less is better.
    """
    no_worse = np.all(points[:, None] <= points[None], axis=2)
    better = np.any(points[:, None] < points[None], axis=2)
    return np.asarray(~np.any(no_worse & better, axis=0))


def curves(
    points: Mapping[str, tuple[np.ndarray, np.ndarray]],
    x: alt.X,
    title: str,
    kinds: Mapping[str, str],
) -> Spec:
    """A curve of shares a policy over `x`, of those in `SHOWN`.

    Args:
        points: (values of x, shares) by policy.
        x: its axis.
        title: of the shares.
        kinds: of all policies, see `styles`.
    """
    field = x.shorthand.removesuffix(":Q")
    colour, dash = line_channels(kinds)
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
        .add_params(alt.param(SHOWN, value=list(kinds)))
    )
    return spec_of(chart, HEIGHT)


def line_channels(kinds: Mapping[str, str]) -> tuple[alt.Color, alt.StrokeDash]:
    """Colour and dashes of the lines of policies, see `styles`."""
    lines, policies = styles(kinds), list(kinds)
    colours, dashes = ([line[key] for line in lines] for key in ("colour", "dash"))
    return (
        alt.Color("policy:N", legend=None, scale=alt.Scale(domain=policies, range=colours)),
        alt.StrokeDash("policy:N", legend=None, scale=alt.Scale(domain=policies, range=dashes)),
    )


def scale_of(values: pd.Series, padding: int = 16) -> alt.Scale:
    """Logarithmic where values lie far apart; else with pixels of `padding` around them."""
    if is_wide(values):
        return alt.Scale(type="log", nice=False, padding=24)
    return alt.Scale(zero=False, nice=True, padding=padding)


def axis_of(values: pd.Series) -> alt.Axis:
    """Ticks at 1, 2, 5, 10, ... where the axis is logarithmic."""
    return alt.Axis(values=log_ticks(values), format=",~g") if is_wide(values) else alt.Axis()


def on_axis(low: pd.Series, values: pd.Series) -> pd.Series:
    """Where intervals are drawn from: a logarithmic axis of `values` has no 0."""
    return low.clip(lower=values.min() / 2) if is_wide(values) else low
