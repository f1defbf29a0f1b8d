"""Compares schedulers: `python evaluate.py policy=PATH episodes=100`. See `--help`."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pandas as pd
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from pydantic import Field, field_validator

from agents.baseline import make_baselines
from agents.scheduler import Scheduler
from env.base.errors import InputError
from env.base.files import read_bytes, written_whole
from env.base.schema import Strict, validated
from env.learn.layouts import AgentsConfig
from env.score.optimum import OptimumSettings
from env.score.reward import Objective, check_world
from env.sim.cluster_file import cluster_from_config
from env.sim.hardware import ClusterConfig
from env.workloads.assumptions import printed
from env.workloads.generator import EpisodeWorkload, WorkloadConfig, WorkloadGenerator
from env.workloads.templates import WorkflowConfig, assumed_of
from evaluation.contest import Contest, EpisodeCount, Played, Task, play_all
from evaluation.fingerprint import fingerprint
from evaluation.queued_evaluation import CaseRow, QueuedEvaluation
from evaluation.queued_evaluation import Task as QueuedTask
from evaluation.results import ResultsWriter, check_resume, describe, episode_layout
from evaluation.statistics import StatisticsSettings
from report.queued.rows import queued_layout
from run.command import StopOnSignals, plain, run
from run.dispatch_settings import Immediate
from run.ray_session import Address, check_address

if TYPE_CHECKING:  # takes time to import, and not every command prints
    from rich.console import Console
    from rich.table import Table

Seed = Annotated[int, Field(ge=0, lt=2**32)]
# The folder of a run: the one that is resumed, or a new one (conf/evaluate.yaml).
OmegaConf.register_new_resolver(
    "given_or", lambda given, new: new if given is None else given, replace=True
)


class RayAddress(Strict):
    """Where processes that play are (conf/evaluate.yaml)."""

    address: Address | None


class ReportSettings(Strict):
    """What is in report.html (conf/evaluate.yaml)."""

    episodes_mb: Annotated[float, Field(ge=0, le=1000)]


class Command(Strict):
    """What `evaluate.py` is told whatever the dispatch; conf/evaluate.yaml explains each."""

    policy: str | None
    resume: str | None
    baselines: tuple[str, ...]
    episodes: EpisodeCount
    seed: Annotated[tuple[Seed, ...], Field(min_length=1)]
    record: Annotated[int, Field(ge=0)]
    workers: Annotated[int, Field(ge=1, le=10_000)]
    ray: RayAddress
    statistics: StatisticsSettings
    report: ReportSettings
    optimum: OptimumSettings | None
    agents: dict[str, Any] | None = None
    objective: Objective
    cluster: dict[str, Any]
    workflow: dict[str, Any]
    workload: dict[str, Any]

    @field_validator("seed", mode="before")
    @classmethod
    def _several(cls, seed: Any) -> Any:
        if isinstance(seed, int) and not isinstance(seed, bool):
            return [seed]
        if isinstance(seed, list | tuple):
            return seed
        raise ValueError(f"{seed!r} is found, a whole number or a list of them is allowed")

    @field_validator("seed")
    @classmethod
    def _distinct(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(seeds)) < len(seeds):
            raise ValueError(f"a seed is given twice in {list(seeds)}")
        return seeds


class EvaluateSettings(Command):
    """Everything it is told where functions are placed at once."""

    dispatch: Immediate
    trace: None = None

    @field_validator("trace", mode="before")
    @classmethod
    def _queued_alone(cls, trace: Any) -> None:
        if trace is not None:
            raise ValueError("requests of single functions need dispatch=queued; else it is null")


class Evaluation:
    """What a configuration comes to: the contest, its episodes, and what run.json says of it."""

    units = "episodes"

    def __init__(self, config: DictConfig) -> None:
        told = plain(config)
        self.settings = settings = validated(EvaluateSettings, told, "evaluate")
        cluster = cluster_from_config(settings.cluster, "cluster")
        self.workloads = workloads_of(settings, cluster)
        schedulers = schedulers_of(settings, cluster)
        self.players = tuple(scheduler.name for scheduler in schedulers)
        self.notice = other_objective(schedulers[0], settings.objective)
        self.contest = Contest(schedulers, cluster, settings.objective, settings.optimum)
        self.layout = episode_layout()
        self.total = len(self.players) * len(self.workloads)
        self.run = describe(
            told,
            settings.seed,
            settings.episodes,
            fingerprint(self.workloads.values()),
            typed_command(),
            policy_hash(settings.policy),
        )
        speed = cluster.single_core_speed
        self.run["assumptions"] = assumed_of(settings.workflow, speed, "evaluation")
        if settings.resume is not None:
            known = {(name, *key) for name in self.players for key in self.workloads}
            check_resume(Path(settings.resume), self.run, self.layout, known)

    def play(self, done: Container[tuple[str, int, int]]) -> Iterator[Played]:
        """Plays what has to be played still, in any order."""
        tasks = [
            Task(seed, episode, self.players, workload, record=episode < self.settings.record)
            for (seed, episode), workload in self.workloads.items()
        ]
        left = [task for task in (task.without(done) for task in tasks) if task.policies]
        return play_all(self.contest, left, self.settings.workers, self.settings.ray.address)


class QueuedRun:
    """The same where functions wait in a central queue."""

    units = "cases"

    def __init__(self, config: DictConfig) -> None:
        told = plain(config)
        # What these say is checked with all that depends on it.
        rest = {key: value for key, value in told.items() if key not in ("dispatch", "trace")}
        self.settings = settings = validated(Command, rest, "evaluate")
        if settings.policy is not None:
            one_thread()
        self.contest = contest = QueuedEvaluation(told)
        self.players = contest.cases
        self.layout = queued_layout(contest.metrics)
        self.total = len(contest.tasks)
        self.run = describe(
            told,
            contest.settings.seeds,
            settings.episodes if contest.trace is None else 1,
            contest.workload_sha256,
            typed_command(),
            policy_hash(settings.policy),
        )
        if contest.trace is None:
            speed = contest.cluster.single_core_speed
            self.run["assumptions"] = assumed_of(settings.workflow, speed, "evaluation")
        self.run["samples"] = {name: str(report) for name, report in contest.reports.items()}
        if settings.resume is not None:
            known = set(contest.tasks)
            check_resume(Path(settings.resume), self.run, self.layout, known)

    def play(self, done: Container[QueuedTask]) -> Iterator[list[tuple[CaseRow, None]]]:
        """Plays what has to be played still, in any order."""
        settings = self.settings
        left = [task for task in self.contest.tasks if task not in done]
        for row in play_all(self.contest, left, settings.workers, settings.ray.address):
            yield [(row, None)]


def typed_command() -> str:
    """The command without `resume`, so that typed again it gives the same from the start."""
    typed = [word for word in sys.argv[1:] if not word.startswith("resume=")]
    return " ".join(["python evaluate.py", *typed])


def workloads_of(
    settings: EvaluateSettings, cluster: ClusterConfig
) -> dict[tuple[int, int], EpisodeWorkload]:
    """What arrives in every episode, by seed and number."""
    workflow = validated(WorkflowConfig, settings.workflow, "workflow")
    workload = validated(WorkloadConfig, settings.workload, "workload")
    workloads = {}
    for seed in settings.seed:
        generator = WorkloadGenerator(
            workflow, workload.model_copy(update={"seed": seed}), cluster.single_core_speed
        )
        check_world(generator.pools.evaluation.templates, cluster)
        for episode in range(settings.episodes):
            workloads[seed, episode] = generator.evaluation_episode(episode)
    return workloads


def schedulers_of(settings: EvaluateSettings, cluster: ClusterConfig) -> list[Scheduler]:
    """The learned policy, if there is one, and the baselines."""
    if settings.agents is not None:
        validated(AgentsConfig, settings.agents, "agents")
    schedulers: list[Scheduler] = make_baselines(settings.baselines)
    if settings.policy is not None:
        # PyTorch takes seconds to import; baselines alone do without.
        from agents.learned.learned_scheduler import LearnedScheduler

        one_thread()
        learned = LearnedScheduler(settings.policy, cluster, settings.objective, settings.agents)
        if learned.name in (scheduler.name for scheduler in schedulers):
            raise InputError(f"baselines: '{learned.name}' is what the policy is called")
        schedulers.insert(0, learned)
    if not schedulers:
        raise InputError("evaluate: neither a policy nor baselines, at least 1 is needed")
    return schedulers


def other_objective(scheduler: Scheduler, objective: Objective) -> str | None:
    """One line to say if a policy was trained for another objective than it is compared by."""
    compared = objective.model_dump()
    trained = getattr(scheduler, "trained_for", compared)  # only policies have been
    if trained == compared:
        return None
    return f"note: the policy was trained for {weights(trained)}, here {weights(compared)} counts"


def weights(objective: Mapping[str, float]) -> str:
    """As they are overridden: objective.time_weight=1.0 objective.cost_weight=0.1."""
    return " ".join(f"objective.{name}={weight}" for name, weight in objective.items())


def one_thread() -> None:
    """Has PyTorch compute as in processes of Ray, so that sums come out the same."""
    import torch

    torch.set_num_threads(1)


def evaluation_of(config: DictConfig) -> Evaluation | QueuedRun:
    """What a configuration comes to, whatever its dispatch.

    Raises:
        InputError: something in it cannot be evaluated.
    """
    queued = OmegaConf.select(config, "dispatch.kind") == "queued"
    return QueuedRun(config) if queued else Evaluation(config)


def check(config: DictConfig) -> None:
    """Refuses what cannot be evaluated, before anything is written."""
    settings = evaluation_of(config).settings
    if settings.workers > 1:
        check_address(settings.ray.address)


def evaluate(config: DictConfig) -> None:
    """One evaluation, from its configuration to its results."""
    from rich.console import Console

    from report.table import PLAIN_WIDTH

    evaluation = evaluation_of(config)
    settings = evaluation.settings
    if isinstance(evaluation, Evaluation) and evaluation.notice:
        print(evaluation.notice, flush=True)
    for line in printed(evaluation.run.get("assumptions", {})):
        print(line, flush=True)
    folder = Path(settings.resume or HydraConfig.get().runtime.output_dir)
    # A file or pipe has no width of its own.
    console = Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH, markup=False)
    results = play_to_the_end(evaluation, folder, console)
    if settings.policy is not None:
        keep_training(settings.policy, folder)
    if isinstance(evaluation, QueuedRun):
        from report.queued.files import write_files as write_queued

        table = write_queued(folder, evaluation.run, results)
        for name, report in evaluation.run["samples"].items():
            print(f"{name}: {report}")
    else:
        table = write_files(folder, evaluation, results, console.width)
    console.print(table)
    print(f"report: {folder / 'report.html'}")
    print(f"results: {folder}")


def write_files(folder: Path, evaluation: Evaluation, results: pd.DataFrame, width: int) -> Table:
    """What is made of the results where functions are placed at once; returns what is printed."""
    from report.figures import draw_figures
    from report.page import write_report
    from report.summary import means, summarise, write_summary
    from report.table import summary_table
    from report.tensorboard import write_events
    from report.trace import write_traces
    from run.hparams import flattened

    summary = summarise(results, evaluation.settings.statistics)
    write_summary(folder, summary)
    pictures = draw_figures(summary, results, folder / "figures")
    told = {
        key: evaluation.run["config"][key] for key in ("policy", "episodes", "seed", "objective")
    }
    write_events(folder, means(summary), pictures, flattened(told))
    write_traces(folder)
    write_report(folder)
    return summary_table(summary, width)


def play_to_the_end(
    evaluation: Evaluation | QueuedRun, folder: Path, console: Console
) -> pd.DataFrame:
    """Plays what is not there yet and returns all results.

    Raises:
        SystemExit: a signal asked to stop before the end.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = ("{task.description}", BarColumn(), MofNCompleteColumn())
    writer: ResultsWriter[Any] = ResultsWriter(
        folder, evaluation.run, evaluation.players, evaluation.layout
    )
    total = evaluation.total
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
        bar = progress.add_task(evaluation.units, total=total, completed=len(writer.done))
        for played in evaluation.play(writer.done):
            writer.add(played)
            progress.update(bar, completed=len(writer.done))
            if stop.asked and len(writer.done) < total:
                raise SystemExit(
                    f"stopped, {len(writer.done)} of {total} {evaluation.units} are played; "
                    f"go on with the same command and resume={folder}"
                )
        return writer.finish()


def policy_hash(policy: str | None) -> str | None:
    """A hash of the files of a policy, if there is one."""
    if policy is None:
        return None
    from agents.learned.learned_scheduler import policy_folder
    from agents.learned.policy_file import fingerprint_of

    return fingerprint_of(policy_folder(policy))


def keep_training(policy: str, folder: Path) -> None:
    """Copies the metrics.csv of the run that trained a policy, where it is, for the report."""
    from agents.learned.learned_scheduler import policy_folder
    from report.training_curve import TRAINING, read_training

    training = policy_folder(policy).parent / TRAINING
    if read_training(training) is not None:
        with written_whole(folder / TRAINING) as temporary:
            temporary.write_bytes(read_bytes(training, inside=training.parent))


if __name__ == "__main__":
    run(evaluate, "evaluate", check)
