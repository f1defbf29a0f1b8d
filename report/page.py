"""report.html: everything an evaluation found on one page that opens without a network.

charts.py, flow_charts.py and episode_charts.py say what is drawn; template/ holds the page around
it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import vl_convert
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from omegaconf import OmegaConf

from agents.learned.metrics_file import METRICS
from env.base.files import written_whole
from env.score.metrics import Shown
from evaluation.episode_metrics import SHARES
from evaluation.promise import Judgement
from evaluation.statistics import LARGEST_RATIO, Comparison, Estimate, performance_profiles
from report import charts, episode_charts, flow_charts, palette, promise, tenants
from report.digits import low_of, number, p_value, spread, varies
from report.recordings import Recording, labels_of, recordings_in
from report.summary import (
    RANKED_BY,
    PolicySummary,
    Summary,
    flow_times,
    values_of,
    wrapped,
)
from report.sweep import axes_of, places
from report.timeline import LEASE, PHASES, Timeline, mean_over, read_timeline
from report.training_curve import read_training
from report.vega import Spec
from report.world import world

TEMPLATE = Path(__file__).parent / "template"
TIME_BINS = 150
"""Columns of a chart of utilisation: about two pixels each on a phone."""
PROFILE_RATIOS = np.linspace(1.0, LARGEST_RATIO, 121)
"""At which performance profiles are drawn."""


def write_report(
    folder: Path,
    run: Mapping[str, Any],
    summary: Summary,
    results: pd.DataFrame,
    judgement: Judgement | None = None,
) -> Path:
    """Makes `report.html` of a finished evaluation.

    Args:
        folder: of the evaluation, with recorded episodes in episodes/ and metrics.csv of the
            learned policy's training, where they are.
        run: run.json.
        summary: of the results.
        results: from `evaluation.results.read_results`.
        judgement: who keeps what was promised, where something is.

    Raises:
        InputError: one line with a recorded episode and what is wrong with it.
    """
    of_scenario = {
        scenario: _charts(summary.of(scenario), own)
        for scenario, own in results.groupby("scenario", sort=False)
    }
    recordings = recordings_in(folder, summary, results)
    label_of = labels_of(run["config"]["workload"], recordings)
    colours = tenants.colours(label_of)
    episodes, tenant_times = _episodes(recordings, run["config"], label_of)
    specs: dict[str, Spec] = {}
    if episodes:
        specs["gantt"] = episode_charts.gantt()
        specs["use-upper"] = specs["use-lower"] = episode_charts.utilisation()
        specs["queue"] = episode_charts.queue_length()
        if label_of:
            specs["tenants-upper"] = specs["tenants-lower"] = episode_charts.tenants(colours)
        if any(each["shared"] for each in episodes):
            specs["shares-upper"] = specs["shares-lower"] = episode_charts.shares(colours)
    if tenant_times is not None:
        rows = _names(summary).merge(tenant_times, on="policy")
        specs["tenant-flow-time"] = charts.tenant_flow_time(rows, colours)
    training = read_training(folder / METRICS)
    if training is not None and len(training):
        specs["learning"] = charts.learning_curve(training)
    if judgement is not None:
        specs |= promise.promise_charts(judgement)
    sweeps = _sweeps(summary, run["scenarios"]) if summary.several else {}
    settings = {
        "specs": specs,
        "scenarios": of_scenario,
        "sweeps": sweeps,
        "upper": _upper(summary, results),
        "heights": palette.PHASE_HEIGHTS,
        "colours": len(palette.SERIES),
        "tenants": colours,
    }
    kinds = {row.policy: row.kind for row in summary.policies}
    environment = Environment(
        loader=FileSystemLoader(TEMPLATE), autoescape=True, undefined=StrictUndefined
    )
    text = environment.get_template("page.html").render(
        run=run,
        config=OmegaConf.to_yaml(OmegaConf.create(run["config"])),
        summary=summary,
        kinds=kinds,
        rival="the best baseline" if kinds[summary.measure] == "baseline" else summary.measure,
        learned=", ".join(name for name, kind in kinds.items() if kind == "learned"),
        charts={*specs, *(name for own in of_scenario.values() for name in own)},
        sweeps=sweeps,
        judgement=judgement,
        promise=promise,
        versus=versus,
        p_value=p_value,
        world=world(run, results),
        lines=charts.styles(summary.ranked),
        phases=palette.PHASES,
        parts=palette.PARTS,
        episodes=episodes,
        left_out=len(recordings) - len(episodes),
        kind_colours=palette.KINDS,
        tenant_colours=colours,
        share_columns=tenants.SHARE_COLUMNS,
        panel_colours=palette.SERIES[:2],
        settings=_json(settings),
        library=Markup(_library()),
    )
    path = folder / "report.html"
    with written_whole(path) as temporary:
        temporary.write_text(text)
    return path


def _upper(summary: Summary, results: pd.DataFrame) -> str:
    """Whose episode is on top: the first policy that was given; of baselines alone the best."""
    learned = results.loc[results["kind"] == "learned", "policy"]
    return str(learned.iloc[0]) if len(learned) else summary.ranked[0]


def versus(summary: Summary) -> dict[tuple[str, str], Comparison]:
    """Every policy of a scenario against every other one; the summary has each pair once."""
    found = {}
    for pair in summary.pairs:
        found[pair.policy, pair.other] = pair.against
        found[pair.other, pair.policy] = pair.against.reversed
    return found


def episode_data(timeline: Timeline, label_of: Mapping[str, str]) -> dict[str, Any]:
    """What the page needs of an episode, as columns: numbers by container, node, tenant and time.

    Times are rounded to milliseconds, utilisation to whole percent, that by tenants to hundredths.

    Args:
        timeline: of the episode.
        label_of: what charts call its tenants.
    """
    containers = timeline.containers
    columns = {
        name: containers[name].tolist()
        for name in (
            "wf_id",
            "fn_id",
            "node",
            "lane",
            "computation",
            "memory_req",
            "memory_alloc",
            "parallelism",
        )
    }
    columns["submission_time"] = containers["submission_time"].round(3).tolist()
    for phase in PHASES:
        seconds = containers[phase.end] - containers[phase.begin]
        columns[phase.name] = seconds.round(3).tolist()
    edges = np.linspace(0.0, timeline.end, TIME_BINS + 1)
    times, waiting = timeline.queue()
    return {
        "end": timeline.end,
        "containers": columns,
        "workflows": [timeline.workflow_label(wf_id) for wf_id in range(len(timeline.templates))],
        "functions": [template.function_names for template in timeline.templates],
        "leases": [
            dict(zip(LEASE.names or (), lease, strict=True)) for lease in timeline.leases.tolist()
        ],
        "nodes": [
            {
                "name": f"{node.server} · N{node.node_id}",
                "lanes": node.lanes,
                "cpu": percent_over(node.times, node.cpu, edges),
                "memory": percent_over(node.times, node.memory, edges),
            }
            for node in timeline.nodes
        ],
        # Pairs, since the keys of objects do not stay in order where they are numbers.
        "tenants": [
            [label, (100 * share).round(2).tolist()]
            for label, share in tenants.capacity_used(timeline, label_of, edges).items()
        ],
        "edges": edges.round(3).tolist(),
        "queue": {"time": times.round(3).tolist(), "waiting": waiting.tolist()},
        "shares": None
        if timeline.shares is None
        else tenants.share_data(timeline.shares, label_of),
    }


def percent_over(times: np.ndarray, values: np.ndarray, edges: np.ndarray) -> list[int]:
    """`mean_over` in whole percent."""
    return (100 * mean_over(times, values, edges)).round().astype(int).tolist()


def _episodes(
    recordings: Sequence[Recording], config: Mapping[str, Any], label_of: Mapping[str, str]
) -> tuple[list[dict[str, Any]], pd.DataFrame | None]:
    """Of the recorded episodes: those that the page holds, and tenants' times of all."""
    most = 1_000_000 * config["report"]["episodes_mb"]
    workflows: list[pd.DataFrame] = []
    embedded: list[dict[str, Any]] = []
    size = 0
    for policy, episode, path in recordings:
        timeline = read_timeline(path)
        if label_of:
            columns = {"tenant": timeline.tenants, "flow_time": timeline.flow_times}
            workflows.append(pd.DataFrame(columns).assign(policy=policy))
        if size < most:
            data = _json(episode_data(timeline, label_of))
            size += len(data)
            shared = timeline.shares is not None
            embedded.append({"policy": policy, "episode": episode, "data": data, "shared": shared})
    times = tenants.mean_flow_times(pd.concat(workflows), label_of) if workflows else None
    return embedded, times


