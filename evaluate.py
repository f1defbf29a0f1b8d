"""Compares schedulers: `python evaluate.py policy=PATH episodes=100`. See `--help`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from env.base.files import written_whole
from env.workloads.assumptions import printed
from evaluation.evaluate_settings import EvaluateSettings
from evaluation.evaluation_run import Evaluation
from evaluation.players import policy_folders
from evaluation.promise import judge
from evaluation.results import ResultsWriter
from run.command import StopOnSignals, run
from run.ray_session import check_ray

if TYPE_CHECKING:  # takes time to import, and not every command prints
    from rich.console import Console


def check(config: DictConfig) -> None:
    """Refuses what cannot be evaluated, before anything is written."""
    settings = Evaluation(config).settings
    if settings.workers > 1:
        check_ray(settings.ray.address)


def evaluate(config: DictConfig) -> None:
    """One evaluation, from its configuration to its results."""
    from report.files import write_files
    from report.promise import answer, promise_table
    from report.table import console

    evaluation = Evaluation(config)
    settings = evaluation.settings
    for line in (
        *evaluation.notices,
        *printed(evaluation.run["assumptions"]),
        *dict.fromkeys(evaluation.run["samples"].values()),
    ):
        print(line, flush=True)
    folder = Path(HydraConfig.get().runtime.output_dir)
    printed_on = console()
    results = play_to_the_end(evaluation, folder, printed_on)
    if settings.policy:
        keep_trainings(settings, folder)
    metrics, statistics = evaluation.metrics, settings.statistics
    judgement = None
    if settings.keep:
        judgement = judge(results, settings.keep, settings.minimise, metrics, statistics)
    table = write_files(
        folder, evaluation.run, results, metrics, statistics, printed_on.width, judgement
    )
    if judgement is not None:
        print(*answer(judgement), sep="\n")
        printed_on.print(promise_table(judgement))
    printed_on.print(table)
    if (folder / "report.html").exists():
        print(f"report: {folder / 'report.html'}")
    print(f"results: {folder}")


def play_to_the_end(evaluation: Evaluation, folder: Path, console: Console) -> pd.DataFrame:
    """Plays what is not there yet and returns all results.

    Raises:
        SystemExit: a signal asked to stop before the end.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = ("{task.description}", BarColumn(), MofNCompleteColumn())
    writer = ResultsWriter(folder, evaluation.run, evaluation.known, evaluation.metrics)
    total = len(evaluation.known)
    with (
        writer,
        Progress(
            *columns,
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        ) as progress,
        StopOnSignals() as stop,
    ):
        bar = progress.add_task("episodes", total=total, completed=len(writer.done))
        for played in evaluation.play(writer.done):
            writer.add(played)
            progress.update(bar, completed=len(writer.done))
            if stop.asked and len(writer.done) < total:
                raise SystemExit(
                    f"stopped, {len(writer.done)} of {total} episodes are played; "
                    f"go on with resume={folder}"
                )
        return writer.finish()


def keep_trainings(settings: EvaluateSettings, folder: Path) -> None:
    """Keeps the curves of the runs that trained the policies, where they are, for the report."""
    from agents.learned.metrics_file import METRICS
    from report.training_curve import read_training

    found = {
        name: read_training(policy.parent / METRICS)
        for name, policy in policy_folders(settings).items()
    }
    known = [rows.assign(policy=name) for name, rows in found.items() if rows is not None]
    if known:
        with written_whole(folder / METRICS) as temporary:
            pd.concat(known).to_csv(temporary, index=False)


if __name__ == "__main__":
    run(evaluate, "evaluate", check)
