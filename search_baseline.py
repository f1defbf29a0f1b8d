"""Tunes a baseline: `python search_baseline.py objective=cost`. See `--help`."""

import time
from pathlib import Path
from typing import Annotated, Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig
from pydantic import Field

from env.base.errors import InputError
from env.base.files import written_whole
from env.base.schema import Strict, validated
from env.learn.world import TrainingEpisodes
from env.score.greedy_score import ScoreWeights
from env.score.reward import Objective
from env.workloads.assumptions import printed
from env.workloads.source import is_trace
from env.workloads.templates import assumed_of
from evaluation.weight_search import UNTUNED, Found, SearchSettings, WeightSearch
from run.command import plain, run
from run.next_command import evaluate_command

FILE = "greedy_objective_searched.yaml"


class SearchCommand(Strict):
    """Everything `search_baseline.py` is told; conf/search_baseline.yaml explains each."""

    seed: Annotated[int, Field(ge=0, lt=2**32)]
    name: str | None  # checked by `check_run_name`
    search: SearchSettings
    objective: Objective
    cluster: dict[str, Any]
    workflow: dict[str, Any]
    workload: dict[str, Any]
    variation: dict[str, Any]


def episodes_of(told: SearchCommand) -> TrainingEpisodes:
    """The training episodes that are played.

    Raises:
        InputError: there are none, or they are requests of a trace, whose work is drawn.
    """
    if is_trace(told.workload):
        raise InputError("workload: weights are searched on workflows, found a trace")
    groups = ("cluster", "workflow", "workload", "variation")
    return TrainingEpisodes({group: getattr(told, group) for group in groups})


def check(config: DictConfig) -> None:
    """Refuses what cannot be searched, before anything is written."""
    episodes_of(validated(SearchCommand, plain(config), "search_baseline"))


def search(config: DictConfig) -> None:
    """One search, from its configuration to a file that evaluate.py takes."""
    from rich.console import Console
    from rich.progress import Progress

    told = validated(SearchCommand, plain(config), "search_baseline")
    episodes = episodes_of(told)
    speed = episodes.cluster.single_core_speed
    for line in printed(assumed_of([(told.workflow, speed)], "training")):
        print(line)
    console = Console()
    started = time.monotonic()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("episodes", total=told.search.plays)
        found = WeightSearch(
            episodes,
            told.objective,
            told.search,
            told.seed,
            lambda played: progress.update(task, completed=played),
        ).run()
    seconds = time.monotonic() - started
    file = Path(HydraConfig.get().runtime.output_dir) / FILE
    command = " ".join(["python search_baseline.py", *HydraConfig.get().overrides.task])
    with written_whole(file) as temporary:
        temporary.write_text(baseline_file(found, command))
    print(
        f"{found.tried} weights on up to {found.searched} training episodes of seed {told.seed}: "
        f"{found.played} episodes played in {seconds:.0f} s"
    )
    print(f"J, mean and 95% interval, on {found.searched} further training episodes:")
    for weights, j in ((found.weights, found.j), (UNTUNED, found.untuned)):
        print(f"  {j.value:.3f} ± {j.half_width:.3f}  {shown(weights)}")
    paired = found.difference
    print(f"  {paired.value:+.3f} ± {paired.half_width:.3f}  difference, paired")
    print(f"baseline: {file}")
    print(f"evaluate: {evaluate_command(plain(config), baselines=['greedy_objective', file])}")


def baseline_file(found: Found, command: str) -> str:
    """A file as those of conf/baseline."""
    return (
        f"# Weights found by\n#   {command}\n"
        f"# {found.tried} weights were tried on up to {found.searched} training episodes.\n"
        f"# On as many others J is {found.j.value:.3f}, and {found.untuned.value:.3f} untuned.\n"
        "order: {name: submission}\n"
        f"placement: {{name: greedy_objective, weights: {{{shown(found.weights)}}}}}  # no unit\n"
        "memory: {name: required}\n"
    )


def shown(weights: ScoreWeights) -> str:
    """`finish: 0.05, delay: 1.0, rent: 0.15`."""
    given = weights.model_dump(exclude_defaults=True)
    return ", ".join(f"{name}: {weight}" for name, weight in given.items())


if __name__ == "__main__":
    run(search, "search_baseline", check)
