"""report.html: everything an evaluation found on one page that opens without a network.

charts.py and episode_charts.py say what is drawn; template/ holds the page around it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from omegaconf import OmegaConf

from agents.learned.metrics_file import METRICS
from env.base.files import written_whole
from evaluation.statistics import Comparison
from report import charts, episode_charts, line_charts, palette, promise, tenants
from report.digits import p_value
from report.drawing import Spec, library
from report.figures import figure, folder_of, write_figures
from report.recordings import Recording, labels_of, recordings_in
from report.summary import Summary
from report.sweep import Scenarios
from report.timeline import PHASES, Timeline, mean_over, read_timeline
from report.training_curve import read_training
from report.world import world
from run.sweep import short_keys

TEMPLATE = Path(__file__).parent / "template"
TIME_BINS = 150
"""Columns of a chart of utilisation: about two pixels each on a phone."""


def write_report(
    folder: Path,
    run: Mapping[str, Any],
    summary: Summary,
    judgement: promise.Judgement | None = None,
) -> list[Path]:
    """Makes `report.html` and `figures/` of a finished evaluation; returns the .png files.

    Args:
        folder: of the evaluation, with recorded episodes in episodes/ and metrics.csv of the
            learned policy's training, where they are.
        run: run.json.
        summary: of the results.
        judgement: who keeps what was promised, where something is.

    Raises:
        InputError: one line with a recorded episode and what is wrong with it.
        NotDrawn: see there; nothing is written then.
    """
    recordings = recordings_in(folder, summary)
    label_of = labels_of(run["config"]["workload"], recordings)
    colours = tenants.colours(label_of)
    episodes, tenant_times, shares = _episodes(recordings, run["config"], label_of)
    specs: dict[str, Spec] = {}
    if tenant_times is not None:
        rows = charts.names_of(summary).merge(tenant_times, on="policy")
        specs["tenant-flow-time"] = charts.tenant_flow_time(rows, colours)
    training = read_training(folder / METRICS)
    if training is not None and len(training):
        specs["learning"] = line_charts.learning_curve(training)
    if judgement is not None:
        specs |= promise.promise_charts(judgement)
    figures = {name: figure(spec, name, "", summary) for name, spec in specs.items()}
    if shares is not None:
        drawn = episode_charts.shares_of(shares, colours)
        figures["shares"] = figure(drawn, "shares", f"episode {recordings[0].episode}", summary)
    sweeps = {}
    if summary.several:
        scenarios = _short(run["scenarios"])
        sweeps = line_charts.sweep_charts(summary, scenarios)
        drawn = line_charts.sweep_figure(summary, scenarios)
        figures["sweep"] = figure(drawn, "sweep", "", summary)
    of_scenario = {}
    for place, scenario in enumerate(summary.scenarios, 1):
        of_scenario[scenario] = line_charts.scenario_charts(summary.of(scenario))
        where = f"{folder_of(place, scenario)}/" if summary.several else ""
        for name, spec in of_scenario[scenario].items():
            figures[where + name] = figure(spec, name, scenario, summary)
    pictures = write_figures(figures, folder / "figures")
    if episodes:
        of_node, of_tenant = episode_charts.utilisation(), episode_charts.tenants(colours)
        specs |= {"gantt": episode_charts.gantt(), "queue": episode_charts.queue_length()}
        specs |= {"use-upper": of_node, "use-lower": of_node}
        if label_of:
            specs |= {"tenants-upper": of_tenant, "tenants-lower": of_tenant}
        if any(each["shared"] for each in episodes):
            both = episode_charts.shares(colours)
            specs |= {"shares-upper": both, "shares-lower": both}
    learned = [name for name, kind in summary.kinds.items() if kind == "learned"]
    settings = {
        "specs": specs,
        "scenarios": of_scenario,
        "sweeps": sweeps,
        # On top is the first policy that was given; of baselines alone the best.
        "upper": min(learned or summary.ranked[:1], key=list(summary.results["policy"]).index),
        "heights": palette.PHASE_HEIGHTS,
        "colours": len(palette.SERIES),
        "tenants": colours,
    }
    environment = Environment(
        loader=FileSystemLoader(TEMPLATE), autoescape=True, undefined=StrictUndefined
    )
    text = environment.get_template("page.html").render(
        run=run,
        config=OmegaConf.to_yaml(OmegaConf.create(run["config"])),
        summary=summary,
        kinds=summary.kinds,
        learned=", ".join(learned),
        charts={*specs, *(name for own in of_scenario.values() for name in own)},
        sweeps=sweeps,
        judgement=judgement,
        promise=promise,
        versus=versus,
        p_value=p_value,
        world=world(run, summary.results),
        lines=charts.styles(summary.kinds),
        headings=charts.headings_of(summary),
        palette=palette,
        episodes=episodes,
        left_out=len(recordings) - len(episodes),
        tenant_colours=colours,
        share_columns=tenants.SHARE_COLUMNS,
        settings=_json(settings),
        library=Markup(library()),
    )
    with written_whole(folder / "report.html") as temporary:
        temporary.write_text(text)
    return pictures


def _short(scenarios: Scenarios) -> Scenarios:
    """The same with the keys as people are told of them."""
    short = short_keys(key for point in scenarios.values() for key in point)
    return {
        name: {short[key]: value for key, value in point.items()}
        for name, point in scenarios.items()
    }


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
    """
    containers = pd.DataFrame(timeline.containers)
    columns = containers.select_dtypes("integer").to_dict("list")
    columns["submission_time"] = containers["submission_time"].round(3).tolist()
    for phase in PHASES:
        seconds = containers[phase.end] - containers[phase.begin]
        columns[phase.name] = seconds.round(3).tolist()
    edges = np.linspace(0.0, timeline.end, TIME_BINS + 1)
    times, waiting = timeline.queue()
    shares = timeline.shares
    return {
        "end": timeline.end,
        "containers": columns,
        "workflows": [timeline.workflow_label(wf_id) for wf_id in range(len(timeline.templates))],
        "functions": [template.function_names for template in timeline.templates],
        "leases": pd.DataFrame(timeline.leases).to_dict("records"),
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
        "shares": None if shares is None else tenants.share_data(shares, label_of),
    }


