"""The charts of an evaluation with a row or a point a policy, and what all its charts share."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from env.score.metrics import Shown
from evaluation.statistics import Estimate
from report import palette
from report import vega as vl
from report.digits import low_of, number, p_value, spread, varies
from report.drawing import Spec
from report.summary import RANKED_BY, PolicySummary, Summary, wrapped

ROW = 32
"""Pixels of a policy in charts with a row each: two lines of text."""
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
"""Of the lines of policies, for every round through the colours."""
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")
"""Of their points, likewise."""
DIFFERENCE = "difference"
"""What stands beside the names of metrics for the paired difference in J to the measure."""
FAR = 3.0
"""Times the median distance from 0: how far an axis of differences or means goes at least."""
MUCH_FARTHER = 1.5
"""Times that, beyond which values are folded away: they would set the axis for all others."""
SHOWN = "shown"
"""Parameter of charts with a line a policy: names of the policies to draw."""
POINT = {"filled": True, "size": 90, "opacity": 1}
"""The look of points that have no interval, or one along each axis."""
KIND = vl.by_name("kind", palette.KINDS)
LINES = {"test": "indexof(datum.label, '\\n') > 0", "value": "bottom"}
POLICIES = vl.word("label", sort=None)
POLICIES["axis"] = {
    "labelExpr": "split(datum.label, '\\n')",
    "labelBaseline": {"condition": LINES, "value": "middle"},  # baselines are of the first line
    "labelLimit": 0,
    "labelPadding": 8,  # room for a point at the end of the axis
    "title": None,
}
"""A row a policy, in the order of the data."""


def styles(kinds: Mapping[str, str]) -> list[dict[str, Any]]:
    """Colour, dashes and shape of every policy; baselines also have the colours of no kind."""
    others = [colour for colour in palette.SERIES if colour not in palette.KINDS.values()]
    colours = {kind: [colour] for kind, colour in palette.KINDS.items()}
    colours["baseline"] += others
    before: Counter[str] = Counter()
    looks = []
    for policy, kind in kinds.items():
        turn, place = divmod(before[kind], len(colours[kind]))
        look = {"dash": DASHES[turn % len(DASHES)], "shape": SHAPES[turn % len(SHAPES)]}
        looks.append({"policy": policy, "colour": colours[kind][place], **look})
        before[kind] += 1
    return looks


def headings_of(summary: Summary) -> dict[str, str]:
    """The metrics, and the difference to the measure, as people call them."""
    headings = {name: metric.heading for name, metric in summary.metrics.items()}
    return {DIFFERENCE: f"{RANKED_BY} against {summary.measure}", **headings}


def names_of(summary: Summary) -> pd.DataFrame:
    """A row a policy: policy, label, kind."""
    return pd.DataFrame(
        {"policy": row.policy, "label": wrapped(row.policy), "kind": row.kind}
        for row in summary.policies
    )


def estimated(
    summary: Summary, of: Callable[[PolicySummary], Estimate], shown: Shown, sign: str = ""
) -> pd.DataFrame:
    """`names_of` with an estimate, where there is a mean.

    Returns:
        Beside the names: mean, low and high (equal if there is no interval), each (values of
        episodes, none yet), written (the mean as text), spread (with its interval), clear (True),
        beyond ("", see `folded`).
    """
    rows: list[tuple[Any, ...]] = []
    for row in summary.policies:
        estimate = summary.shown_of(of(row))
        low = estimate.ci_low if sign else low_of(estimate)
        ends = (low, estimate.ci_high) if varies(estimate) else (estimate.value, estimate.value)
        texts = number(estimate, shown, sign), spread(estimate, shown, sign)
        rows.append((estimate.value, *ends, [], *texts, True, ""))
    columns = ("mean", "low", "high", "each", "written", "spread", "clear", "beyond")
    return names_of(summary).join(pd.DataFrame(rows, columns=columns)).dropna(subset="mean")


def means_of(summary: Summary, name: str) -> pd.DataFrame:
    """`estimated` of a metric, or of the difference to the measure."""
    if name == DIFFERENCE:
        return estimated(summary, lambda row: row.relative, "share", "+")
    return estimated(summary, lambda row: row.metrics[name].mean, summary.metrics[name].shown)


def row_a_policy(layers: Sequence[Spec], rows: pd.DataFrame, **more: Any) -> Spec:
    """A chart with the vertical axis `POLICIES`."""
    return vl.layered(layers, rows, ROW * rows["policy"].nunique(), **more)


def intervals(
    rows: pd.DataFrame, x: Spec, *behind: Spec, y: Spec = POLICIES, **titles: str
) -> Spec:
    """A chart of points at `x` in their intervals; hollow where a difference is not clear.

    Args:
        rows: as of `estimated`.
        x, y: of the mean and of the policy.
        behind: layers that are behind the points.
        titles: of further fields that the tooltip tells.
    """
    at = {"y": y, "color": KIND}
    triangle = {"test": "datum.beyond", "value": "triangle-right"}
    means = vl.mark(
        "point",
        {"size": 80, "opacity": 1, "strokeWidth": 2},
        **at,
        x=x,
        shape={"condition": triangle, "value": "circle"},
        fill={"condition": {"test": "datum.clear", **KIND}, "value": {"expr": "back"}},
        tooltip=vl.tooltips("policy", "kind", spread="mean", **titles),
    )
    ends = {"x": x | {"field": "low"}, "x2": {"field": "high"}}
    rules = vl.mark("rule", {"strokeWidth": 2}, **at, **ends)
    beyond = vl.mark("text", {"align": "right", "dx": -9}, x=x, y=y, text={"field": "beyond"})
    layers = [*behind, rules, means, beyond]
    if rows["each"].str.len().any():  # a layer without rows is complained of
        small = {"filled": True, "size": 20, "opacity": 0.6}
        episodes = vl.mark("point", small, **at, x=x | {"field": "each"})
        layers.insert(len(behind), {"transform": [{"flatten": ["each"]}], **episodes})
    return row_a_policy(layers, rows, params=vl.parameters(back="white"))


def folded(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of `estimated` whose axis is not set by a few that lie far outside.

    Of these `beyond` is what is written at the end of the axis, which shows the intervals of all
    others whole.
    """
    means, highs = rows["mean"], rows["high"]
    end = FAR * means[means != 0].abs().median()
    if not means.max() > MUCH_FARTHER * end:
        return rows
    while (cut := highs[(means <= end) & (highs > end)]).size:
        end = cut.max()
    far = means > end
    ends = {name: rows[name].clip(upper=end).where(~far, end) for name in ("low", "high")}
    beyond = rows["written"].where(far, "")
    each = [np.minimum(values, end).tolist() for values in rows["each"]]
    return rows.assign(**ends, each=each, beyond=beyond, mean=means.clip(upper=end))


