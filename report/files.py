"""Everything that is made of the results of an evaluation."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image
from rich.console import Group

from evaluation.results import RUN, metrics_of
from report.drawing import NotDrawn
from report.page import write_report
from report.promise import Judgement, write_promises
from report.summary import Summary, means, summarise
from report.summary_files import write_summary
from report.table import summary_table
from report.trace import write_traces
from report.world import calm, with_weights
from run.composing import leaves

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
        told = leaves("", {key: run["config"][key] for key in TOLD})
        write_hparams(writer, dict(told), folder)
        for name, value in means(summary).items():
            writer.add_scalar(f"evaluation/{name}", value, global_step=0)
        for picture in pictures:
            name = picture.relative_to(folder / "figures").with_suffix("").as_posix()
            pixels = np.asarray(Image.open(picture))
            writer.add_image(f"evaluation/{name}", pixels, dataformats="HWC")