def percent_over(times: np.ndarray, values: np.ndarray, edges: np.ndarray) -> list[int]:
    """`mean_over` in whole percent."""
    return (100 * mean_over(times, values, edges)).round().astype(int).tolist()


def _episodes(
    recordings: Sequence[Recording], config: Mapping[str, Any], label_of: Mapping[str, str]
) -> tuple[list[dict[str, Any]], pd.DataFrame | None, pd.DataFrame | None]:
    """Of the recorded episodes: those that the page holds, and tenants' times of all.

    The third are rows for `episode_charts.shares_of` of the first episode.
    """
    most = 1_000_000 * config["report"]["episodes_mb"]
    workflows: list[pd.DataFrame] = []
    shares: list[pd.DataFrame] = []
    embedded: list[dict[str, Any]] = []
    size = 0
    for policy, episode, path in recordings:
        timeline = read_timeline(path)
        if label_of:
            columns = {"tenant": timeline.tenants, "flow_time": timeline.flow_times}
            workflows.append(pd.DataFrame(columns).assign(policy=policy))
        shared = timeline.shares is not None
        if timeline.shares is not None and episode == recordings[0].episode:
            shares.append(tenants.share_rows(timeline.shares, label_of).assign(policy=policy))
        if size < most:
            data = _json(episode_data(timeline, label_of))
            size += len(data)
            embedded.append({"policy": policy, "episode": episode, "data": data, "shared": shared})
    times = tenants.mean_flow_times(pd.concat(workflows), label_of) if workflows else None
    return embedded, times, pd.concat(shares) if shares else None


def _json(data: Any) -> Markup:
    """JSON that can stand inside a <script> element."""
    return Markup(json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"))