def _charts(summary: Summary, results: pd.DataFrame) -> dict[str, Spec]:
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
        "profiles": charts.profiles(
            dict(zip(names, profiles, strict=True)), PROFILE_RATIOS, summary.ranked
        ),
        "flow-time": flow_charts.flow_time(times, SHARES, summary.ranked),
    }
    for place, spent in (("time-against-cost", "cost_ratio"), ("time-against-carbon", "carbon")):
        if spent in heading and (results[spent] > 0).all():
            drawn[place] = charts.time_against(spent, _time_and(summary, spent), heading)
    if len(names) > 1:
        drawn["difference"] = charts.forest(_differences(summary, results))
        rows = _estimated(summary, lambda row: row.against.probability, "share").assign(beyond="")
        drawn["improvement"] = charts.improvement(rows[rows["policy"] != summary.measure])
    if (results["cold_starts"] > 0).any():
        rows = _names(summary).merge(results[["policy", "cold_starts"]], on="policy")
        drawn["cold-starts"] = charts.cold_starts(rows, heading["cold_starts"])
    met = [name for name in heading if name.startswith("slo_")]
    if met:
        rows = pd.concat(
            _metric(summary, name).assign(deadline=float(name.removeprefix("slo_"))) for name in met
        )
        drawn["deadlines"] = flow_charts.deadlines(rows, summary.ranked)
    if "execution" in heading:
        drawn["parts"] = flow_charts.parts(_parts(summary))
    return drawn


