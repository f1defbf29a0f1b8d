"""Everything that is made of the results of an evaluation."""

import csv
import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image
from pydantic_core import to_json
from rich.console import Group

from env.base.files import table_row, written_whole
from evaluation.results import EPISODES, metrics_of
from report.drawing import NotDrawn
from report.page import write_report
from report.promise import Judgement
from report.summary import RANKED_BY, Summary, summarise
from report.table import summary_table
from report.timeline import read_timeline
from report.trace import write_trace
from report.world import calm, with_weights
from run.composing import leaves

HPARAMS = ("policy", "episodes", "seed", "objective")
"""Keys of the configuration by which TensorBoard tells evaluations apart."""


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
    for path in sorted((folder / EPISODES).glob("*.json")):
        (folder / "traces").mkdir(exist_ok=True)
        write_trace(read_timeline(path), folder / "traces" / path.name)
    try:
        pictures = write_report(folder, run, summary, judgement)
    except NotDrawn as error:
        pictures = []
        print(f"no report.html and no figures: {error} All results are kept.", file=sys.stderr)
    write_events(folder, run, summary, pictures)
    return summary_table(summary, width)


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
