"""The charts of one episode as Vega-Lite specifications.

Each function is one chart. They have no data of their own: template/page.js gives them that of the
episode and policies which the reader chooses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import pandas as pd

from report import palette
from report.vega import HEIGHT, Spec, by_name, spec_of, tooltips

TIME = "time (s)"
HOVER = {
    "workflow": "workflow",
    "function": "function",
    "place": "runs on",
    "phase": "phase here",
    "submitted": "submitted (s)",
    "cold_start": "cold start (s)",
    "transfer": "transfer (s)",
    "waiting": "waiting for memory (s)",
    "running": "running (s)",
    "completed": "completed (s)",
    "memory": "memory given / required (MB)",
    "parallelism": "threads",
    "computation": "operations",
}
"""What the reader sees of the fields of a bar of the Gantt chart."""
PANELS = {"upper": [1, 0], "lower": [6, 3]}
"""The two policies that the reader has chosen, and dashes of their lines."""


def gantt() -> Spec:
    """Two policies above one another on one time axis, a band a NUMA node, a row a container.

    Time is seconds, or less where idle time is folded; template/gantt.js writes it above the chart.
    Data: `bars` (fill, begin, end, top, bottom and a container's numbers), `leases` of servers
    (begin, end, top, bottom, server, from, to, rent), `folds` (begin, end, idle), `edges` between
    bands (row), `titles` (row, text). Parameters: `ticks`, the middles of the bands, `names`, what
    stands there, `rows`, how many there are, `until`, where time ends, and `times` of grid lines.
    """
    workflows = {f"workflow {index}": colour for index, colour in enumerate(palette.SERIES)}
    zoom = alt.selection_interval(name="zoom", bind="scales", zoom="wheel![event.ctrlKey]")
    begin = alt.X(
        "begin:Q",
        title=None,
        scale=alt.Scale(domain=[0, alt.ExprRef("until")], nice=False, zero=False),
        axis=alt.Axis(
            orient="top", values=alt.ExprRef("times"), grid=True, labels=False, domain=False
        ),
    )
    scale = alt.Scale(domain=[0, alt.ExprRef("rows")], reverse=True, nice=False, zero=False)
    axis = alt.Axis(
        values=alt.ExprRef("ticks"),
        labelExpr="names[format(datum.value, '.1f')]",
        labelBound=True,
        labelOverlap="greedy",
        labelLimit=0,
        ticks=False,
        grid=False,
        domain=False,
    )
    top, row = (alt.Y(f"{name}:Q", scale=scale, axis=axis, title=None) for name in ("top", "row"))
    corners = (begin, top, alt.X2("end"), alt.Y2("bottom"))
    leases, folds = (
        alt.Chart(alt.NamedData(name))
        .mark_rect(clip=True, opacity=opacity, color="#808080")
        .encode(*corners, tooltip=[alt.Tooltip(f"{field}:N") for field in shown])
        for name, opacity, shown in (
            ("leases", 0.13, ("server", "from", "to", "rent")),
            ("folds", 0.4, ("idle",)),
        )
    )
    edges = alt.Chart(alt.NamedData("edges")).mark_rule(clip=True, opacity=0.5)
    fill = by_name(alt.Fill, "fill", palette.PHASES | workflows)
    bars = alt.Chart(alt.NamedData("bars")).mark_rect(clip=True)
    titles = alt.Chart(alt.NamedData("titles")).mark_text(
        clip=True, align="left", baseline="middle", fontWeight="bold", fontSize=13
    )
    chart = alt.layer(
        leases,
        folds,
        edges.encode(row, strokeWidth=alt.value(1)),
        bars.encode(*corners, fill, tooltip=tooltips(**HOVER)).add_params(zoom),
        titles.encode(row, x=alt.value(4), text="text:N"),
    )
    parameters = {"ticks": [], "names": {}, "rows": 1, "until": 1, "times": []}
    return spec_of(_with_parameters(chart, parameters), HEIGHT)


def _with_parameters(chart: Any, values: Mapping[str, Any]) -> Any:
    return chart.add_params(*(alt.param(name, value=value) for name, value in values.items()))


def utilisation() -> Spec:
    """Use of every NUMA node over time as colour. Data: `use` (node, begin, end, percent)."""
    percent = alt.Fill(
        "percent:Q",
        title="%",
        scale=alt.Scale(scheme="cividis", domain=[0, 100], clamp=True),
        legend=alt.Legend(orient="top", gradientLength=160, direction="horizontal"),
    )
    chart = (
        alt.Chart(alt.NamedData("use"))
        # Without an outline of its colour the background shines through between cells.
        .mark_rect(stroke=alt.ExprRef("scale('fill', datum.percent)"), strokeWidth=0.7)
        .encode(
            alt.X("begin:Q", title=TIME, scale=alt.Scale(nice=False), axis=alt.Axis(grid=False)),
            alt.X2("end"),
            alt.Y("node:N", sort=None, title=None, axis=alt.Axis(labelLimit=0)),
            percent,
            tooltip=tooltips("node", "begin", "end", "percent"),
        )
    )
    return spec_of(chart, HEIGHT)


def _up_to(parameter: str, **options: Any) -> alt.Scale:
    """A scale from 0 to what page.js sets."""
    return alt.Scale(domain=[0, alt.ExprRef(parameter)], **options)


def tenants(colours: Mapping[str, str]) -> Spec:
    """What tenants use of the cluster over time, stacked.

    Data: `use` (tenant, place, begin, end, percent), largest tenant first. Parameters: `until`,
    seconds, and `most`, percent, at which the axes end.

    Args:
        colours: by tenant, in this order.
    """
    time = alt.Axis(grid=False, labelOverlap=True, labelSeparation=12)
    title = "computing capacity (%)"
    chart = (
        alt.Chart(alt.NamedData("use"))
        # An outline as in `utilisation`.
        .mark_bar(stroke=alt.ExprRef("scale('fill', datum.tenant)"), strokeWidth=0.7, binSpacing=0)
        .encode(
            alt.X(
                "begin:Q", bin="binned", title=TIME, scale=_up_to("until", nice=False), axis=time
            ),
            alt.X2("end"),
            alt.Y("percent:Q", title=title, stack="zero", scale=_up_to("most")),
            by_name(alt.Fill, "tenant", colours),
            order="place:O",
            tooltip=tooltips("tenant", "begin", "end", "percent"),
        )
    )
    return spec_of(_with_parameters(chart, {"until": 1, "most": 1}), HEIGHT * 2 // 3)


def shares(colours: Mapping[str, str]) -> Spec:
    """What tenants received and were entitled to, each a line over time.

    Data: `shares` (tenant, what: `received` or `entitled`, time, core_seconds). Parameters:
    `until`, seconds, and `most`, core-seconds, at which the axes end.

    Args:
        colours: by tenant.
    """
    chart = (
        alt.Chart(alt.NamedData("shares"))
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            alt.X("time:Q", title=TIME, scale=_up_to("until", nice=False)),
            alt.Y("core_seconds:Q", title="core-seconds", scale=_up_to("most")),
            by_name(alt.Color, "tenant", colours),
            by_name(alt.StrokeDash, "what", {"received": [1, 0], "entitled": [6, 3]}),
            tooltip=tooltips("what", "tenant", "time", "core_seconds"),
        )
    )
    return spec_of(_with_parameters(chart, {"until": 1, "most": 1}), HEIGHT)


def shares_of(rows: pd.DataFrame, colours: Mapping[str, str]) -> Spec:
    """`shares` of several policies, a panel each.

    Args:
        rows: policy and the data of `shares`.
        colours: by tenant.
    """
    chart = shares(colours)
    policies = list(dict.fromkeys(rows["policy"]))
    ends = {"until": float(rows["time"].max()), "most": float(rows["core_seconds"].max())}
    size = {"width": HEIGHT, "height": HEIGHT // 2}
    return {
        "data": {"values": rows.to_dict("records")},
        "params": [{"name": name, "value": value} for name, value in ends.items()],
        "facet": {"field": "policy", "type": "nominal", "title": None, "sort": policies},
        "columns": 2 if len(policies) == 4 else 3,  # 2 x 2 leaves no hole
        "spec": {"mark": chart["mark"], "encoding": chart["encoding"], **size},
    }


def queue_length() -> Spec:
    """Containers that wait for memory over time. Data: `queue` (panel, policy, time, waiting)."""
    # Halves of a container have no number; with few containers Vega has ticks there.
    whole = alt.Axis(labelExpr="datum.value % 1 ? '' : format(datum.value, 'd')")
    chart = (
        alt.Chart(alt.NamedData("queue"))
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            alt.X("time:Q", title=TIME),
            alt.Y("waiting:Q", title="containers waiting", axis=whole),
            by_name(alt.Color, "panel", dict(zip(PANELS, palette.SERIES, strict=False))),
            by_name(alt.StrokeDash, "panel", PANELS),
            tooltip=tooltips("policy", "time", "waiting"),
        )
    )
    return spec_of(chart, HEIGHT * 2 // 3)
