"""The charts of an evaluation with a row or a point a policy; each function is one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from report import line_charts, palette
from report.axes import axis, is_wide
from report.charts import (
    DIFFERENCE,
    KIND,
    POLICIES,
    crossed,
    crosses,
    estimated,
    estimates,
    folded,
    headings_of,
    means_of,
    names_of,
    pareto,
    row_a_policy,
)
from report.digits import p_value
from report.summary import RANKED_BY, Summary
from report.vega import Spec, by_name, layered, mark, parameters, quantity, tooltips, values, word

METRIC = "metric"
"""Parameter of the ranking: name of the metric to rank by."""
NAMES = "names"
"""Data of charts with named points: name, x, y, the ends of their intervals, whether the front has
them, and what template/draw.js fills in."""


def scenario_charts(summary: Summary) -> dict[str, Spec]:
    """All charts of one scenario, by the id of their place on the page."""
    known, results = summary.metrics, summary.results
    drawn = {
        "ranking": ranking(summary),
        "profiles": line_charts.profiles(summary),
        "flow-time": line_charts.flow_time(summary),
    }
    for place, spent in (("time-against-cost", "cost_ratio"), ("time-against-carbon", "carbon")):
        if spent in known and (results[spent] > 0).all():
            drawn[place] = time_against(spent, summary)
    if len(summary.policies) > 1:
        drawn |= {"difference": difference(summary), "improvement": improvement(summary)}
    if (results["cold_starts"] > 0).any():
        drawn["cold-starts"] = cold_starts(summary)
    if any(name.startswith("slo_") for name in known):
        drawn["deadlines"] = line_charts.deadlines(summary)
    if "execution" in known:
        drawn["parts"] = parts(summary)
    return drawn


def _with_each(rows: pd.DataFrame, summary: Summary, values: pd.DataFrame) -> pd.DataFrame:
    """Few episodes are points of their own; `values` has a row a policy, a column an episode."""
    if not summary.few:
        return rows
    return rows.assign(each=[values.loc[policy].dropna().tolist() for policy in rows["policy"]])


def difference(summary: Summary) -> Spec:
    """The paired difference of every policy to the measure, best policy on top."""
    J = summary.values(RANKED_BY)
    measure = J.loc[summary.measure]
    rows = _with_each(means_of(summary, DIFFERENCE), summary, (J - measure) / measure.mean())
    found = rows["policy"].map({row.policy: row.against for row in summary.policies})
    rows = folded(rows).assign(
        clear=[summary.is_clear(each) for each in found],
        p=["-" if summary.few else p_value(each.p_value) for each in found],
        better=[summary.told(each.probability, "share") for each in found],
    )
    signed = {"labelExpr": "datum.value ? format(datum.value, '+~%') : '0%'"}
    x = quantity("mean", title="difference in J", axis=signed)
    zero = {"data": {"values": [{"mean": 0}]}, **mark("rule", {"strokeWidth": 1.5}, x=x)}
    points = estimates(rows, x, zero, p="p", better="P(better)")
    return row_a_policy(points, rows, params=parameters(back="white"))


def ranking(summary: Summary) -> Spec:
    """Mean and interval of every policy, best on top.

    A metric that has no better direction keeps the order of J.
    """
    found = []
    for name, metric in summary.metrics.items():
        rows = _with_each(means_of(summary, name), summary, summary.values(name))
        if metric.better is not None:
            rows = rows.sort_values("mean", ascending=metric.better == "lower", kind="stable")
        found.append(folded(rows).assign(metric=name, place=range(len(rows))))
    rows = pd.concat(found)
    shares = [name for name, metric in summary.metrics.items() if metric.shown == "share"]
    written = f"indexof({shares}, {METRIC}) < 0 ? datum.label : format(datum.value, '~%')"
    scale = {"zero": False, "nice": True}
    x = quantity("mean", title=None, scale=scale, axis={"labelExpr": written})
    points = estimates(rows, x, y=POLICIES | {"sort": {"field": "place", "op": "min"}})
    chosen = [{"filter": f"datum.metric === {METRIC}"}]
    params = parameters(metric=RANKED_BY, back="white")
    return row_a_policy(points, rows, transform=chosen, params=params)


def improvement(summary: Summary) -> Spec:
    """How often every policy has a lower J than the measure, best policy on top."""
    rows = estimated(summary, lambda row: row.against.probability, "share").assign(beyond="")
    rows = rows[rows["policy"] != summary.measure]
    title, quarters = "share of episodes with a lower J", [0, 0.25, 0.5, 0.75, 1]
    x = quantity("mean", title=title, scale={"domain": [0, 1]})
    x["axis"] = {"format": "%", "values": quarters}
    even = {"data": {"values": [{"mean": 0.5}]}, **mark("rule", {"strokeDash": [4, 4]}, x=x)}
    return row_a_policy(estimates(rows, x, even), rows, params=parameters(back="white"))


def time_against(spent: str, summary: Summary) -> Spec:
    """Every policy by its mean slowdown and what it spent, a metric, and their Pareto front.

    Names are placed by template/draw.js, which knows how large the chart is.
    """
    rows, titles = names_of(summary), headings_of(summary)
    for name in ("slowdown", spent):
        columns = [name, *(f"{name}_{part}" for part in ("low", "high", "told"))]
        rows[columns] = means_of(summary, name)[["mean", "low", "high", "told"]]
    rows["front"] = pareto(rows[[spent, "slowdown"]].to_numpy())
    x, y, rows = crossed(rows, {name: titles[name] for name in (spent, "slowdown")})
    last = (rows["kind"] != "learned") & ~rows["front"]
    names = pd.DataFrame({"name": rows["policy"], "kind": rows["kind"], "front": rows["front"]})
    for along, field in (("x", spent), ("y", "slowdown")):
        for end in ("", "_low", "_high"):
            names[f"{along}{end}"] = rows[f"{field}{end}"]
    names = names.loc[last.sort_values(kind="stable").index]
    # Without the page around it a chart has the names that have room beside their points.
    placed = {"data": {**values(names.join(_beside(names))), "name": NAMES}}
    moved = {name: {"expr": f"datum.{name}"} for name in ("align", "dx", "dy")}
    told = {f"{name}_told": titles[name] for name in ("slowdown", spent)}
    point, dashed = {"filled": True, "size": 90, "opacity": 1}, {"strokeDash": [4, 4]}
    front = {"data": values(rows[rows["front"]])}
    layers = [
        front | mark("line", dashed | {"color": palette.KINDS["reference"]}, x=x, y=y),
        *crosses(x, y, KIND),
        mark("point", point, x=x, y=y, color=KIND, tooltip=tooltips("policy", "kind", **told)),
        placed
        | mark(
            "text",
            {"baseline": "middle", "fontSize": 11, **moved},
            x=quantity("x", title=x["title"]),
            y=quantity("y", title=y["title"]),
            text=word("text"),
        ),
    ]
    return layered(layers, rows)


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


def cold_starts(summary: Summary) -> Spec:
    """How many episodes of a policy had how many cold starts, and the median."""
    rows = names_of(summary).merge(summary.results[["policy", "cold_starts"]], on="policy")
    title = f"{summary.metrics['cold_starts'].heading} of an episode"
    x = quantity("cold_starts", title=title, axis={"tickMinStep": 1})
    count = {"aggregate": "count", "type": "quantitative"}
    discs = mark(
        "circle",
        {"opacity": 0.8},
        x=x,
        y=POLICIES,
        color=KIND,
        size=count | {"legend": None, "scale": {"rangeMin": 20, "rangeMax": 250}},
        tooltip=[word("policy"), quantity("cold_starts"), count | {"title": "episodes"}],
    )
    tick = {"thickness": 2, "size": 20}
    return row_a_policy(
        [discs, mark("tick", tick, x=x | {"aggregate": "median"}, y=POLICIES)], rows
    )


def tenant_flow_time(rows: pd.DataFrame, colours: Mapping[str, str]) -> Spec:
    """Mean flow time of every tenant's workflows by policy, in rank order of the policies.

    Args:
        rows: a policy and tenant each: policy, label, tenant, flow_time, workflows.
        colours: by tenant.
    """
    x = axis("flow_time", "mean flow time (s)", rows["flow_time"])
    ends = {"x": x | {"aggregate": "min"}, "x2": {"aggregate": "max", "field": "flow_time"}}
    means = mark(
        "point",
        {"filled": True, "size": 90, "opacity": 1},
        x=x,
        y=POLICIES,
        color=by_name("tenant", colours),
        tooltip=tooltips("policy", "tenant", "flow_time", "workflows"),
    )
    return row_a_policy([mark("rule", {"opacity": 0.5}, y=POLICIES, **ends), means], rows)


def parts(summary: Summary) -> Spec:
    """What the time of functions is made of, a bar a policy, best policy on top."""
    found = []
    for place, part in enumerate(palette.PARTS):
        if (name := part.replace(" ", "_")) in summary.metrics:
            rows = means_of(summary, name).rename(columns={"mean": "seconds"})
            found.append(rows.assign(part=part, number=place))
    rows = pd.concat(found)[["policy", "label", "part", "number", "seconds"]]
    bars = mark(
        "bar",
        {},
        x=quantity("seconds", title="seconds", axis={"tickCount": 5}),
        y=POLICIES,
        color=by_name("part", palette.PARTS),
        order=quantity("number"),
        tooltip=tooltips("policy", "part", "seconds"),
    )
    return row_a_policy([bars], rows)
