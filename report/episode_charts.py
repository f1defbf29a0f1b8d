"""The charts of one episode as Vega-Lite specifications.

Each function is one chart. They have no data of their own: template/page.js gives them that of the
episode and policies which the reader chooses.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from report import palette
from report import vega as vl
from report.drawing import Spec

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
NODES: Spec = {
    "labelExpr": "names[format(datum.value, '.1f')]",
    "labelLimit": 0,
    "ticks": False,
    "grid": False,
}
"""Axis with the name of a NUMA node in the middle of its band, from the parameter `names`."""
WORKFLOWS = {f"workflow {place}": colour for place, colour in enumerate(palette.SERIES)}
"""Colours of bars that run."""


def charts_of(colours: Mapping[str, str], shared: bool) -> dict[str, Spec]:
    """The charts of one episode, by the id of their place on the page.

    Colours are of tenants, if there are some; `shared` is whether these have shares.
    """
    panels = {"use": _utilisation()}
    if colours:
        panels["tenants"] = _tenants(colours)
    if shared:
        panels["shares"] = _shares(colours)
    both = {f"{name}-{panel}": chart for name, chart in panels.items() for panel in PANELS}
    return {"gantt": _gantt(), "queue": _queue_length(), **both}


def _of_data(name: str, kind: str, look: Spec, **channels: Any) -> Spec:
    """A layer of the data that page.js gives a name."""
    return {"data": {"name": name}, **vl.mark(kind, look, **channels)}


def outlined(channel: str) -> Spec:
    """In the colour of the fill: else what is narrow is not seen, or the background is between."""
    return {"stroke": {"expr": f"scale('fill', datum.{channel})"}, "strokeWidth": 0.7}


def box(x: Spec, y: Spec) -> dict[str, Spec]:
    """Channels of a bar from its begin to its end, and from its top to its bottom."""
    return {"x": x, "y": y, "x2": {"field": "end"}, "y2": {"field": "bottom"}}


def _gantt() -> Spec:
    """Two policies above one another on one time axis, a band a NUMA node, a row a container.

    Time is seconds, or less where idle time is folded; template/gantt.js writes it above the chart.
    Data: `bars` (fill, begin, end, top, bottom and a container's numbers), `leases` and `outages`
    of servers (begin, end, top, bottom, server, condition, from, to, rent), `folds` (begin, end,
    idle), `edges` between bands (row), `titles` (row, text). Parameters: `ticks`, the middles of
    the bands, `names`, what stands there, `rows`, how many there are, `until`, where time ends, and
    `times` of grid lines.
    """
    whole = {"nice": False, "zero": False}
    lines = {"orient": "top", "grid": True, "labels": False, "domain": False}
    x = vl.quantity("begin", title=None, axis=lines | {"values": {"expr": "times"}})
    x["scale"] = whole | {"domain": [0, {"expr": "until"}]}
    top = vl.quantity("top", title=None)
    top["scale"] = whole | {"domain": [0, {"expr": "rows"}], "reverse": True}
    names = {"labelBound": True, "labelOverlap": "greedy", "domain": False}
    top["axis"] = NODES | names | {"values": {"expr": "ticks"}}
    row, bar = top | {"field": "row"}, box(x, top)
    grey, clip = {"clip": True, "color": "#808080"}, {"clip": True}
    lease = [vl.word(field) for field in ("server", "condition", "from", "to", "rent")]
    bold = {"align": "left", "baseline": "middle", "fontWeight": "bold", "fontSize": 13}
    looks = palette.PHASES | WORKFLOWS | palette.CHANGES
    fill, condition = vl.by_name("fill", looks), vl.by_name("condition", looks)
    bars = _of_data("bars", "rect", clip, **bar, fill=fill, tooltip=vl.tooltips(**HOVER))
    wheel = {"type": "interval", "zoom": "wheel![event.ctrlKey]"}
    bars["params"] = [{"name": "zoom", "select": wheel, "bind": "scales"}]
    layers = [
        _of_data("leases", "rect", grey | {"opacity": 0.13}, **bar, tooltip=lease),
        _of_data("outages", "rect", clip, **bar, fill=condition, tooltip=lease[:-1]),
        _of_data("folds", "rect", grey | {"opacity": 0.4}, **bar, tooltip=[vl.word("idle")]),
        _of_data("edges", "rule", clip | {"opacity": 0.5}, y=row, strokeWidth={"value": 1}),
        bars,
        _of_data("titles", "text", clip | bold, x={"value": 4}, y=row, text=vl.word("text")),
    ]
    params = vl.parameters(ticks=[], names={}, rows=1, until=1, times=[])
    return vl.on_page({"layer": layers, "params": params})


def _utilisation() -> Spec:
    """Use of every NUMA node over time as colour. Data: `use` (node, begin, end, percent)."""
    legend = {"orient": "top", "gradientLength": 160, "direction": "horizontal"}
    scale = {"scheme": "cividis", "domain": [0, 100], "clamp": True}
    cells = _of_data(
        "use",
        "rect",
        outlined("percent"),
        x=vl.quantity("begin", title=TIME, scale={"nice": False}, axis={"grid": False}),
        x2={"field": "end"},
        y=vl.word("node", sort=None, title=None, axis={"labelLimit": 0}),
        fill=vl.quantity("percent", title="%", scale=scale, legend=legend),
        tooltip=vl.tooltips("node", "begin", "end", "percent"),
    )
    return vl.on_page(cells)


def _up_to(parameter: str, **options: Any) -> Spec:
    """A scale from 0 to what page.js sets."""
    return {"domain": [0, {"expr": parameter}], **options}


def _tenants(colours: Mapping[str, str]) -> Spec:
    """What tenants use of the cluster over time, stacked.

    Data: `use` (tenant, place, begin, end, percent), largest tenant first. Parameters: `until`,
    seconds, and `most`, percent, at which the axes end. Colours are by tenant, in this order.
    """
    time = vl.quantity("begin", bin="binned", title=TIME, scale=_up_to("until", nice=False))
    time["axis"] = {"grid": False, "labelOverlap": True, "labelSeparation": 12}
    percent = vl.quantity("percent", title="computing capacity (%)", stack="zero")
    areas = _of_data(
        "use",
        "bar",
        outlined("tenant") | {"binSpacing": 0},
        x=time,
        x2={"field": "end"},
        y=percent | {"scale": _up_to("most")},
        fill=vl.by_name("tenant", colours),
        order={"field": "place", "type": "ordinal"},
        tooltip=vl.tooltips("tenant", "begin", "end", "percent"),
    )
    return vl.on_page(areas | {"params": vl.parameters(until=1, most=1)}, vl.HEIGHT * 2 // 3)


def _shares(colours: Mapping[str, str]) -> Spec:
    """What tenants received and were entitled to, each a line over time.

    Data: `shares` (tenant, what: `received` or `entitled`, time, core_seconds). Parameters:
    `until`, seconds, and `most`, core-seconds, at which the axes end.
    """
    lines = _of_data(
        "shares",
        "line",
        vl.STEPS,
        x=vl.quantity("time", title=TIME, scale=_up_to("until", nice=False)),
        y=vl.quantity("core_seconds", title="core-seconds", scale=_up_to("most")),
        color=vl.by_name("tenant", colours),
        strokeDash=vl.by_name("what", {"received": [1, 0], "entitled": [6, 3]}),
        tooltip=vl.tooltips("what", "tenant", "time", "core_seconds"),
    )
    return vl.on_page(lines | {"params": vl.parameters(until=1, most=1)})


def shares_of(rows: pd.DataFrame, colours: Mapping[str, str]) -> Spec:
    """Shares of tenants by several policies, a panel each: `tenants.share_rows` with the policy."""
    chart = _shares(colours)
    policies = list(dict.fromkeys(rows["policy"]))
    size = {"width": vl.HEIGHT, "height": vl.HEIGHT // 2}
    return {
        "data": vl.values(rows),
        "params": vl.parameters(until=rows["time"].max(), most=rows["core_seconds"].max()),
        "facet": vl.word("policy", title=None, sort=policies),
        "columns": 2 if len(policies) == 4 else 3,  # 2 x 2 leaves no hole
        "spec": {"mark": chart["mark"], "encoding": chart["encoding"], **size},
    }


def _queue_length() -> Spec:
    """Containers that wait for memory over time. Data: `queue` (panel, policy, time, waiting)."""
    # Halves of a container have no number; with few containers Vega has ticks there.
    whole = {"labelExpr": "datum.value % 1 ? '' : format(datum.value, 'd')"}
    lines = _of_data(
        "queue",
        "line",
        vl.STEPS,
        x=vl.quantity("time", title=TIME),
        y=vl.quantity("waiting", title="containers waiting", axis=whole),
        color=vl.by_name("panel", dict(zip(PANELS, palette.SERIES, strict=False))),
        strokeDash=vl.by_name("panel", PANELS),
        tooltip=vl.tooltips("policy", "time", "waiting"),
    )
    return vl.on_page(lines, vl.HEIGHT * 2 // 3)
