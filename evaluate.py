"""Compares schedulers: `python evaluate.py policy=PATH episodes=100`. See `--help`."""

import sys
from pathlib import Path
from typing import Annotated, Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from pydantic import Field

from agents.baseline import make_baselines
from agents.command import plain, run
from agents.evaluation import EpisodeTable, evaluate_all, summarise, write_summary
from agents.queued_evaluation import Immediate, QueuedEvaluation
from agents.scheduler import Scheduler
from env.layouts import AgentsConfig
from env.reward import Objective, check_world
from env.schema import Strict, validated
from env.sim.episode_file import cluster_from_config
from env.sim.errors import InputError
from env.workloads.generator import WorkloadConfig, WorkloadGenerator
from env.workloads.templates import WorkflowConfig


class EvaluateSettings(Strict):
    """Everything `evaluate.py` is told; conf/evaluate.yaml explains each."""

    policy: str | None
    baselines: tuple[str, ...]
    episodes: Annotated[int, Field(ge=1)]
    seed: Annotated[int, Field(ge=0, lt=2**32)]
    record: bool
    agents: dict[str, Any] | None = None
    objective: Objective
    dispatch: Immediate
    trace: None = None
    cluster: dict[str, Any]
    workflow: dict[str, Any]
    workload: dict[str, Any]


class Contest:
    """The world and the schedulers of one evaluation, made from its configuration."""

    def __init__(self, config: DictConfig) -> None:
        self.settings = validated(EvaluateSettings, plain(config), "evaluate")
        self.cluster = cluster_from_config(self.settings.cluster, "cluster")
        workload = validated(WorkloadConfig, self.settings.workload, "workload")
        self.generator = WorkloadGenerator(
            validated(WorkflowConfig, self.settings.workflow, "workflow"),
            workload.model_copy(update={"seed": self.settings.seed}),
            self.cluster.single_core_speed,
        )
        check_world(self.generator.pools.evaluation.templates, self.cluster)
        if self.settings.agents is not None:
            validated(AgentsConfig, self.settings.agents, "agents")
        self.schedulers: list[Scheduler] = make_baselines(self.settings.baselines)
        if self.settings.policy is not None:
            # PyTorch takes seconds to import; baselines alone do without.
            from agents.learned.scheduler import LearnedScheduler

            learned = LearnedScheduler(
                self.settings.policy, self.cluster, self.settings.objective, self.settings.agents
            )
            self.schedulers.insert(0, learned)
        if not self.schedulers:
            raise InputError("evaluate: neither a policy nor baselines, at least 1 is needed")


def is_queued(config: DictConfig) -> bool:
    """Whether functions wait in a central queue: another evaluation, see `evaluate_queued`."""
    return bool(OmegaConf.select(config, "dispatch.kind") == "queued")


def check(config: DictConfig) -> None:
    """Refuses what cannot be evaluated, before anything is written."""
    if is_queued(config):
        QueuedEvaluation(plain(config))
    else:
        Contest(config)


def evaluate(config: DictConfig) -> None:
    """One evaluation, from its configuration to its results."""
    folder = Path(HydraConfig.get().runtime.output_dir)
    if is_queued(config):
        from report.queued import evaluate_queued

        evaluate_queued(QueuedEvaluation(plain(config)), folder)
        return
    from rich.console import Console
    from rich.progress import Progress

    from report.comparison import draw_comparison
    from report.table import PLAIN_WIDTH, summary_table

    contest = Contest(config)
    settings = contest.settings
    # A file or pipe has no width of its own.
    console = Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH)
    with (
        EpisodeTable(folder) as table,
        Progress(console=console, transient=True, disable=not console.is_terminal) as progress,
    ):
        task = progress.add_task("episodes", total=settings.episodes * len(contest.schedulers))

        def tell(policy: str, episode: int, row: dict[str, float]) -> None:
            table.add(policy, episode, row)
            progress.update(task, advance=1, description=f"episode {episode}, {policy}")

        results = evaluate_all(
            contest.schedulers,
            contest.cluster,
            contest.generator,
            settings.objective,
            settings.episodes,
            settings.seed,
            folder / "episodes" if settings.record else None,
            tell,
        )
    summary = summarise(results, {each.name: each.kind for each in contest.schedulers})
    write_summary(folder, summary)
    title = f"{settings.episodes} held-out episodes, seed {settings.seed}"
    draw_comparison(summary, title, folder / "comparison.png")
    console.print(summary_table(summary, title, console.width))
    print(f"results: {folder}")


if __name__ == "__main__":
    run(evaluate, "evaluate", check)
