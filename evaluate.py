"""Compares schedulers: `python evaluate.py policy=PATH episodes=100`. See `--help`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what takes time to import waits until all arguments are known to be good
    import pandas as pd
    from omegaconf import DictConfig
    from rich.console import Console

    from evaluation.evaluate_settings import EvaluateSettings
    from evaluation.evaluation_run import Evaluation


def prepared(config: DictConfig) -> Callable[[Path], None]:
    """The evaluation of a configuration, which is to be given the folder of its results.

    Raises:
        InputError: something in it cannot be evaluated.
    """
    from evaluation.evaluation_run import Evaluation
    from run.ray_session import check_ray

    evaluation = Evaluation(config)
    if evaluation.settings.workers > 1:
        check_ray(evaluation.settings.ray.address)
    return partial(evaluate, evaluation)


def evaluate(evaluation: Evaluation, folder: Path) -> None:
    """Plays an evaluation, and writes its results into a folder."""
    from env.workloads.assumptions import printed
    from report.files import write_files
    from report.promise import answer, judge, promise_table
    from report.table import console

    settings = evaluation.settings
    for line in (
        *evaluation.notices,
        *printed(evaluation.run["assumptions"]),
        *dict.fromkeys(evaluation.run["samples"].values()),
    ):
        print(line, flush=True)
    printed_on = console()
    results = play_to_the_end(evaluation, folder, printed_on)
    if settings.policy:
        keep_trainings(settings, folder)
    judgement = None
    if settings.keep:
        metrics, confidence = evaluation.metrics, settings.statistics.confidence
        judgement = judge(results, settings.keep, settings.minimise, metrics, confidence)
    table = write_files(folder, evaluation.run, results, printed_on.width, judgement)
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

    from evaluation.results import ResultsWriter
    from run.command import StopOnSignals

    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    writer = ResultsWriter(folder, evaluation.run, evaluation.keys, evaluation.metrics)
    total = len(evaluation.keys)
    with (
        writer,
        Progress(
            *columns, console=console, transient=True, disable=not console.is_terminal
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
    import pandas as pd

    from agents.learned.metrics_file import METRICS
    from env.base.files import written_whole
    from evaluation.players import policy_folders
    from report.line_charts import read_training

    found = {
        name: read_training(policy.parent / METRICS)
        for name, policy in policy_folders(settings).items()
    }
    known = [rows.assign(policy=name) for name, rows in found.items() if rows is not None]
    if known:
        with written_whole(folder / METRICS) as temporary:
            pd.concat(known).to_csv(temporary, index=False)


if __name__ == "__main__":
    from run.command import run

    run(prepared, "evaluate")
