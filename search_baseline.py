"""Tunes a baseline: `python search_baseline.py objective=cost`. See `--help`."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from run.command import Job, Program, run

if TYPE_CHECKING:  # what takes time to import waits until all arguments are known to be good
    from env.learn.training_episodes import TrainingEpisodes
    from env.score.greedy_score import ScoreWeights
    from evaluation.weight_search import SearchCommand, SearchResult

FILE = "greedy_objective_searched.yaml"


def prepared(job: Job) -> Program:
    """The search of a job.

    Raises:
        InputError: something in it cannot be searched.
    """
    from env.base.schema import validated
    from evaluation.weight_search import SearchCommand

    settings = validated(SearchCommand, job.config, "search_baseline")
    return partial(search, job.config, settings, settings.training_episodes())


def search(
    config: dict[str, Any], settings: SearchCommand, episodes: TrainingEpisodes, folder: Path
) -> None:
    """Searches weights and writes them into a file in a folder, which evaluate.py takes."""
    from hydra.core.hydra_config import HydraConfig
    from rich.console import Console
    from rich.progress import Progress

    from env.base.files import written_whole
    from env.workloads.assumptions import printed
    from env.workloads.templates import assumed_of
    from evaluation.weight_search import UNTUNED, WeightSearch
    from run.next_command import evaluate_command

    speed = episodes.cluster.single_core_speed
    for line in printed(assumed_of([(settings.workflow, speed)], "training")):
        print(line)
    console = Console()
    started = time.monotonic()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("episodes", total=settings.search.plays)
        result = WeightSearch(
            episodes,
            settings.objective,
            settings.search,
            settings.seed,
            lambda played: progress.update(task, completed=played),
        ).run()
    seconds = time.monotonic() - started
    file = folder / FILE
    command = " ".join(["python search_baseline.py", *HydraConfig.get().overrides.task])
    with written_whole(file) as temporary:
        temporary.write_text(baseline_file(result, command))
    print(
        f"{result.tried} weights on up to {result.searched} training episodes of seed "
        f"{settings.seed}: {result.played} episodes played in {seconds:.0f} s"
    )
    print(f"J, mean and 95% interval, on {result.searched} further training episodes:")
    for weights, j in ((result.weights, result.j), (UNTUNED, result.untuned)):
        print(f"  {j.value:.3f} ± {j.half_width:.3f}  {shown(weights)}")
    paired = result.difference
    print(f"  {paired.value:+.3f} ± {paired.half_width:.3f}  difference, paired")
    print(f"baseline: {file}")
    print(f"evaluate: {evaluate_command(config, baselines=['greedy_objective', file])}")


def baseline_file(result: SearchResult, command: str) -> str:
    """A file as those of conf/baseline."""
    return (
        f"# Weights found by\n#   {command}\n"
        f"# {result.tried} weights were tried on up to {result.searched} training episodes.\n"
        f"# On as many others J is {result.j.value:.3f}, and {result.untuned.value:.3f} untuned.\n"
        "order: {name: submission}\n"
        f"placement: {{name: greedy_objective, weights: {{{shown(result.weights)}}}}}  # no unit\n"
        "memory: {name: required}\n"
    )


def shown(weights: ScoreWeights) -> str:
    """`finish: 0.05, delay: 1.0, rent: 0.15`."""
    given = weights.model_dump(exclude_defaults=True)
    return ", ".join(f"{name}: {weight}" for name, weight in given.items())


if __name__ == "__main__":
    run(prepared, "search_baseline")
