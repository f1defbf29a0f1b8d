"""What a configuration of `evaluate.py` comes to: who plays what, and what run.json says of it."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterator, Mapping
from pathlib import Path

from omegaconf import DictConfig

from agents.baseline import make_baselines
from agents.scheduler import Scheduler
from env.base.errors import InputError
from env.base.schema import validated
from env.learn.layouts import AgentsConfig
from env.score.reward import Objective, check_world
from env.sim.cluster_file import cluster_from_config
from env.sim.hardware import ClusterConfig
from env.workloads.generator import EpisodeWorkload, WorkloadConfig, WorkloadGenerator
from env.workloads.templates import WorkflowConfig, assumed_of
from evaluation.contest import Contest, Played, Task, play_all
from evaluation.evaluate_settings import Command, EvaluateSettings
from evaluation.fingerprint import fingerprint
from evaluation.queued_evaluation import CaseRow, QueuedEvaluation
from evaluation.queued_evaluation import Task as QueuedTask
from evaluation.queued_rows import queued_layout
from evaluation.results import check_resume, describe, episode_layout
from run.command import plain
from run.effect import by_case, plain_world


class Evaluation:
    """What a configuration comes to: the contest, its episodes, and what run.json says of it."""

    units = "episodes"

    def __init__(self, config: DictConfig) -> None:
        told = plain(config)
        self.settings = settings = validated(EvaluateSettings, told, "evaluate")
        cluster = cluster_from_config(settings.cluster, "cluster")
        self.workloads = workloads_of(settings, cluster)
        # Elsewhere nothing is recorded, tried out in copies, or searched for its best schedule.
        in_copies = plain_world(told)
        cold_start = validated(WorkloadConfig, settings.workload, "workload").container_cold_start
        self.recorded = settings.record if in_copies else 0
        schedulers = schedulers_of(settings, cluster, in_copies)
        self.players = tuple(scheduler.name for scheduler in schedulers)
        self.notice = other_objective(schedulers[0], settings.objective)
        best = settings.optimum if in_copies else None
        self.contest = Contest(
            schedulers, cluster, settings.objective, best, settings.rules, cold_start
        )
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
            Task(seed, episode, self.players, workload, record=episode < self.recorded)
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
        rest = {
            key: value
            for key, value in told.items()
            if key not in ("dispatch", "trace", "lease", "keep_alive")
        }
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


def schedulers_of(
    settings: EvaluateSettings, cluster: ClusterConfig, forks: bool
) -> list[Scheduler]:
    """The learned policy, if there is one, and the baselines."""
    if settings.agents is not None:
        validated(AgentsConfig, settings.agents, "agents")
    schedulers: list[Scheduler] = make_baselines(
        settings.baselines, settings.rules.order is not None, forks
    )
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
    return " ".join(f"objective.{name}={weight}" for name, weight in objective.items() if weight)


def one_thread() -> None:
    """Has PyTorch compute as in processes of Ray, so that sums come out the same."""
    import torch

    torch.set_num_threads(1)


def evaluation_of(config: DictConfig) -> Evaluation | QueuedRun:
    """What a configuration comes to, whatever its dispatch.

    Raises:
        InputError: something in it cannot be evaluated.
    """
    return QueuedRun(config) if by_case(plain(config)) else Evaluation(config)


def policy_hash(policy: str | None) -> str | None:
    """A hash of the files of a policy, if there is one."""
    if policy is None:
        return None
    from agents.learned.learned_scheduler import policy_folder
    from agents.learned.policy_file import fingerprint_of

    return fingerprint_of(policy_folder(policy))
