"""The charts of an evaluation with a line a policy, as Vega-Lite; each function is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from report import palette
from report.axes import axis, on_axis, scale_of
from report.charts import DASHES, ONLY_SHOWN, SHOWN, styles
from report.vega import HEIGHT, Spec, by_name, spec_of, tooltips

SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")
"""Of the points of policies of a kind, used over again."""
PANEL = "panel"
"""Parameter of the sweep: values of the keys that are not its axis."""


def profiles(
    shares: Mapping[str, np.ndarray], ratios: np.ndarray, kinds: Mapping[str, str]
) -> Spec:
    """Share of episodes in which a policy is within a ratio of the best one.

    Args:
        shares: (R,) by policy.
        ratios: (R,).
        kinds: of all policies, see `charts.styles`.
    """
    x = alt.X(
        "ratio:Q",
        title="J / lowest J of the episode",
        scale=alt.Scale(domain=[1.0, float(ratios[-1])], nice=False),
        axis=alt.Axis(tickCount=6),
    )
    points = {policy: (ratios, share) for policy, share in shares.items()}
    return _curves("ratio", points, x, "share of episodes", kinds)


def flow_time(
    times: Mapping[str, np.ndarray], shares: np.ndarray, kinds: Mapping[str, str]
) -> Spec:
    """Share of workflows that took no longer than a time.

    Args:
        times: (Q,) s by policy.
        shares: (Q,) of the workflows.
        kinds: of all policies, see `charts.styles`.
    """
    everyone = pd.Series(np.concatenate(list(times.values())))
    x = axis(alt.X, "flow_time", "flow time (s)", everyone)
    points = {policy: (own, shares) for policy, own in times.items()}
    return _curves("flow_time", points, x, "share of workflows", kinds)


def _curves(
    field: str,
    points: Mapping[str, tuple[np.ndarray, np.ndarray]],
    x: alt.X,
    title: str,
    kinds: Mapping[str, str],
) -> Spec:
    """A curve of shares a policy over a field, (values, shares) by policy; `x` is its axis."""
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
            *_line_channels(kinds),
            tooltip=tooltips("policy", field, "share"),
        )
        .add_params(alt.param(SHOWN, value=list(kinds)))
    )
    return spec_of(chart, HEIGHT)


def _line_channels(kinds: Mapping[str, str]) -> tuple[alt.Color, alt.StrokeDash]:
    """Colour and dashes of the lines of policies, see `charts.styles`."""
    lines = styles(kinds)
    return (
        by_name(alt.Color, "policy", {line["policy"]: line["colour"] for line in lines}),
        by_name(alt.StrokeDash, "policy", {line["policy"]: line["dash"] for line in lines}),
    )


def deadlines(rows: pd.DataFrame, kinds: Mapping[str, str]) -> Spec:
    """Share of workflows that meet each deadline.

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
    return spec_of(_banded(alt.Chart(rows), x, y, list(kinds), *_line_channels(kinds)), HEIGHT)


def sweep(rows: pd.DataFrame, key: str, kinds: Mapping[str, str], metric: str) -> Spec:
    """A metric against a key that was swept: a line a policy over numbers, else points.

    Args:
        rows: x (value of the key, text if it is no number), panel, policy, mean, low and high
            (of the interval), told (all three as text).
        key: the horizontal axis.
        kinds: by policy, all of them.
        metric: its heading.
    """
    values = list(dict.fromkeys(rows["x"]))
    rows = rows.assign(low=on_axis(rows["low"], rows["mean"]))
    chart = alt.Chart(rows).transform_filter(f"datum.panel === {PANEL}")
    y = axis(alt.Y, "mean", metric, rows["mean"], scale=scale_of(rows["mean"], padding=0))
    if "%" in "".join(rows["told"]):
        y = y.axis(alt.Axis(format="~%"))
    if pd.api.types.is_numeric_dtype(rows["x"]):
        x = axis(alt.X, "x", key, rows["x"], axis=alt.Axis(values=values, format="~g"))
    else:
        x = alt.X("x:N", title=key, sort=values, axis=alt.Axis(labelAngle=0))
    same_kind: dict[str, list[str]] = {}
    for name, kind in kinds.items():
        same_kind.setdefault(kind, []).append(name)
    legend = alt.Legend(values=alt.ExprRef(SHOWN), orient="top", columns=3, title=None)

    def in_turn(looks: Sequence[Any]) -> dict[str, Any]:
        """By the place of a policy among those of its kind."""
        return {
            name: looks[same_kind[kind].index(name) % len(looks)] for name, kind in kinds.items()
        }

    looks = (
        (alt.Color, {name: palette.KINDS[kind] for name, kind in kinds.items()}),
        (alt.StrokeDash, in_turn(DASHES)),
        (alt.Shape, in_turn(SHAPES)),
    )
    channels = [by_name(channel, "policy", look).legend(legend) for channel, look in looks]
    panel = alt.param(PANEL, value=rows["panel"].iloc[0])
    return spec_of(_banded(chart, x, y, list(kinds), *channels).add_params(panel), HEIGHT)


def _banded(
    chart: alt.Chart,
    x: alt.X,
    y: alt.Y,
    policies: Sequence[str],
    colour: alt.Color,
    dash: alt.StrokeDash,
    *shape: alt.Shape,
) -> alt.LayerChart | alt.FacetChart:
    """A line a policy in the band of its intervals; points with theirs if x is no number."""
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
    tooltip = [
        "policy:N",
        alt.Tooltip(x.shorthand, title=x["title"]),
        alt.Tooltip("told:N", title="mean"),
    ]
    points = base.mark_point(filled=True, size=60, opacity=1).encode(y, *shape, tooltip=tooltip)
    return alt.layer(*layers, points).add_params(alt.param(SHOWN, value=list(policies)))
