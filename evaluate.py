"""Compares schedulers: `python evaluate.py policy=PATH episodes=100`. See `--help`."""

import hashlib
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from pydantic import Field, field_validator

from agents.baseline import make_baselines
from agents.command import StopOnSignals, plain, run
from agents.dispatch import Immediate
from agents.evaluation import Contest, EpisodeCount, Task, play_all
from agents.queued_evaluation import QueuedEvaluation
from agents.scheduler import Scheduler
from env.layouts import AgentsConfig
from env.optimum import OptimumSettings
from env.reward import Objective, check_world
from env.schema import Strict, validated
from env.sim.cluster import ClusterConfig
from env.sim.cluster_file import cluster_from_config
from env.sim.errors import InputError
from env.workloads.generator import EpisodeWorkload, WorkloadConfig, WorkloadGenerator
from env.workloads.templates import WorkflowConfig
from report.results import ResultsWriter, check_resume, describe
from report.statistics import StatisticsSettings

Seed = Annotated[int, Field(ge=0, lt=2**32)]
# The folder of a run: the one that is resumed, or a new one (conf/evaluate.yaml).
OmegaConf.register_new_resolver(
    "given_or", lambda given, new: new if given is None else given, replace=True
)


class RayAddress(Strict):
    """Where processes that play are (conf/evaluate.yaml)."""

    address: Annotated[str, Field(min_length=1)] | None


class ReportSettings(Strict):
    """What is in report.html (conf/evaluate.yaml)."""

    episodes_mb: Annotated[float, Field(ge=0, le=1000)]


class Command(Strict):
    """What `evaluate.py` is told whatever the dispatch; conf/evaluate.yaml explains each."""

    policy: str | None
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

    resume: str | None
    dispatch: Immediate
    trace: None = None

    @field_validator("trace", mode="before")
    @classmethod
    def _queued_alone(cls, trace: Any) -> None:
        if trace is not None:
            raise ValueError("requests of single functions need dispatch=queued; else it is null")


class QueuedSettings(Command):
    """The same where they wait in a central queue, but for what `QueuedEvaluation` checks."""

    resume: None

    @field_validator("resume", mode="before")
    @classmethod
    def _anew(cls, resume: Any) -> None:
        if resume is not None:
            raise ValueError("evaluations with dispatch=queued start anew; here it is null")


class Evaluation:
    """What a configuration comes to: the contest, its episodes, and what run.json says of it."""

    def __init__(self, config: DictConfig) -> None:
        told = plain(config)
        self.settings = settings = validated(EvaluateSettings, told, "evaluate")
        cluster = cluster_from_config(settings.cluster, "cluster")
        self.workloads = workloads_of(settings, cluster)
        schedulers = schedulers_of(settings, cluster)
        self.names = tuple(scheduler.name for scheduler in schedulers)
        self.contest = Contest(schedulers, cluster, settings.objective, settings.optimum)
        # Without `resume`, so that typed again it gives the same from the start.
        typed = [word for word in sys.argv[1:] if not word.startswith("resume=")]
        command = " ".join(["python evaluate.py", *typed])
        policy = None if settings.policy is None else fingerprint_of(settings.policy)
        self.run = describe(told, self.workloads.values(), command, policy)
        if settings.resume is not None:
            check_resume(Path(settings.resume), self.run)

    @property
    def tasks(self) -> list[Task]:
        """All that has to be played, were nothing there yet."""
        return [
            Task(seed, episode, self.names, workload, record=episode < self.settings.record)
            for (seed, episode), workload in self.workloads.items()
        ]


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
        import torch

        from agents.learned.scheduler import LearnedScheduler

        torch.set_num_threads(1)  # as in processes of Ray, so that sums come out the same

        learned = LearnedScheduler(settings.policy, cluster, settings.objective, settings.agents)
        schedulers.insert(0, learned)
    if not schedulers:
        raise InputError("evaluate: neither a policy nor baselines, at least 1 is needed")
    return schedulers