def along(axis: str, mean: Estimate, shown: Shown = "number") -> dict[str, Any]:
    """A mean on the axis x or y: itself, the ends of its interval, and what tooltips tell of it."""
    ends = {f"{axis}_low": low_of(mean), f"{axis}_high": mean.ci_high}
    return {axis: mean.value, **ends, f"{axis}_spread": spread(mean, shown)}


def crosses(rows: pd.DataFrame, x: Spec, y: Spec, color: Spec) -> tuple[pd.DataFrame, list[Spec]]:
    """Rows of points, x and y of `along`, and layers with their intervals along both axes."""
    at, layers = {"x": x, "y": y, "color": color}, []
    for axis in ("x", "y"):
        low, high = f"{axis}_low", f"{axis}_high"
        rows = rows.assign(**{low: vl.on_axis(rows[low], rows[axis])})
        ends = {axis: vl.quantity(low), f"{axis}2": {"field": high}}
        layers.append(vl.mark("rule", {"opacity": 0.4}, **at | ends))
    return rows, layers


def pareto(points: np.ndarray) -> np.ndarray:
    """(P,) whether no other point is as good in one coordinate and better in the other.

    Args:
        points: (P, 2), less is better.
    """
    no_worse = np.all(points[:, None] <= points[None], axis=2)
    better = np.any(points[:, None] < points[None], axis=2)
    return np.asarray(~np.any(no_worse & better, axis=0))


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
    against = rows["policy"].map({row.policy: row.against for row in summary.policies})
    rows = folded(rows).assign(
        clear=[summary.is_clear(each) for each in against],
        p=["-" if summary.few else p_value(each.p_value) for each in against],
        better=[summary.spread(each.probability, "share") for each in against],
    )
    signed = {"labelExpr": "datum.value ? format(datum.value, '+~%') : '0%'"}
    x = vl.quantity("mean", title="difference in J", axis=signed)
    zero = {"data": {"values": [{"mean": 0}]}, **vl.mark("rule", {"strokeWidth": 1.5}, x=x)}
    return intervals(rows, x, zero, p="p", better="P(better)")


