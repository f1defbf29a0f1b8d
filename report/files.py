"""Everything that is made of the results of an evaluation."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Group

from evaluation.results import RUN, metrics_of
from report.drawing import NotDrawn
from report.page import write_report
from report.promise import Judgement, write_promises
from report.summary import means, summarise
from report.summary_files import write_summary
from report.table import summary_table
from report.tensorboard import write_events
from report.trace import write_traces
from report.world import calm, with_weights
from run.arguments import leaves

TOLD = ("policy", "episodes", "seed", "objective")
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
        folder: of the evaluation.
        run: run.json.
        results: rows of results.parquet.
        width: characters of the terminal.
        judgement: who keeps what was promised, where something is.
    """
    metrics = with_weights(metrics_of(run), run, str(folder / RUN))
    summary = summarise(results, metrics, run["config"]["statistics"]["confidence"])
    if quiet := calm(run, results):
        summary = replace(summary, note=f"; {quiet}")
    write_summary(folder, summary)
    if judgement is not None:
        write_promises(folder, judgement)
    write_traces(folder)
    try:
        pictures = write_report(folder, run, summary, judgement)
    except NotDrawn as error:
        pictures = []
        print(f"no report.html and no figures: {error} All results are kept.", file=sys.stderr)
    told = dict(leaves("", {key: run["config"][key] for key in TOLD}))
    write_events(folder, means(summary), pictures, told)
    return summary_table(summary, width)
