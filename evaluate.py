"""Compares schedulers: `python evaluate.py policy=PATH episodes=100`. See `--help`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from run.command import Job, Program, run, stop_on_signals

if TYPE_CHECKING:  # what takes time to import waits until all arguments are known to be good
    import pandas as pd
    from rich.console import Console

    from evaluation.evaluate_settings import EvaluateSettings
    from evaluation.evaluation_run import Evaluation


def prepared(job: Job) -> Program:
    """The evaluation of a job.

    Raises:
        InputError: something in it cannot be evaluated.
    """
    from evaluation.evaluation_run import Evaluation
    from run.ray_session import check_ray

    evaluation = Evaluation(job)
    if evaluation.settings.workers > 1:
        check_ray(evaluation.settings.ray.address)
    return partial(evaluate, evaluation)


def evaluate(evaluation: Evaluation, folder: Path) -> None:
    """Plays an evaluation, and writes its results into a folder."""
    from env.workloads.assumptions import printed
    from report.files import write_files
    from report.promise import answer, judge, promise_table
    from report.table import console

    settings, terminal = evaluation.settings, console()
    assumptions, samples = evaluation.run["assumptions"], evaluation.run["samples"].values()
    for line in (*evaluation.notices, *printed(assumptions), *dict.fromkeys(samples)):
        print(line, flush=True)
    results = play_to_the_end(evaluation, folder, terminal)
    if settings.policy:
        keep_trainings(settings, folder)
    judgement = None
    if settings.keep:
        metrics, confidence = evaluation.metrics, settings.statistics.confidence
        judgement = judge(results, settings.keep, settings.minimise, metrics, confidence)
    table = write_files(folder, evaluation.run, results, terminal.width, judgement)
    if judgement is not None:
        print(*answer(judgement), sep="\n")
        terminal.print(promise_table(judgement))
    terminal.print(table)
    if (folder / "report.html").exists():
        print(f"report: {folder / 'report.html'}")
    print(f"results: {folder}")


def play_to_the_end(evaluation: Evaluation, folder: Path, terminal: Console) -> pd.DataFrame:
    """Plays the episodes that are not played yet and returns the results of all.

    Raises:
        SystemExit: a signal asked to stop before the end.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    from evaluation.results import ResultsWriter

    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    hidden = not terminal.is_terminal
    total = len(evaluation.keys)
    with (
        ResultsWriter(folder, evaluation.run, evaluation.keys, evaluation.metrics) as writer,
        Progress(*columns, console=terminal, transient=True, disable=hidden) as progress,
        stop_on_signals() as stop,
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
    """Writes the curves of the trainings of the policies, where there are some, for the report."""
    import pandas as pd

    from agents.learned.metrics_file import METRICS
    from env.base.files import written_whole
    from evaluation.evaluation_run import policy_folders
    from report.line_charts import read_training

    curves = []
    for name, policy in policy_folders(settings).items():
        rows = read_training(policy.parent / METRICS)
        if rows is not None:
            curves.append(rows.assign(policy=name))
    if curves:
        with written_whole(folder / METRICS) as temporary:
            pd.concat(curves).to_csv(temporary, index=False)


if __name__ == "__main__":
    run(prepared, "evaluate")
