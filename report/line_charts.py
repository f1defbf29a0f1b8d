"""The charts of an evaluation with a line a policy, and all that there are of a scenario."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from agents.learned.metrics_file import rows_of
from env.base.errors import InputError
from env.base.schema import one_line, printable
from env.score.reward import Objective
from evaluation.episode_metrics import SHARES
from report import charts, palette
from report import vega as vl
from report.charts import DIFFERENCE, POINT, SHOWN, headings_of, means_of, styles
from report.drawing import Spec
from report.summary import RANKED_BY, Summary
from report.world import Scenarios
from run.composing import short_keys, shown

ONLY_SHOWN = {"filter": f"indexof({SHOWN}, datum.policy) >= 0"}
PANEL = "panel"
"""Parameter of the sweep: values of the keys that are not its axis."""
FIGURED = ("difference", "slowdown", "cost_ratio", "carbon", "queueing", "container_start")
"""What is in the figure of a sweep, unless it is 0 everywhere; the report has all. Carbon is, where
it counts in J."""
CURVE = ["env_steps", "difference"]
"""Columns of metrics.csv that are drawn."""
RATIOS = np.linspace(1.0, 4.0, 121)
"""At which performance profiles are drawn."""


def scenario_charts(summary: Summary) -> dict[str, Spec]:
    """All charts of one scenario, by the id of their place on the page."""
    metrics, results = summary.metrics, summary.results
    drawn = {
        "ranking": charts.ranking(summary),
        "profiles": profiles(summary),
        "flow-time": flow_time(summary),
    }
    for place, spent in (("time-against-cost", "cost_ratio"), ("time-against-carbon", "carbon")):
        if spent in metrics and (results[spent] > 0).all():
            drawn[place] = charts.time_against(spent, summary)
    if len(summary.policies) > 1:
        drawn["difference"] = charts.difference(summary)
        drawn["improvement"] = charts.improvement(summary)
    if (results["cold_starts"] > 0).any():
        drawn["cold-starts"] = charts.cold_starts(summary)
    if any(name.startswith("slo_") for name in metrics):
        drawn["deadlines"] = deadlines(summary)
    if "execution" in metrics:
        drawn["parts"] = charts.parts(summary)
    return drawn


def profiles(summary: Summary) -> Spec:
    """Share of episodes in which a policy is within a ratio of the best one.

    Source: Dolan, More, Mathematical Programming 2002.
    """
    J = summary.values(RANKED_BY)
    to_best = (J / J.min()).to_numpy()
    shares = (to_best[:, :, None] <= RATIOS).mean(axis=1)
    x = vl.quantity("ratio", title="J / lowest J of the episode", axis={"tickCount": 6})
    x["scale"] = {"domain": [1.0, float(RATIOS[-1])], "nice": False}
    curves = {policy: (RATIOS, share) for policy, share in zip(J.index, shares, strict=True)}
    return _curves(curves, x, "share of episodes", summary)


def flow_time(summary: Summary) -> Spec:
    """Share of workflows that took no longer than a time, all episodes counting alike."""
    times = {
        policy: np.quantile(np.concatenate(rows.to_list()), SHARES, method="inverted_cdf")
        for policy, rows in summary.results.groupby("policy")["flow_time_quantiles"]
    }
    x = vl.axis("flow_time", "flow time (s)", pd.Series(np.concatenate(list(times.values()))))
    curves = {row.policy: (times[row.policy], SHARES) for row in summary.policies}
    return _curves(curves, x, "share of workflows", summary)


def _curves(
    curves: Mapping[str, tuple[np.ndarray, np.ndarray]], x: Spec, title: str, summary: Summary
) -> Spec:
    """A line a policy: the field of `x`, and the share of what the title says."""
    rows = [
        {"policy": policy, x["field"]: along.round(4).tolist(), "share": share.round(4).tolist()}
        for policy, (along, share) in curves.items()
    ]
    y = vl.quantity("share", title=title, axis={"format": "%"})
    tooltip = vl.tooltips("policy", x["field"], "share")
    looks = _looks(summary.kinds)
    del looks["shape"]
    line = vl.mark("line", vl.STEPS, x=x, y=y, tooltip=tooltip, **looks)
    transform = [ONLY_SHOWN, {"flatten": [x["field"], "share"]}]
    params = vl.parameters(shown=list(summary.kinds))
    return vl.on_page({"data": {"values": rows}, "transform": transform, "params": params, **line})


def _looks(kinds: Mapping[str, str], legend: Spec | None = None) -> dict[str, Spec]:
    """Colour, dashes and shape of policies, see `styles`."""
    channels = {"color": "colour", "strokeDash": "dash", "shape": "shape"}
    return {
        channel: vl.by_name(
            "policy", {each["policy"]: each[look] for each in styles(kinds)}, legend
        )
        for channel, look in channels.items()
    }


def deadlines(summary: Summary) -> Spec:
    """Share of workflows that meet each deadline."""
    rows = pd.concat(
        means_of(summary, name).assign(deadline=float(name.removeprefix("slo_")))
        for name in summary.metrics
        if name.startswith("slo_")
    )
    x = vl.quantity("deadline", title="deadline / time alone")
    x["scale"] = {"type": "log", "nice": False, "padding": 16}
    x["axis"] = {"values": sorted(set(rows["deadline"])), "format": "~g"}
    y = vl.quantity("mean", title="share of workflows in time", axis={"format": "%"})
    y["scale"] = {"domain": [0, 1]}
    return _banded(rows, x, y, summary.kinds)


def sweep_charts(summary: Summary, scenarios: Scenarios) -> dict[str, Any]:
    """By the swept key that is the axis: its panels, and the chart of every metric.

    The first one is the difference to the measure.
    """
    charts = {}
    for key, places in axes(scenarios).items():
        specs = {}
        for name, heading in headings_of(summary).items():
            rows = pd.concat(
                means_of(summary.of(scenario), name).assign(x=x, panel=panel)
                for scenario, x, panel in places.itertuples(index=False)
            )
            rows = rows[["policy", "x", "panel", "mean", "low", "high", "spread"]]
            specs[name] = _sweep(rows, key, summary.kinds, heading)
        charts[key] = {"panels": list(dict.fromkeys(places["panel"])), "specs": specs}
    return charts


def axes(scenarios: Scenarios) -> dict[str, pd.DataFrame]:
    """Where scenarios are on charts, by the swept key along the axis.

    Keys of numbers can be the axis, or all where there are none.

    Returns:
        A row a scenario: scenario, x (its value of the key), panel (those of other keys).
    """
    points = list(scenarios.values())
    keys = [key for key in points[0] if len({shown(point[key]) for point in points}) > 1]
    numbers = [key for key in keys if all(type(point[key]) in (int, float) for point in points)]
    short = short_keys(points[0])
    return {
        short[axis]: pd.DataFrame(
            {
                "scenario": name,
                "x": point[axis] if numbers else shown(point[axis]),
                "panel": ", ".join(
                    f"{short[key]}={shown(point[key])}" for key in keys if key != axis
                ),
            }
            for name, point in scenarios.items()
        )
        for axis in numbers or keys
    }


def _sweep(rows: pd.DataFrame, key: str, kinds: Mapping[str, str], metric: str) -> Spec:
    """A metric against a key that was swept: a line a policy over numbers, else points.

    Args:
        rows: as of `means_of`, with x, which is text if the value of the key is no number, and
            the panel.
        key: the horizontal axis.
        kinds: by policy, all of them.
        metric: its heading.
    """
    keys = list(dict.fromkeys(rows["x"]))
    rows = rows.assign(low=vl.on_axis(rows["low"], rows["mean"]))
    y = vl.axis("mean", metric, rows["mean"], padding=0)
    if "%" in "".join(rows["spread"]):
        y["axis"] = {"format": "~%"}
    x = vl.word("x", title=key, sort=keys, axis={"labelAngle": 0})
    if pd.api.types.is_numeric_dtype(rows["x"]):
        x = vl.axis("x", key, rows["x"], axis={"values": keys, "format": "~g"})
    legend = {"values": {"expr": SHOWN}, "orient": "top", "columns": 3, "title": None}
    chart = _banded(rows, x, y, kinds, legend)
    chart["transform"].append({"filter": f"datum.panel === {PANEL}"})
    chart["params"] += vl.parameters(panel=rows["panel"].iloc[0])
    return chart


def sweep_figure(sweeps: Mapping[str, Any], objective: Objective) -> Spec:
    """What a sweep is mostly about against its first axis: a row a metric, a column a panel.

    Args:
        sweeps: from `sweep_charts`.
        objective: weights of J.
    """
    charts = next(iter(sweeps.values()))["specs"]
    size = {"width": vl.HEIGHT, "height": vl.HEIGHT // 2}
    rows: list[Spec] = []
    for name in FIGURED:
        counts = name != "carbon" or objective.carbon_weight > 0
        if counts and name in charts and any(row["mean"] for row in charts[name]["data"]["values"]):
            header = {"labelFontSize": 12, "title": None, "labels": not rows}
            # The panel is no choice of a reader's here, so that all are drawn.
            panels = {"transform": [ONLY_SHOWN], "layer": charts[name]["layer"], **size}
            facet = {"column": vl.word("panel", sort=None, header=header)}
            rows.append({"facet": facet, "data": charts[name]["data"], "spec": panels})
    return {"vconcat": rows, "params": charts[DIFFERENCE]["params"]}


def _banded(
    rows: pd.DataFrame, x: Spec, y: Spec, kinds: Mapping[str, str], legend: Spec | None = None
) -> Spec:
    """A line a policy in the band of its intervals; points with theirs if x is no number."""
    looks = _looks(kinds, legend)
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
    along = vl.word(x["field"], title=x["title"]) | {"type": x["type"]}
    tooltip = [vl.word("policy"), along, vl.word("spread", title="mean")]
    point = POINT | {"size": 60}
    layers.append(vl.mark("point", point, **at, shape=looks["shape"], y=y, tooltip=tooltip))
    params = vl.parameters(shown=list(kinds))
    return vl.layered(layers, rows, transform=[ONLY_SHOWN], params=params)


def read_training(file: Path) -> pd.DataFrame | None:
    """Environment steps and difference to the baseline where policies were evaluated, and whose.

    None where there is no such metrics.csv, or one that is damaged: that is said in a line, as no
    evaluation may fail because of what lies beside its policy.
    """
    if not os.path.lexists(file):
        return None
    try:
        rows = pd.DataFrame(list(rows_of(file, CURVE)), columns=[*CURVE, "policy"])
        # Where they were not evaluated the cell is empty.
        rows[CURVE] = rows[CURVE].replace("", "nan").astype(float)
        rows = rows.dropna(subset=CURVE)
        if not np.isfinite(rows[CURVE]).all(axis=None):
            raise InputError("a number that is not finite")
    except (InputError, ValueError) as error:
        print(one_line(f"note: no learning curve, {file} is left out: {error}"), flush=True)
        return None
    return rows.assign(policy=rows["policy"].fillna("").map(printable))


def learning_curve(rows: pd.DataFrame) -> Spec:
    """How policies compare with the best rule as training sees more decisions, a line a policy.

    Args:
        rows: an evaluation each: env_steps, difference (percent of J, in held-out episodes) and
            policy.
    """
    several = rows["policy"].nunique() > 1
    legend = {"orient": "top", "title": None, "labelLimit": 0}
    colour = vl.word("policy", legend=legend, scale={"range": list(palette.SERIES)})
    line = vl.mark(
        "line",
        # A line of one point is not drawn, and an axis around it has no room for numbers.
        {"strokeWidth": 2, "point": len(rows) == 1},
        x=vl.quantity("env_steps", title="decisions trained on", axis={"format": "~s"}),
        y=vl.quantity("difference", title="J against the best baseline (%)"),
        color=colour if several else {"value": palette.SERIES[0]},
        tooltip=vl.tooltips("policy", *CURVE),
    )
    return vl.on_page({"data": vl.values(rows), **line})