def _names(summary: Summary) -> pd.DataFrame:
    """A row a policy: policy, label, kind."""
    return pd.DataFrame(
        {"policy": row.policy, "label": wrapped(row.policy), "kind": row.kind}
        for row in summary.policies
    )


def _estimated(
    summary: Summary, of: Callable[[PolicySummary], Estimate], shown: Shown, sign: str = ""
) -> pd.DataFrame:
    """`_names` with the columns of `charts.estimates`, where there is a mean."""
    rows: list[tuple[float, float, float, list[float], str, str, bool]] = []
    for row in summary.policies:
        found = summary.tellable(of(row))
        low = found.ci_low if sign else low_of(found)
        ends = (low, found.ci_high) if varies(found) else (found.value, found.value)
        texts = number(found, shown, sign), spread(found, shown, sign)
        rows.append((found.value, *ends, [], *texts, True))
    columns = ("mean", "low", "high", "each", "written", "told", "clear")
    return _names(summary).join(pd.DataFrame(rows, columns=columns)).dropna(subset="mean")


def _metric(summary: Summary, metric: str) -> pd.DataFrame:
    return _estimated(summary, lambda row: row.metrics[metric].mean, summary.metrics[metric].shown)


def _with_each(rows: pd.DataFrame, summary: Summary, values: pd.DataFrame) -> pd.DataFrame:
    """Few episodes are points of their own; `values` has a row a policy, a column an episode."""
    if not summary.few:
        return rows
    return rows.assign(each=[values.loc[policy].dropna().tolist() for policy in rows["policy"]])


def _differences(summary: Summary, results: pd.DataFrame) -> pd.DataFrame:
    """Rows for `charts.forest`."""
    rows = _estimated(summary, lambda row: row.relative, "share", "+")
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
    rows = _names(summary)
    for name in ("slowdown", spent):
        columns = [name, *(f"{name}_{part}" for part in ("low", "high", "told"))]
        rows[columns] = _metric(summary, name)[["mean", "low", "high", "told"]]
    return rows


def _ranked(summary: Summary, results: pd.DataFrame) -> pd.DataFrame:
    """Rows for `charts.ranking`; a metric that has no better direction keeps the order of J."""
    parts = []
    for name, metric in summary.metrics.items():
        rows = _with_each(_metric(summary, name), summary, values_of(results, name))
        if metric.better is not None:
            rows = rows.sort_values("mean", ascending=metric.better == "lower", kind="stable")
        rows = charts.folded(rows)
        parts.append(rows.assign(metric=name, place=range(len(rows))))
    return pd.concat(parts)


def _parts(summary: Summary) -> pd.DataFrame:
    """Rows for `flow_charts.parts`."""
    found = []
    for place, part in enumerate(palette.PARTS):
        if (name := part.replace(" ", "_")) in summary.metrics:
            rows = _metric(summary, name).rename(columns={"mean": "seconds"})
            found.append(rows.assign(part=part, number=place))
    return pd.concat(found)[["policy", "label", "part", "number", "seconds"]]


def _sweeps(summary: Summary, scenarios: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """By the swept key that is the axis: its panels, and the chart of every metric."""
    alone = {scenario: summary.of(scenario) for scenario in summary.scenarios}
    found = {}
    for axis in axes_of(scenarios):
        placed = places(scenarios, axis)
        specs = {}
        for name, metric in summary.metrics.items():
            rows = pd.concat(
                _metric(alone[scenario], name).assign(x=x, panel=panel)
                for scenario, x, panel in placed.itertuples(index=False)
            )
            rows = rows.drop(columns=["label", "kind"])
            specs[name] = flow_charts.sweep(rows, axis, summary.ranked, metric.shown)
        found[axis] = {"panels": list(dict.fromkeys(placed["panel"])), "specs": specs}
    return found


def _json(data: Any) -> Markup:
    """JSON that can stand inside a <script> element."""
    return Markup(json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"))


def _library() -> str:
    """Vega-Embed, Vega-Lite of the version that altair writes for, and Vega."""
    version = alt.SCHEMA_VERSION.rpartition(".")[0]
    return vl_convert.javascript_bundle(vl_version=version)  # type: ignore[call-arg]
