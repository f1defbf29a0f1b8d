"""The charts of an evaluation, by the id of their place: what they are drawn from.

charts.py and line_charts.py say how each is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from env.score.metrics import Shown
from evaluation.episode_metrics import SHARES
from evaluation.statistics import Estimate, performance_profiles
from report import charts, line_charts, palette
from report.digits import low_of, number, p_value, spread, varies
from report.summary import (
    RANKED_BY,
    PolicySummary,
    Summary,
    flow_times,
    values_of,
    wrapped,
)
from report.sweep import Scenarios, axes_of, places
from report.vega import HEIGHT, Spec

DIFFERENCE = "difference"
"""What stands beside the names of metrics for the paired difference in J to the measure."""
FIGURED = (DIFFERENCE, "slowdown", "cost_ratio", "queueing", "container_start")
"""What is in the figure of a sweep, unless it is 0 everywhere; the report has all."""
PROFILE_RATIOS = np.linspace(1.0, 4.0, 121)
"""At which performance profiles are drawn."""


def scenario_charts(summary: Summary, results: pd.DataFrame) -> dict[str, Spec]:
    """All charts of one scenario, by the id of their place on the page."""
    heading = {name: metric.heading for name, metric in summary.metrics.items()}
    names = [row.policy for row in summary.policies]
    times = {name: flow_times(results[results["policy"] == name]).round(4) for name in names}
    profiles = performance_profiles(
        values_of(results, RANKED_BY).loc[names].to_numpy(), PROFILE_RATIOS
    )
    drawn = {
        "ranking": charts.ranking(
            _ranked(summary, results),
            [name for name, metric in summary.metrics.items() if metric.shown == "share"],
        ),
        "profiles": line_charts.profiles(
            dict(zip(names, profiles, strict=True)), PROFILE_RATIOS, summary.kinds
        ),
        "flow-time": line_charts.flow_time(times, SHARES, summary.kinds),
    }
    for place, spent in (("time-against-cost", "cost_ratio"), ("time-against-carbon", "carbon")):
        if spent in heading and (results[spent] > 0).all():
            drawn[place] = charts.time_against(spent, _time_and(summary, spent), heading)
    if len(names) > 1:
        drawn["difference"] = charts.forest(_differences(summary, results))
        rows = _estimated(summary, lambda row: row.against.probability, "share").assign(beyond="")
        drawn["improvement"] = charts.improvement(rows[rows["policy"] != summary.measure])
    if (results["cold_starts"] > 0).any():
        rows = names_of(summary).merge(results[["policy", "cold_starts"]], on="policy")
        drawn["cold-starts"] = charts.cold_starts(rows, heading["cold_starts"])
    met = [name for name in heading if name.startswith("slo_")]
    if met:
        rows = pd.concat(
            _means(summary, name).assign(deadline=float(name.removeprefix("slo_"))) for name in met
        )
        drawn["deadlines"] = line_charts.deadlines(rows, summary.kinds)
    if "execution" in heading:
        drawn["parts"] = charts.parts(_parts(summary))
    return drawn


def names_of(summary: Summary) -> pd.DataFrame:
    """A row a policy: policy, label, kind."""
    return pd.DataFrame(
        {"policy": row.policy, "label": wrapped(row.policy), "kind": row.kind}
        for row in summary.policies
    )


def _estimated(
    summary: Summary, of: Callable[[PolicySummary], Estimate], shown: Shown, sign: str = ""
) -> pd.DataFrame:
    """`names_of` with the columns of `charts.estimates`, where there is a mean."""
    rows: list[tuple[float, float, float, list[float], str, str, bool]] = []
    for row in summary.policies:
        found = summary.tellable(of(row))
        low = found.ci_low if sign else low_of(found)
        ends = (low, found.ci_high) if varies(found) else (found.value, found.value)
        texts = number(found, shown, sign), spread(found, shown, sign)
        rows.append((found.value, *ends, [], *texts, True))
    columns = ("mean", "low", "high", "each", "written", "told", "clear")
    return names_of(summary).join(pd.DataFrame(rows, columns=columns)).dropna(subset="mean")


def _means(summary: Summary, name: str) -> pd.DataFrame:
    """Of a metric, or of the difference to the measure."""
    if name == DIFFERENCE:
        return _estimated(summary, lambda row: row.relative, "share", "+")
    return _estimated(summary, lambda row: row.metrics[name].mean, summary.metrics[name].shown)


def _with_each(rows: pd.DataFrame, summary: Summary, values: pd.DataFrame) -> pd.DataFrame:
    """Few episodes are points of their own; `values` has a row a policy, a column an episode."""
    if not summary.few:
        return rows
    return rows.assign(each=[values.loc[policy].dropna().tolist() for policy in rows["policy"]])


def _differences(summary: Summary, results: pd.DataFrame) -> pd.DataFrame:
    """Rows for `charts.forest`."""
    rows = _means(summary, DIFFERENCE)
    values = values_of(results, RANKED_BY)
    measure = values.loc[summary.measure]
    rows = _with_each(rows, summary, (values - measure) / measure.mean())
    against = {row.policy: row.against for row in summary.policies}
    found = [against[policy] for policy in rows["policy"]]
    rows = rows.assign(
        clear=[summary.is_clear(each) for each in found],
        p=["-" if summary.few else p_value(each.p_value) for each in found],
        better=[summary.told(each.probability, "share") for each in found],
    )
    return charts.folded(rows)


def _time_and(summary: Summary, spent: str) -> pd.DataFrame:
    """Rows for `charts.time_against`."""
    rows = names_of(summary)
    for name in ("slowdown", spent):
        columns = [name, *(f"{name}_{part}" for part in ("low", "high", "told"))]
        rows[columns] = _means(summary, name)[["mean", "low", "high", "told"]]
    return rows


def _ranked(summary: Summary, results: pd.DataFrame) -> pd.DataFrame:
    """Rows for `charts.ranking`; a metric that has no better direction keeps the order of J."""
    parts = []
    for name, metric in summary.metrics.items():
        rows = _with_each(_means(summary, name), summary, values_of(results, name))
        if metric.better is not None:
            rows = rows.sort_values("mean", ascending=metric.better == "lower", kind="stable")
        rows = charts.folded(rows)
        parts.append(rows.assign(metric=name, place=range(len(rows))))
    return pd.concat(parts)


def _parts(summary: Summary) -> pd.DataFrame:
    """Rows for `charts.parts`."""
    found = []
    for place, part in enumerate(palette.PARTS):
        if (name := part.replace(" ", "_")) in summary.metrics:
            rows = _means(summary, name).rename(columns={"mean": "seconds"})
            found.append(rows.assign(part=part, number=place))
    return pd.concat(found)[["policy", "label", "part", "number", "seconds"]]


def sweep_charts(summary: Summary, scenarios: Scenarios) -> dict[str, Any]:
    """By the swept key that is the axis: its panels, and the chart of every metric.

    The first one is the difference to the measure.
    """
    found = {}
    for axis in axes_of(scenarios):
        placed = places(scenarios, axis)
        specs = {
            name: line_charts.sweep(_swept(summary, placed, name), axis, summary.kinds, heading)
            for name, heading in headings_of(summary).items()
        }
        found[axis] = {"panels": list(dict.fromkeys(placed["panel"])), "specs": specs}
    return found


def sweep_figure(summary: Summary, scenarios: Scenarios) -> Spec:
    """What a sweep is mostly about against its first axis: a row a metric, a column a panel."""
    axis = axes_of(scenarios)[0]
    placed = places(scenarios, axis)
    size = {"width": HEIGHT, "height": HEIGHT // 2}
    rows: list[Spec] = []
    whole: Spec = {"datasets": {}, "vconcat": rows}
    for name, heading in headings_of(summary).items():
        found = _swept(summary, placed, name)
        if name not in FIGURED or not found["mean"].any():
            continue
        # The panel is no choice of a reader's here, so that all are drawn.
        own = found.assign(column=found["panel"], panel="")
        chart = line_charts.sweep(own, axis, summary.kinds, heading)
        header = {"labelFontSize": 12, "title": None, "labels": not rows}
        column = {"field": "column", "type": "nominal", "sort": None, "header": header}
        panels = {"layer": chart["layer"], **size}
        rows.append({"facet": {"column": column}, "data": chart["data"], "spec": panels})
        whole["params"] = chart["params"]
        whole["datasets"] |= chart["datasets"]
    return whole


def headings_of(summary: Summary) -> dict[str, str]:
    """What can be drawn against what was swept."""
    return {
        DIFFERENCE: f"{RANKED_BY} against {summary.measure}",
        **{name: metric.heading for name, metric in summary.metrics.items()},
    }


def _swept(summary: Summary, placed: pd.DataFrame, name: str) -> pd.DataFrame:
    """Rows for `line_charts.sweep`."""
    found = []
    for scenario, x, panel in placed.itertuples(index=False):
        found.append(_means(summary.of(scenario), name).assign(x=x, panel=panel))
    return pd.concat(found).drop(columns=["label", "kind"])
