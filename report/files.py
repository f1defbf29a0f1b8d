"""Everything that is made of the results of an evaluation: its page, figures and summaries.

report.html is one page that opens without a network. charts.py, line_charts.py and
episode_charts.py say what is drawn on it; template/ holds the page around them.
"""

import csv
import json
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from omegaconf import OmegaConf
from PIL import Image
from pydantic_core import to_json
from rich.console import Group

from agents.learned.metrics_file import METRICS
from env.base.files import table_row, written_whole
from env.score.reward import Objective
from evaluation.contest import recording_name
from evaluation.results import EPISODES, metrics_of
from report import charts, digits, episode_charts, line_charts, palette, promise, tenants
from report.drawing import NotDrawn, Spec, library
from report.figures import folder_of, write_figures
from report.promise import Judgement
from report.summary import RANKED_BY, Summary, summarise
from report.table import summary_table
from report.timeline import PHASES, Timeline, mean_over, read_timeline
from report.trace import write_trace
from report.world import calm, with_weights, world
from run.composing import leaves

TEMPLATE = Path(__file__).parent / "template"
TIME_BINS = 150
"""Columns of a chart of utilisation: about two pixels each on a phone."""
HPARAMS = ("policy", "episodes", "seed", "objective")
"""Keys of the configuration by which TensorBoard tells evaluations apart."""
Recording = tuple[str, str, Path]
"""A policy, what people call the episode that it played, and the file."""


def write_files(
    folder: Path,
    run: Mapping[str, Any],
    results: pd.DataFrame,
    width: int,
    judgement: Judgement | None = None,
) -> Group:
    """Writes summaries, figures, TensorBoard events, traces, the report; returns what is printed.

    Args:
        folder, run, results: of the evaluation; run.json, and rows of results.parquet.
        width: characters of the terminal.
        judgement: who keeps what was promised, where something is.
    """
    metrics = with_weights(metrics_of(run), run)
    summary = summarise(results, metrics, run["config"]["statistics"]["confidence"])
    if quiet := calm(run, results):
        summary = replace(summary, note=f"; {quiet}")
    write_summary(folder, summary)
    if judgement is not None:
        write_promises(folder, judgement)
    try:
        pictures = write_report(folder, run, summary, judgement)
    except NotDrawn as error:
        pictures = []
        print(f"no report.html and no figures: {error} All results are kept.", file=sys.stderr)
    write_events(folder, run, summary, pictures)
    return summary_table(summary, width)


def recordings_in(folder: Path, summary: Summary) -> Iterator[Recording]:
    """Those in the folder of an evaluation: by episode, best policy first."""
    episodes = summary.results[["seed", "episode"]].drop_duplicates()
    for seed, episode in episodes.sort_values(["seed", "episode"]).itertuples(index=False):
        for policy in summary.kinds:
            path = folder / EPISODES / f"{recording_name(policy, seed, episode)}.json"
            if path.is_file():
                yield policy, f"{episode} of seed {seed}", path


