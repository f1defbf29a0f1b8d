"""Everything that is made of the results of an evaluation."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from rich.table import Table

from env.score.metrics import Metric
from evaluation.promise import Judgement
from evaluation.results import RUN
from evaluation.statistics import StatisticsSettings
from report.figures import draw_figures
from report.page import write_report
from report.plots import save
from report.promise import draw_promises, write_promises
from report.recordings import recordings_in
from report.share_figures import draw_shares
from report.summary import means, summarise, write_summary
from report.table import summary_table
from report.tensorboard import write_events
from report.trace import write_traces
from report.world import with_weights
from run.hparams import flattened

TOLD = ("policy", "episodes", "seed", "objective")
"""Keys of the configuration by which TensorBoard tells evaluations apart."""


def write_files(
    folder: Path,
    run: Mapping[str, Any],
    results: pd.DataFrame,
    metrics: Mapping[str, Metric[Any]],
    statistics: StatisticsSettings,
    width: int,
    judgement: Judgement | None = None,
) -> Table:
    """Writes summaries, figures, TensorBoard events, traces, the report; returns what is printed.

    Args:
        folder: of the evaluation.
        run: run.json.
        results: from `evaluation.results.read_results`.
        metrics: of its rows, by name.
        statistics: how intervals are made.
        width: characters of the terminal.
        judgement: who keeps what was promised, where something is.
    """
    summary = summarise(results, with_weights(metrics, run, str(folder / RUN)), statistics)
    write_summary(folder, summary)
    pictures = draw_figures(summary, results, run["scenarios"], folder / "figures")
    if judgement is not None:
        write_promises(folder, judgement)
        picture = save(draw_promises(judgement), "promise", folder / "figures")
        pictures.append(picture)
    recordings = recordings_in(folder, summary, results)
    shares = draw_shares(recordings, run["config"]["workload"])
    if shares is not None:
        pictures.append(save(shares, "shares", folder / "figures"))
    told = flattened({key: run["config"][key] for key in TOLD})
    write_events(folder, means(summary), pictures, told)
    write_traces(folder)
    write_report(folder, run, summary, results, judgement)
    return summary_table(summary, width)