def is_queued(config: DictConfig) -> bool:
    """Whether functions wait in a central queue: another evaluation, see `evaluate_queued`."""
    return bool(OmegaConf.select(config, "dispatch.kind") == "queued")


def check(config: DictConfig) -> None:
    """Refuses what cannot be evaluated, before anything is written."""
    if is_queued(config):
        told = plain(config)
        checked_there = ("dispatch", "trace")
        rest = {key: value for key, value in told.items() if key not in checked_there}
        validated(QueuedSettings, rest, "evaluate")
        QueuedEvaluation(told)
    else:
        Evaluation(config)


def evaluate(config: DictConfig) -> None:
    """One evaluation, from its configuration to its results."""
    folder = Path(HydraConfig.get().runtime.output_dir)
    if is_queued(config):
        from report.queued import evaluate_queued

        evaluate_queued(QueuedEvaluation(plain(config)), folder)
        return
    from rich.console import Console

    from agents.hparams import flattened
    from report.figures import draw_figures
    from report.page import write_report
    from report.summary import summarise, write_summary
    from report.table import PLAIN_WIDTH, summary_table
    from report.tensorboard import write_events
    from report.trace import write_traces

    evaluation = Evaluation(config)
    settings = evaluation.settings
    folder = Path(settings.resume or folder)
    # A file or pipe has no width of its own.
    console = Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH)
    with ResultsWriter(folder, evaluation.run, evaluation.names) as writer:
        if not play_to_the_end(evaluation, writer, console):
            raise SystemExit(
                f"stopped, {len(writer.done)} of "
                f"{len(evaluation.names) * len(evaluation.workloads)} episodes are played; "
                f"go on with the same command and resume={folder}"
            )
        results = writer.finish()
    summary = summarise(results, settings.statistics)
    write_summary(folder, summary)
    pictures = draw_figures(summary, results, folder / "figures")
    told = {
        key: evaluation.run["config"][key] for key in ("policy", "episodes", "seed", "objective")
    }
    write_events(folder, summary, pictures, flattened(told))
    if settings.policy is not None:
        keep_training(settings.policy, folder)
    write_traces(folder)
    report = write_report(folder)
    console.print(summary_table(summary, console.width))
    print(f"report: {report}")
    print(f"results: {folder}")


def play_to_the_end(evaluation: Evaluation, writer: ResultsWriter, console: Any) -> bool:
    """Plays what is not there yet; False when a signal asked to stop before the end."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    settings = evaluation.settings
    missing = [task.without(writer.done) for task in evaluation.tasks]
    columns = ("[progress.description]{task.description}", BarColumn(), MofNCompleteColumn())
    with (
        Progress(
            *columns,
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        ) as progress,
        StopOnSignals() as stop,
    ):
        total = len(evaluation.names) * len(evaluation.workloads)
        bar = progress.add_task("episodes", total=total, completed=len(writer.done))
        todo = [task for task in missing if task.policies]
        for played in play_all(evaluation.contest, todo, settings.workers, settings.ray.address):
            writer.add(played)
            progress.update(bar, completed=len(writer.done))
            if stop.asked and len(writer.done) < total:
                return False
    return True


def fingerprint_of(policy: str) -> str:
    """A hash of the files of a policy."""
    from agents.learned.scheduler import policy_folder

    digest = hashlib.sha256()
    for path in sorted(policy_folder(policy).iterdir()):
        if path.suffix in (".json", ".safetensors"):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def keep_training(policy: str, folder: Path) -> None:
    """Copies the metrics.csv of the run that trained a policy, where it is, for the report."""
    from agents.learned.scheduler import policy_folder

    training = policy_folder(policy).parent / "metrics.csv"
    if training.is_file():
        shutil.copyfile(training, folder / training.name)


if __name__ == "__main__":
    run(evaluate, "evaluate", check)