def ranking(summary: Summary) -> Spec:
    """Mean and interval of every policy, best on top.

    A metric that has no better direction keeps the order of J.
    """
    tables = []
    for name, metric in summary.metrics.items():
        rows = _with_each(means_of(summary, name), summary, summary.values(name))
        if metric.better is not None:
            rows = rows.sort_values("mean", ascending=metric.better == "lower", kind="stable")
        tables.append(folded(rows).assign(metric=name, place=range(len(rows))))
    rows = pd.concat(tables)
    shares = [name for name, metric in summary.metrics.items() if metric.shown == "share"]
    written = f"indexof({shares}, metric) < 0 ? datum.label : format(datum.value, '~%')"
    scale = {"zero": False, "nice": True}
    x = vl.quantity("mean", title=None, scale=scale, axis={"labelExpr": written})
    chart = intervals(rows, x, y=POLICIES | {"sort": {"field": "place", "op": "min"}})
    chart["params"] += vl.parameters(metric=RANKED_BY)
    return chart | {"transform": [{"filter": "datum.metric === metric"}]}


def improvement(summary: Summary) -> Spec:
    """How often every policy has a lower J than the measure, best policy on top."""
    rows = estimated(summary, lambda row: row.against.probability, "share")
    rows = rows[rows["policy"] != summary.measure]
    title, quarters = "share of episodes with a lower J", [0, 0.25, 0.5, 0.75, 1]
    x = vl.quantity("mean", title=title, scale={"domain": [0, 1]})
    x["axis"] = {"format": "%", "values": quarters}
    even = {"data": {"values": [{"mean": 0.5}]}, **vl.mark("rule", {"strokeDash": [4, 4]}, x=x)}
    return intervals(rows, x, even)


def time_against(spent: str, summary: Summary) -> Spec:
    """Every policy by its mean slowdown and what it spent, a metric, and their Pareto front.

    Names are placed by template/draw.js, which knows how large the chart is: it fills in text, dx,
    dy and align of the data `names`.
    """
    titles = {"x": headings_of(summary)[spent], "y": headings_of(summary)["slowdown"]}
    rows = names_of(summary)
    for axis, name in (("x", spent), ("y", "slowdown")):
        means = [summary.shown_of(row.metrics[name].mean) for row in summary.policies]
        rows = rows.join(pd.DataFrame(along(axis, mean) for mean in means))
    rows["front"] = pareto(rows[["x", "y"]].to_numpy())
    x, y = (vl.axis(axis, title, rows[axis]) for axis, title in titles.items())
    rows, rules = crosses(rows, x, y, KIND)
    last = (rows["kind"] != "learned") & ~rows["front"]
    rows = rows.loc[last.sort_values(kind="stable").index]
    # Without the page around it a chart has the names that have room beside their points.
    rows = rows.join(_beside(rows))
    tooltip = vl.tooltips("policy", "kind", y_spread=titles["y"], x_spread=titles["x"])
    front = {"transform": [{"filter": "datum.front"}]}
    dashed = {"strokeDash": [4, 4], "color": palette.KINDS["reference"]}
    moved = {name: {"expr": f"datum.{name}"} for name in ("align", "dx", "dy")}
    text = {"baseline": "middle", "fontSize": 11, **moved}
    layers = [
        front | vl.mark("line", dashed, x=x, y=y),
        *rules,
        vl.mark("point", POINT, x=x, y=y, color=KIND, tooltip=tooltip),
        vl.mark("text", text, x=x, y=y, text=vl.word("text")),
    ]
    chart = vl.layered(layers, rows)
    chart["data"]["name"] = "names"
    return chart


