"""The charts of an evaluation with a line a policy, and all that there are of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from evaluation.episode_metrics import SHARES
from evaluation.statistics import performance_profiles
from report import charts, palette
from report import vega as vl
from report.charts import DASHES, SHOWN, headings_of, means_of, styles, turns
from report.drawing import Spec
from report.summary import RANKED_BY, Summary
from report.sweep import Scenarios, axes_of, places

ONLY_SHOWN = {"filter": f"indexof({SHOWN}, datum.policy) >= 0"}
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")
"""Of the points of policies of a kind, used over again."""
PANEL = "panel"
"""Parameter of the sweep: values of the keys that are not its axis."""
FIGURED = ("difference", "slowdown", "cost_ratio", "queueing", "container_start")
"""What is in the figure of a sweep, unless it is 0 everywhere; the report has all."""
RATIOS = np.linspace(1.0, 4.0, 121)
"""At which performance profiles are drawn."""


def scenario_charts(summary: Summary) -> dict[str, Spec]:
    """All charts of one scenario, by the id of their place on the page."""
    known, results = summary.metrics, summary.results
    drawn = {
        "ranking": charts.ranking(summary),
        "profiles": profiles(summary),
        "flow-time": flow_time(summary),
    }
    for place, spent in (("time-against-cost", "cost_ratio"), ("time-against-carbon", "carbon")):
        if spent in known and (results[spent] > 0).all():
            drawn[place] = charts.time_against(spent, summary)
    if len(summary.policies) > 1:
        drawn["difference"] = charts.difference(summary)
        drawn["improvement"] = charts.improvement(summary)
    if (results["cold_starts"] > 0).any():
        drawn["cold-starts"] = charts.cold_starts(summary)
    if any(name.startswith("slo_") for name in known):
        drawn["deadlines"] = deadlines(summary)
    if "execution" in known:
        drawn["parts"] = charts.parts(summary)
    return drawn


def profiles(summary: Summary) -> Spec:
    """Share of episodes in which a policy is within a ratio of the best one."""
    J = summary.values(RANKED_BY)
    shares = zip(J.index, performance_profiles(J.to_numpy(), RATIOS), strict=True)
    x = vl.quantity("ratio", title="J / lowest J of the episode", axis={"tickCount": 6})
    x["scale"] = {"domain": [1.0, float(RATIOS[-1])], "nice": False}
    rows = [{"policy": policy, "ratio": RATIOS, "share": share} for policy, share in shares]
    return _curves(rows, x, "share of episodes", summary)


def flow_time(summary: Summary) -> Spec:
    """Share of workflows that took no longer than a time, all episodes counting alike."""
    rows = []
    for policy in (row.policy for row in summary.policies):
        own = summary.results[summary.results["policy"] == policy]["flow_time_quantiles"]
        times = np.quantile(np.concatenate(own.to_list()), SHARES, method="inverted_cdf").round(4)
        rows.append({"policy": policy, "flow_time": times, "share": SHARES})
    everyone = pd.Series(np.concatenate([row["flow_time"] for row in rows]))
    x = vl.axis("flow_time", "flow time (s)", everyone)
    return _curves(rows, x, "share of workflows", summary)


def _curves(rows: list[dict[str, Any]], x: Spec, title: str, summary: Summary) -> Spec:
    """A curve a row: `policy`, and arrays of the field of `x` and of `share`."""
    field = x["field"]
    for row in rows:
        row |= {name: row[name].round(4).tolist() for name in (field, "share")}
    line = vl.mark(
        "line",
        {"interpolate": "step-after", "strokeWidth": 2},
        x=x,
        y=vl.quantity("share", title=title, axis={"format": "%"}),
        tooltip=vl.tooltips("policy", field, "share"),
        **_lines(summary.kinds),
    )
    shown = vl.parameters(shown=list(summary.kinds))
    transform = [ONLY_SHOWN, {"flatten": [field, "share"]}]
    return vl.on_page({"data": {"values": rows}, "transform": transform, "params": shown, **line})


def _lines(kinds: Mapping[str, str]) -> dict[str, Spec]:
    """Colour and dashes of the lines of policies, see `styles`."""
    lines = styles(kinds)
    channels = {"color": "colour", "strokeDash": "dash"}
    return {
        channel: vl.by_name("policy", {line["policy"]: line[look] for line in lines})
        for channel, look in channels.items()
    }


def deadlines(summary: Summary) -> Spec:
    """Share of workflows that meet each deadline."""
    met = [name for name in summary.metrics if name.startswith("slo_")]
    rows = pd.concat(
        means_of(summary, name).assign(deadline=float(name.removeprefix("slo_"))) for name in met
    )
    x = vl.quantity("deadline", title="deadline / time alone")
    x["scale"] = {"type": "log", "nice": False, "padding": 16}
    x["axis"] = {"values": sorted(set(rows["deadline"])), "format": "~g"}
    y = vl.quantity("mean", title="share of workflows in time", axis={"format": "%"})
    y["scale"] = {"domain": [0, 1]}
    return _banded(rows, x, y, summary.kinds, _lines(summary.kinds))


def sweep_charts(summary: Summary, scenarios: Scenarios) -> dict[str, Any]:
    """By the swept key that is the axis: its panels, and the chart of every metric.

    The first one is the difference to the measure.
    """
    found = {}
    for key in axes_of(scenarios):
        placed = places(scenarios, key)
        specs = {
            name: sweep(swept(summary, placed, name), key, summary.kinds, heading)
            for name, heading in headings_of(summary).items()
        }
        found[key] = {"panels": list(dict.fromkeys(placed["panel"])), "specs": specs}
    return found


def sweep_figure(summary: Summary, scenarios: Scenarios) -> Spec:
    """What a sweep is mostly about against its first axis: a row a metric, a column a panel."""
    key = axes_of(scenarios)[0]
    placed = places(scenarios, key)
    size = {"width": vl.HEIGHT, "height": vl.HEIGHT // 2}
    rows: list[Spec] = []
    params: list[Spec] = []
    for name, heading in headings_of(summary).items():
        found = swept(summary, placed, name)
        if name not in FIGURED or not found["mean"].any():
            continue
        # The panel is no choice of a reader's here, so that all are drawn.
        own = found.assign(column=found["panel"], panel="")
        chart = sweep(own, key, summary.kinds, heading)
        params = chart["params"]
        header = {"labelFontSize": 12, "title": None, "labels": not rows}
        panels = {"transform": chart["transform"], "layer": chart["layer"], **size}
        facet = {"column": vl.word("column", sort=None, header=header)}
        rows.append({"facet": facet, "data": chart["data"], "spec": panels})
    return {"vconcat": rows, "params": params}


def swept(summary: Summary, placed: pd.DataFrame, name: str) -> pd.DataFrame:
    """Rows for `sweep`: `means_of` a metric in every scenario, with its place in x and panel."""
    found = []
    for scenario, x, panel in placed.itertuples(index=False):
        found.append(means_of(summary.of(scenario), name).assign(x=x, panel=panel))
    return pd.concat(found).drop(columns=["label", "kind"])


def sweep(rows: pd.DataFrame, key: str, kinds: Mapping[str, str], metric: str) -> Spec:
    """A metric against a key that was swept: a line a policy over numbers, else points.

    Args:
        rows: from `swept`; x is text if the value of the key is no number.
        key: the horizontal axis.
        kinds: by policy, all of them.
        metric: its heading.
    """
    keys = list(dict.fromkeys(rows["x"]))
    rows = rows.assign(low=vl.on_axis(rows["low"], rows["mean"]))
    y = vl.axis("mean", metric, rows["mean"], scale=vl.scale_of(rows["mean"], padding=0))
    if "%" in "".join(rows["told"]):
        y["axis"] = {"format": "~%"}
    x = vl.word("x", title=key, sort=keys, axis={"labelAngle": 0})
    if pd.api.types.is_numeric_dtype(rows["x"]):
        x = vl.axis("x", key, rows["x"], axis={"values": keys, "format": "~g"})
    legend = {"values": {"expr": SHOWN}, "orient": "top", "columns": 3, "title": None}
    turn_of = turns(kinds)
    looks: dict[str, dict[str, Any]] = {
        "color": {name: palette.KINDS[kind] for name, kind in kinds.items()},
        "strokeDash": {name: DASHES[turn % len(DASHES)] for name, turn in turn_of.items()},
        "shape": {name: SHAPES[turn % len(SHAPES)] for name, turn in turn_of.items()},
    }
    channels = {name: vl.by_name("policy", look) for name, look in looks.items()}
    for channel in channels.values():
        channel["legend"] = legend
    chart = _banded(rows, x, y, kinds, channels)
    chart["transform"].insert(0, {"filter": f"datum.panel === {PANEL}"})
    chart["params"] += vl.parameters(panel=rows["panel"].iloc[0])
    return chart


def _banded(
    rows: pd.DataFrame, x: Spec, y: Spec, kinds: Mapping[str, str], looks: Mapping[str, Spec]
) -> Spec:
    """A line a policy in the band of its intervals; points with theirs if x is no number."""
    at = {"x": x, "color": looks["color"]}
    ends = {"y": y | {"field": "low"}, "y2": {"field": "high"}}
    if x["type"] == "quantitative":
        # Symmetric intervals may reach beyond what a share can be.
        layers = [
            vl.mark("area", {"opacity": 0.15, "clip": True}, **at, **ends),
            vl.mark("line", {"strokeWidth": 2}, **at, y=y, strokeDash=looks["strokeDash"]),
        ]
    else:
        at["xOffset"] = vl.word("policy", scale={"domain": list(kinds), "paddingOuter": 0.5})
        layers = [vl.mark("rule", {"strokeWidth": 2}, **at, **ends)]
    told = vl.word(x["field"], title=x["title"]) | {"type": x["type"]}
    shape = {"shape": looks["shape"]} if "shape" in looks else {}
    tooltip = [vl.word("policy"), told, vl.word("told", title="mean")]
    point = {"filled": True, "size": 60, "opacity": 1}
    layers.append(vl.mark("point", point, **at, **shape, y=y, tooltip=tooltip))
    shown = vl.parameters(shown=list(kinds))
    return vl.layered(layers, rows, transform=[ONLY_SHOWN], params=shown)


def learning_curve(rows: pd.DataFrame) -> Spec:
    """How policies compare with the best rule as training sees more decisions, a line a policy.

    Args:
        rows: an evaluation each: env_steps, difference (percent of J, in held-out episodes), and
            policy where it is said.
    """
    colour, told = palette.KINDS["learned"], ["env_steps", "difference"]
    channels: dict[str, Any] = {
        "x": vl.quantity("env_steps", title="decisions trained on", axis={"format": "~s"}),
        "y": vl.quantity("difference", title="J against the best baseline (%)"),
    }
    if "policy" in rows and rows["policy"].nunique() > 1:
        told.insert(0, "policy")
        legend = {"orient": "top", "title": None, "labelLimit": 0}
        channels["color"] = vl.word("policy", legend=legend, scale={"range": list(palette.SERIES)})
    # A line of one point is not drawn, and an axis around it has no room for numbers.
    point = {"color": colour} if len(rows) == 1 else False
    look = {"color": colour, "strokeWidth": 2, "point": point}
    line = vl.mark("line", look, **channels, tooltip=vl.tooltips(*told))
    return vl.on_page({"data": vl.values(rows), **line})
