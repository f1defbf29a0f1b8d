"""report.html: everything an evaluation found on one page that opens without a network.

charts.py and episode_charts.py say what is drawn; template/ holds the page around it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from omegaconf import OmegaConf

from agents.learned.metrics_file import METRICS
from env.base.files import written_whole
from evaluation.contest import recording_name
from evaluation.results import EPISODES
from report import charts, digits, episode_charts, line_charts, palette, promise, tenants
from report.drawing import Spec, library
from report.figures import folder_of, write_figures
from report.summary import Summary
from report.timeline import PHASES, Timeline, mean_over, read_timeline
from report.world import world

TEMPLATE = Path(__file__).parent / "template"
TIME_BINS = 150
"""Columns of a chart of utilisation: about two pixels each on a phone."""


class Recording(NamedTuple):
    """A policy's recording of an episode, what people call that, and the file."""

    policy: str
    episode: str
    path: Path


def recordings_in(folder: Path, summary: Summary) -> Iterator[Recording]:
    """Those in the folder of an evaluation: by episode, best policy first."""
    episodes = summary.results[["seed", "episode"]].drop_duplicates()
    for seed, episode in episodes.sort_values(["seed", "episode"]).itertuples(index=False):
        for policy in summary.kinds:
            path = folder / EPISODES / f"{recording_name(policy, seed, episode)}.json"
            if path.is_file():
                yield Recording(policy, f"{episode} of seed {seed}", path)


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
    recordings = list(recordings_in(folder, summary))
    by_episode = {recording.episode: recording.path for recording in recordings}
    label_of = tenants.labels_of(run["config"]["workload"], by_episode.values())
    colours = tenants.colours(label_of)
    episodes, flow_times, shares = _episodes(recordings, run["config"], label_of)
    once: dict[str, Spec] = {}
    if flow_times is not None:
        rows = charts.names_of(summary).merge(flow_times, on="policy")
        once["tenant-flow-time"] = charts.tenant_flow_time(rows, colours)
    training = line_charts.read_training(folder / METRICS)
    if training is not None and len(training):
        once["learning"] = line_charts.learning_curve(training)
    if judgement is not None:
        once |= promise.promise_charts(judgement)
    figures = {name: (spec, "") for name, spec in once.items()}
    if shares is not None:
        of_first = episode_charts.shares_of(shares, colours)
        figures["shares"] = (of_first, f"episode {recordings[0].episode}")
    sweeps = {}
    if summary.several:
        sweeps = line_charts.sweep_charts(summary, run["scenarios"])
        figures["sweep"] = (line_charts.sweep_figure(sweeps), "")
    of_scenario = {}
    for place, scenario in enumerate(summary.scenarios, 1):
        of_scenario[scenario] = line_charts.scenario_charts(summary.of(scenario))
        where = f"{folder_of(place, scenario)}/" if summary.several else ""
        figures |= {where + name: (spec, scenario) for name, spec in of_scenario[scenario].items()}
    pictures = write_figures(figures, summary, folder / "figures")
    if episodes:
        once |= episode_charts.charts_of(colours, shared=shares is not None)
    learned = [name for name, kind in summary.kinds.items() if kind == "learned"]
    settings = {
        "specs": once,
        "scenarios": of_scenario,
        "sweeps": sweeps,
        # On top is the first policy that was given; of baselines alone the best.
        "upper": min(learned or list(summary.kinds)[:1], key=list(summary.results["policy"]).index),
        "heights": palette.PHASE_HEIGHTS,
        "killed": palette.KILLED_SHARE,
        "colours": len(palette.SERIES),
        "tenants": colours,
    }
    environment = Environment(
        loader=FileSystemLoader(TEMPLATE), autoescape=True, undefined=StrictUndefined
    )
    environment.globals |= {
        each.__name__.rpartition(".")[2]: each for each in (charts, digits, palette, promise)
    }
    text = environment.get_template("page.html").render(
        run=run,
        config=OmegaConf.to_yaml(OmegaConf.create(run["config"])),
        summary=summary,
        kinds=summary.kinds,
        learned=", ".join(learned),
        drawn={*once, *(name for specs in of_scenario.values() for name in specs)},
        sweeps=sweeps,
        judgement=judgement,
        world=world(run, summary.results),
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


def episode_data(timeline: Timeline, label_of: Mapping[str, str]) -> dict[str, Any]:
    """What the page needs of an episode, as columns: numbers by container, node, tenant and time.

    Times are rounded to milliseconds, utilisation to whole percent, that by tenants to hundredths.
    """
    containers = timeline.containers
    columns = containers.select_dtypes("integer").to_dict("list")
    columns["killed"] = containers["killed"].tolist()
    columns["submission_time"] = containers["submission_time"].round(3).tolist()
    for phase in PHASES:
        seconds = containers[phase.end] - containers[phase.begin]
        columns[phase.name] = seconds.round(3).tolist()
    edges = np.linspace(0.0, timeline.end, TIME_BINS + 1)
    times, waiting = timeline.in_phase("waiting")
    shares = timeline.shares
    return {
        "end": timeline.end,
        "containers": columns,
        "workflows": [timeline.workflow_label(wf_id) for wf_id in range(len(timeline.templates))],
        "functions": [template.function_names for template in timeline.templates],
        "leases": timeline.leases.to_dict("records"),
        "outages": timeline.outages.to_dict("records"),
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
            for label, share in tenants.capacity_used(timeline, edges).items()
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
    """The recorded episodes that the page holds.

    Returns:
        Beside them, of all recordings: mean flow times of tenants, and of the first episode rows
        for `episode_charts.shares_of`, where there are some.
    """
    flow_times, shares, embedded, size = [], [], [], 0
    for policy, episode, path in recordings:
        timeline = read_timeline(path, label_of)
        if label_of:
            labels = [label_of[tenant] for tenant in timeline.tenants]
            columns = {"tenant": labels, "flow_time": timeline.flow_times}
            flow_times.append(pd.DataFrame(columns).assign(policy=policy))
        if timeline.shares is not None and episode == recordings[0].episode:
            shares.append(tenants.share_rows(timeline.shares, label_of).assign(policy=policy))
        if size < 1_000_000 * config["report"]["episodes_mb"]:
            data = _json(episode_data(timeline, label_of))
            size += len(data)
            embedded.append({"policy": policy, "episode": episode, "data": data})
    means = None
    if flow_times:
        of_tenant = pd.concat(flow_times).groupby(["policy", "tenant"], sort=False)["flow_time"]
        means = of_tenant.agg(flow_time="mean", workflows="size").reset_index()
    return embedded, means, pd.concat(shares) if shares else None


def _json(data: Any) -> Markup:
    """JSON that can stand inside a <script> element."""
    return Markup(json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"))