def _beside(points: pd.DataFrame) -> pd.DataFrame:
    """text, dx, dy and align of names of points; no text where it would be over an earlier one."""
    at = []
    for name, size in (("x", 420), ("y", 200)):  # pixels, about, as axes end beyond
        values = np.log(points[name]) if vl.is_wide(points[name]) else points[name]
        at.append(size * (values - values.min()) / (np.ptp(values) or 1.0))
    taken = [(x - 6, x + 6, y) for x, y in zip(*at, strict=True)]
    named: list[dict[str, Any]] = []
    for name, x, y in zip(points["policy"], *at, strict=True):
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
    x = vl.quantity("cold_starts", title=title, axis={"tickMinStep": 1})
    count = {"aggregate": "count", "type": "quantitative"}
    discs = vl.mark(
        "circle",
        {"opacity": 0.8},
        x=x,
        y=POLICIES,
        color=KIND,
        size=count | {"legend": None, "scale": {"rangeMin": 20, "rangeMax": 250}},
        tooltip=[vl.word("policy"), vl.quantity("cold_starts"), count | {"title": "episodes"}],
    )
    middle, tick = x | {"aggregate": "median"}, {"thickness": 2, "size": 20}
    return row_a_policy([discs, vl.mark("tick", tick, x=middle, y=POLICIES)], rows)


def tenant_flow_time(rows: pd.DataFrame, colours: Mapping[str, str]) -> Spec:
    """Mean flow time of every tenant's workflows by policy, in rank order of the policies.

    Rows have policy, label, tenant, flow_time (s) and workflows, colours are by tenant.
    """
    x = vl.axis("flow_time", "mean flow time (s)", rows["flow_time"])
    ends = {"x": x | {"aggregate": "min"}, "x2": {"aggregate": "max", "field": "flow_time"}}
    means = vl.mark(
        "point",
        POINT,
        x=x,
        y=POLICIES,
        color=vl.by_name("tenant", colours),
        tooltip=vl.tooltips("policy", "tenant", "flow_time", "workflows"),
    )
    return row_a_policy([vl.mark("rule", {"opacity": 0.5}, y=POLICIES, **ends), means], rows)


def parts(summary: Summary) -> Spec:
    """What the time of functions is made of, a bar a policy, best policy on top."""
    measured = [part for part in palette.PARTS if part.replace(" ", "_") in summary.metrics]
    rows = pd.concat(
        means_of(summary, part.replace(" ", "_")).assign(part=part, number=place)
        for place, part in enumerate(measured)
    )
    rows = rows.rename(columns={"mean": "seconds"})
    rows = rows[["policy", "label", "part", "number", "seconds"]]
    bars = vl.mark(
        "bar",
        {},
        x=vl.quantity("seconds", title="seconds", axis={"tickCount": 5}),
        y=POLICIES,
        color=vl.by_name("part", palette.PARTS),
        order=vl.quantity("number"),
        tooltip=vl.tooltips("policy", "part", "seconds"),
    )
    return row_a_policy([bars], rows)