def write_report(
    folder: Path, run: Mapping[str, Any], summary: Summary, judgement: Judgement | None = None
) -> list[Path]:
    """Makes `report.html`, `figures/` and `traces/` of a finished evaluation.

    The folder has recorded episodes in episodes/ and metrics.csv of the learned policies'
    trainings, where there are some. The other arguments are as of `write_files`.

    Returns:
        The .png files.

    Raises:
        InputError: one line with a recorded episode and what is wrong with it.
        NotDrawn: see there; only traces are written then.
    """
    recordings = list(recordings_in(folder, summary))
    of_episodes = {episode: path for _, episode, path in recordings}.values()
    label_of = tenants.labels_of(run["config"]["workload"], of_episodes)
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
        figures["shares"] = (of_first, f"episode {recordings[0][1]}")
    sweeps = {}
    if summary.several:
        sweeps = line_charts.sweep_charts(summary, run["scenarios"])
        objective = Objective.model_validate(run["config"]["objective"])
        figures["sweep"] = (line_charts.sweep_figure(sweeps, objective), "")
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
    environment.globals.update(charts=charts, digits=digits, palette=palette, promise=promise)
    text = environment.get_template("page.html").render(
        run=run,
        config=OmegaConf.to_yaml(OmegaConf.create(run["config"])),
        summary=summary,
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
    """The recorded episodes that the page holds; the traces of all are written.

    Returns:
        Beside them, of all recordings: mean flow times of tenants, and of the first episode rows
        for `episode_charts.shares_of`, where there are some.
    """
    flow_times, shares, embedded, size = [], [], [], 0
    for policy, episode, path in recordings:
        timeline = read_timeline(path, label_of)
        trace = path.parents[1] / "traces" / path.name
        trace.parent.mkdir(exist_ok=True)
        write_trace(timeline, trace)
        if label_of:
            labels = [label_of[tenant] for tenant in timeline.tenants]
            columns = {"tenant": labels, "flow_time": timeline.flow_times}
            flow_times.append(pd.DataFrame(columns).assign(policy=policy))
        if timeline.shares is not None and episode == recordings[0][1]:
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


def write_events(
    folder: Path, run: Mapping[str, Any], summary: Summary, pictures: Sequence[Path]
) -> None:
    """For TensorBoard: pictures of figures/ as images, means of metrics, what was evaluated.

    Events that an earlier part of the run left are replaced.
    """
    # PyTorch takes seconds to import.
    from torch.utils.tensorboard import SummaryWriter

    from run.hparams import write_hparams

    for old in folder.glob("events.out.tfevents.*"):
        old.unlink()
    with SummaryWriter(str(folder)) as writer:
        config = leaves("", {key: run["config"][key] for key in HPARAMS})
        write_hparams(writer, dict(config), folder)
        for row in summary.policies:
            # Of several scenarios each has a place of its own: J/lease.step=60/first_fit.
            where = "/".join([*[row.scenario] * summary.several, row.policy])
            for name, each in row.metrics.items():
                if not math.isnan(each.mean.value):
                    writer.add_scalar(f"evaluation/{name}/{where}", each.mean.value, global_step=0)
        for picture in pictures:
            name = picture.relative_to(folder / "figures").with_suffix("").as_posix()
            pixels = np.asarray(Image.open(picture))
            writer.add_image(f"evaluation/{name}", pixels, dataformats="HWC")


def write_summary(folder: Path, summary: Summary) -> None:
    """Writes `summary.json`, `summary.csv` and `summary.md`: the same numbers for three readers."""
    policies, pairs = list(map(asdict, summary.policies)), []
    for scenario in summary.scenarios:
        own = summary.of(scenario)
        for one, other in combinations([row.policy for row in own.policies], 2):
            pair = {"policy": one, "other": other, "against": own.versus(one, other)}
            pairs.append({"scenario": scenario, **pair})
    overall = {"overall": list(map(asdict, summary.overall))} if summary.several else {}
    for row in overall.get("overall", (*policies, *pairs)):
        del row["scenario"]
    keys = ("name", "unit", "better", "formula")
    tree = {
        "title": summary.title,
        "measure": summary.measure,
        "first": summary.first,
        "ranked_by": RANKED_BY,
        "confidence": summary.confidence,
        "metrics": [{key: getattr(each, key) for key in keys} for each in summary.metrics.values()],
        **overall,
        "policies": policies,
        "pairs": pairs,
    }
    write_json(folder / "summary.json", tree)
    rows = pd.json_normalize(policies)  # metrics.J.mean.ci_low; means themselves are .value
    rows.columns = rows.columns.str.removeprefix("metrics.").str.removesuffix(".value")
    rows.columns = rows.columns.str.replace(".", "_")
    cells = map(table_row, rows.itertuples(index=False, name=None))
    with (
        written_whole(folder / "summary.csv") as temporary,
        temporary.open("w", newline="") as file,
    ):
        csv.writer(file).writerows([rows.columns, *cells])
    with written_whole(folder / "summary.md") as temporary:
        temporary.write_text(markdown(summary))


def markdown(summary: Summary) -> str:
    """The ranking as a table for documents, with what its columns mean below."""
    measure, metrics = as_text(summary.measure), summary.metrics
    headings = ["policy", f"J against {measure}", "P(better)"]
    headings += [f"speedup over {as_text(summary.first)}"]
    headings += [metric.heading for metric in metrics.values()]
    lines = [f"# {summary.title}", "", as_text(summary.finding), ""]
    scenario = ["scenario"] * summary.several
    lines += [row_of([*scenario, *headings]), row_of(["---"] * len([*scenario, *headings]))]
    for each in summary.policies:
        cells = [
            *[as_text(each.scenario)] * summary.several,
            as_text(each.label),
            summary.spread(each.relative, "share", "+"),
            summary.spread(each.against.probability, "share"),
            summary.spread(each.speedup),
        ]
        cells += [summary.spread(each.metrics[name].mean, metrics[name].shown) for name in metrics]
        lines.append(row_of(cells))
    lines += ["", f"{as_text(summary.difference_is)} {summary.means_are}", ""]
    for metric in metrics.values():
        better = "" if metric.better is None else f"; {metric.better} is better"
        lines.append(f"- {metric.heading}: {metric.formula}{better}")
    return "\n".join(lines) + "\n"


def as_text(name: str) -> str:
    """A name in Markdown, where nothing in it is mark-up; `_` within a word is none."""
    return re.sub(r"[\\`*\[\]<>|~&$]|(?<![^\W_])_|_(?![^\W_])", r"\\\g<0>", name)


def row_of(cells: Sequence[str]) -> str:
    """A row of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


def write_promises(folder: Path, judgement: Judgement) -> None:
    """Writes `promise.json`."""
    tree = {
        "keep": {each.metric: f"{each.comparator}{each.bound:g}" for each in judgement.promises},
        "minimise": judgement.minimised,
        "confidence": judgement.confidence,
        "best": judgement.best,
        "rows": judgement.rows,
    }
    write_json(folder / "promise.json", tree)


def write_json(path: Path, tree: Mapping[str, Any]) -> None:
    """Writes JSON, which has null for NaN; dataclasses are objects."""
    text = to_json(tree, indent=2, inf_nan_mode="null")
    with written_whole(path) as temporary:
        temporary.write_bytes(text + b"\n")
