"""The charts of one episode as Vega-Lite specifications.

Each function is one chart. They have no data of their own: template/page.js gives them that of the
episode and policies which the reader chooses.
"""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import pandas as pd

from report import palette
from report.vega import HEIGHT, Spec, numbers, spec_of

TIME = "time (s)"
# Halves of a container have no number; with few containers Vega has ticks there.
_WHOLE = alt.Axis(labelExpr="datum.value % 1 ? '' : format(datum.value, 'd')")


def gantt() -> Spec:
    """Two policies above one another on one time axis, a band a NUMA node, a row a container.

    Time is seconds, or less where idle time is folded; template/gantt.js writes it above the chart.
    Data: `bars` (fill, begin, end, top, bottom and a container's numbers), `leases` of servers
    (begin, end, top, bottom, server, from, to, rent), `folds` (begin, end, idle), `edges` between
    bands (row), `titles` (row, text). Parameters: `ticks`, the middles of the bands, `names`, what
    stands there, `rows`, how many there are, `until`, where time ends, and `times` of grid lines.
    """
    workflows = {f"workflow {index}": colour for index, colour in enumerate(palette.SERIES)}
    fills = palette.PHASES | workflows
    zoom = alt.selection_interval(name="zoom", bind="scales", zoom="wheel![event.ctrlKey]")
    shown = {  # what the reader sees of each field
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
    begin = alt.X(
        "begin:Q",
        title=None,
        scale=alt.Scale(domain=[0, alt.ExprRef("until")], nice=False, zero=False),
        axis=alt.Axis(
            orient="top", values=alt.ExprRef("times"), grid=True, labels=False, domain=False
        ),
    )
    row = alt.Scale(domain=[0, alt.ExprRef("rows")], reverse=True, nice=False, zero=False)
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
    areas = {"leases": ("server", "from", "to", "rent"), "folds": ("idle",)}
    leases, folds = (
        alt.Chart(alt.NamedData(name))
        .mark_rect(clip=True, opacity=opacity, color="#808080")
        .encode(
            begin,
            alt.Y("top:Q", scale=row, axis=axis, title=None),
            alt.X2("end"),
            alt.Y2("bottom"),
            tooltip=[alt.Tooltip(f"{field}:N") for field in areas[name]],
        )
        for name, opacity in (("leases", 0.13), ("folds", 0.4))
    )
    edges = (
        alt.Chart(alt.NamedData("edges"))
        .mark_rule(clip=True, opacity=0.5)
        .encode(alt.Y("row:Q", scale=row, axis=axis, title=None), strokeWidth=alt.value(1))
    )
    bars = (
        alt.Chart(alt.NamedData("bars"))
        .mark_rect(clip=True)
        .encode(
            begin,
            alt.Y("top:Q", scale=row, axis=axis, title=None),
            alt.X2("end"),
            alt.Y2("bottom"),
            fill=alt.Fill(
                "fill:N",
                legend=None,
                scale=alt.Scale(domain=list(fills), range=list(fills.values())),
            ),
            tooltip=[alt.Tooltip(f"{field}:N", title=title) for field, title in shown.items()],
        )
        .add_params(zoom)
    )
    titles = (
        alt.Chart(alt.NamedData("titles"))
        .mark_text(clip=True, align="left", baseline="middle", fontWeight="bold", fontSize=13)
        .encode(alt.Y("row:Q", scale=row, axis=axis, title=None), x=alt.value(4), text="text:N")
    )
    parameters = [
        alt.param("ticks", value=[]),
        alt.param("names", value={}),
        alt.param("rows", value=1),
        alt.param("until", value=1),
        alt.param("times", value=[]),
    ]
    return spec_of(alt.layer(leases, folds, edges, bars, titles).add_params(*parameters), HEIGHT)


def utilisation() -> Spec:
    """Use of every NUMA node over time as colour. Data: `use` (node, begin, end, percent)."""
    chart = (
        alt.Chart(alt.NamedData("use"))
        # Without an outline of its colour the background shines through between cells.
        .mark_rect(stroke=alt.ExprRef("scale('fill', datum.percent)"), strokeWidth=0.7)
        .encode(
            alt.X("begin:Q", title=TIME, scale=alt.Scale(nice=False), axis=alt.Axis(grid=False)),
            alt.X2("end"),
            alt.Y("node:N", sort=None, title=None, axis=alt.Axis(labelLimit=0)),
            fill=alt.Fill(
                "percent:Q",
                title="%",
                scale=alt.Scale(scheme="cividis", domain=[0, 100], clamp=True),
                legend=alt.Legend(orient="top", gradientLength=160, direction="horizontal"),
            ),
            tooltip=["node:N", *numbers(["begin", "end", "percent"])],
        )
    )
    return spec_of(chart, HEIGHT)


def tenants(colours: Mapping[str, str]) -> Spec:
    """What tenants use of the cluster over time, stacked.

    Data: `use` (tenant, place, begin, end, percent), largest tenant first. Parameters: `until`,
    seconds, and `most`, percent, at which the axes end.

    Args:
        colours: by tenant, in this order.
    """
    chart = (
        alt.Chart(alt.NamedData("use"))
        # An outline as in `utilisation`.
        .mark_bar(stroke=alt.ExprRef("scale('fill', datum.tenant)"), strokeWidth=0.7, binSpacing=0)
        .encode(
            alt.X(
                "begin:Q",
                bin="binned",
                title=TIME,
                scale=alt.Scale(domain=[0, alt.ExprRef("until")], nice=False),
                axis=alt.Axis(grid=False, labelOverlap=True, labelSeparation=12),
            ),
            alt.X2("end"),
            alt.Y(
                "percent:Q",
                title="computing capacity (%)",
                stack="zero",
                scale=alt.Scale(domain=[0, alt.ExprRef("most")]),
            ),
            fill=alt.Fill(
                "tenant:N",
                legend=None,
                scale=alt.Scale(domain=list(colours), range=list(colours.values())),
            ),
            order="place:O",
            tooltip=numbers(["tenant", "begin", "end", "percent"]),
        )
        .add_params(alt.param("until", value=1), alt.param("most", value=1))
    )
    return spec_of(chart, HEIGHT * 2 // 3)


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
            alt.X(
                "time:Q",
                title=TIME,
                scale=alt.Scale(domain=[0, alt.ExprRef("until")], nice=False),
            ),
            alt.Y(
                "core_seconds:Q",
                title="core-seconds",
                scale=alt.Scale(domain=[0, alt.ExprRef("most")]),
            ),
            color=alt.Color(
                "tenant:N",
                legend=None,
                scale=alt.Scale(domain=list(colours), range=list(colours.values())),
            ),
            strokeDash=alt.StrokeDash(
                "what:N",
                legend=None,
                scale=alt.Scale(domain=["received", "entitled"], range=[[1, 0], [6, 3]]),
            ),
            tooltip=[alt.Tooltip("what:N"), *numbers(["tenant", "time", "core_seconds"])],
        )
        .add_params(alt.param("until", value=1), alt.param("most", value=1))
    )
    return spec_of(chart, HEIGHT)


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
    chart = (
        alt.Chart(alt.NamedData("queue"))
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            alt.X("time:Q", title=TIME),
            alt.Y("waiting:Q", title="containers waiting", axis=_WHOLE),
            color=alt.Color(
                "panel:N",
                legend=None,
                scale=alt.Scale(domain=["upper", "lower"], range=list(palette.SERIES[:2])),
            ),
            strokeDash=alt.StrokeDash(
                "panel:N",
                legend=None,
                scale=alt.Scale(domain=["upper", "lower"], range=[[1, 0], [6, 3]]),
            ),
            tooltip=numbers(["policy", "time", "waiting"]),
        )
    )
    return spec_of(chart, HEIGHT * 2 // 3)
