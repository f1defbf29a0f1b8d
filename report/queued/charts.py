"""The charts of an evaluation under queued dispatch; each function is one, as Vega-Lite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from report import palette
from report.charts import METRIC, POLICY_LABELS, ROW, SHOWN, axis_of, scale_of, styles
from report.vega import HEIGHT, Spec, numbers, spec_of

LOAD = "load"
"""Parameter: sample, ratio and keep-alive policy that are shown."""
PANEL = "panel"
"""Parameter: sample and keep-alive policy that are shown."""
SHARE = alt.Axis(format="%")


def ranking(rows: pd.DataFrame, orders: Sequence[str]) -> Spec:
    """Mean and interval of every order on a load, best on top.

    Args:
        rows: load, metric, order, label, mean, ci_low, ci_high, low, place; `low` is where
            intervals are drawn from.
        orders: all of them; their places give them their colours.
    """
    colour, _ = _styles(orders)
    x = alt.X("mean:Q", title=None, scale=alt.Scale(zero=False, nice=True))
    base = (
        alt.Chart(rows)
        .transform_filter(f"datum.load === {LOAD} && datum.metric === {METRIC}")
        .encode(y=_by_place(), color=colour)
    )
    intervals = base.mark_rule(strokeWidth=2).encode(alt.X("low:Q", title=None), alt.X2("ci_high"))
    points = base.mark_point(filled=True, size=80, opacity=1).encode(
        x, tooltip=_told("mean", "ci_low", "ci_high")
    )
    chart = (intervals + points).add_params(_load(rows), alt.param(METRIC, value="completion"))
    return spec_of(chart, ROW * len(orders))


def against_ratio(rows: pd.DataFrame, orders: Sequence[str]) -> Spec:
    """A metric against the ratio of the sample, a line an order in its interval.

    Args:
        rows: panel, ratio, metric, order, mean, ci_low, ci_high, low.
        orders: all of them.
    """
    colour, dash = _styles(orders)
    axis = alt.Axis(values=sorted(set(rows["ratio"])), format="~g")
    scale = alt.Scale(zero=False, padding=12, nice=False)
    x = alt.X("ratio:Q", title="downsampling ratio", scale=scale, axis=axis)
    y = alt.Y("mean:Q", title=None, scale=alt.Scale(zero=True, nice=True))
    base = (
        alt.Chart(rows)
        .transform_filter(f"datum.panel === {PANEL} && datum.metric === {METRIC}")
        .transform_filter(_shown())
        .encode(x, color=colour)
    )
    around = base.mark_area(opacity=0.15).encode(alt.Y("low:Q", title=None), alt.Y2("ci_high"))
    lines = base.mark_line(strokeWidth=2).encode(y, strokeDash=dash)
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        y, tooltip=_told("ratio", "mean", "ci_low", "ci_high")
    )
    chart = (around + lines + points).add_params(
        alt.param(PANEL, value=rows["panel"].iloc[0]),
        alt.param(METRIC, value="completion"),
        _lines(orders),
    )
    return spec_of(chart, HEIGHT)


def parts(rows: pd.DataFrame, orders: int) -> Spec:
    """What the completion time is made of, a bar an order.

    Args:
        rows: load, order, label, place, part, number (of the part, from the left), seconds.
        orders: how many.
    """
    chart = (
        alt.Chart(rows)
        .transform_filter(f"datum.load === {LOAD}")
        .mark_bar()
        .encode(
            alt.X("seconds:Q", title="seconds", axis=alt.Axis(tickCount=5)),
            _by_place(),
            alt.Color(
                "part:N",
                legend=None,
                scale=alt.Scale(domain=list(palette.PARTS), range=list(palette.PARTS.values())),
            ),
            alt.Order("number:Q"),
            tooltip=[alt.Tooltip("order:N"), alt.Tooltip("part:N"), *numbers(["seconds"])],
        )
        .add_params(_load(rows))
    )
    return spec_of(chart, ROW * orders)


def completion_cdf(rows: pd.DataFrame, orders: Sequence[str]) -> Spec:
    """Share of what arrived that was complete within a time, a line an order.

    Args:
        rows: load, order, completion, share.
        orders: all of them.
    """
    colour, dash = _styles(orders)
    chart = (
        alt.Chart(rows)
        .transform_filter(f"datum.load === {LOAD}")
        .transform_filter(_shown())
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            alt.X(
                "completion:Q",
                title="completion time (s)",
                scale=scale_of(rows["completion"]),
                axis=axis_of(rows["completion"]),
            ),
            alt.Y("share:Q", title="share completed", axis=SHARE),
            colour,
            dash,
            tooltip=_told("completion", "share"),
        )
        .add_params(_load(rows), _lines(orders))
    )
    return spec_of(chart, HEIGHT)


def deadlines_met(rows: pd.DataFrame, orders: Sequence[str]) -> Spec:
    """Share of requests that meet each deadline, a line an order.

    Args:
        rows: load, order, deadline, mean, ci_low, ci_high, low.
        orders: all of them.
    """
    colour, dash = _styles(orders)
    scale = alt.Scale(type="log", nice=False, padding=16)
    axis = alt.Axis(values=sorted(set(rows["deadline"])), format="~g")
    title = "deadline, multiples of E + D of the function"
    x = alt.X("deadline:Q", title=title, scale=scale, axis=axis)
    base = (
        alt.Chart(rows)
        .transform_filter(f"datum.load === {LOAD}")
        .transform_filter(_shown())
        .encode(x, color=colour)
    )
    # Intervals, which are symmetric, may reach beyond what a share can be.
    within = alt.Scale(domain=[0, 1])
    y = alt.Y("mean:Q", title="share of requests in time", axis=SHARE, scale=within)
    lines = base.mark_line(strokeWidth=2).encode(y, strokeDash=dash)
    intervals = base.mark_rule(strokeWidth=2, clip=True).encode(alt.Y("low:Q"), alt.Y2("ci_high"))
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        y, tooltip=_told("deadline", "mean", "ci_low", "ci_high")
    )
    chart = (lines + intervals + points).add_params(_load(rows), _lines(orders))
    return spec_of(chart, HEIGHT)


def _by_place() -> alt.Y:
    return alt.Y("label:N", sort=alt.EncodingSortField("place", "min"), axis=POLICY_LABELS)


def _told(*fields: str) -> list[alt.Tooltip]:
    return [alt.Tooltip("order:N"), *numbers(fields)]


def _load(rows: pd.DataFrame) -> alt.Parameter:
    return alt.param(LOAD, value=rows["load"].iloc[0])


def _lines(orders: Sequence[str]) -> alt.Parameter:
    return alt.param(SHOWN, value=list(orders))


def _shown() -> str:
    return f"indexof({SHOWN}, datum.order) >= 0"


def _styles(orders: Sequence[str]) -> tuple[Any, Any]:
    """Colour and dashes of every order, in all charts the same."""
    lines = styles(orders)
    colours, dashes = ([line[key] for line in lines] for key in ("colour", "dash"))
    return (
        alt.Color("order:N", legend=None, scale=alt.Scale(domain=list(orders), range=colours)),
        alt.StrokeDash("order:N", legend=None, scale=alt.Scale(domain=list(orders), range=dashes)),
    )
