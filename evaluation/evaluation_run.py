"""What a configuration of `evaluate.py` comes to: who plays what, and what run.json says of it."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path

from omegaconf import DictConfig

from env.base.errors import InputError, located
from env.base.schema import validated
from env.score.reward import check_world
from env.sim.declared.hardware import ClusterConfig, cluster_from_config
from env.sim.declared.resources import check_recordable
from env.workloads.source import WorkloadSource, is_trace, workload_source
from env.workloads.templates import assumed_of
from env.workloads.traces.trace_samples import TraceGenerator
from evaluation.contest import Contest, Key, Played, Task, play_all
from evaluation.episode_metrics import all_metrics
from evaluation.evaluate_settings import EvaluateSettings
from evaluation.fingerprint import fingerprint
from evaluation.players import hashes_of, other_objectives, players_of
from evaluation.promise import check_promises
from evaluation.results import check_resume, program
from run.command import plain
from run.sweep import scenarios_of, typed_words


def contest_of(settings: EvaluateSettings) -> Contest:
    """Who plays a scenario, where.

    Raises:
        InputError: something in it cannot be evaluated.
    """
    cluster = cluster_from_config(settings.cluster, "cluster")
    return Contest(
        schedulers=players_of(settings, cluster, settings.in_copies),
        cluster=cluster,
        sources=sources_of(settings, cluster),
        objective=settings.objective,
        optimum=settings.optimum if settings.in_copies else None,
        rules=settings.rules,
        deadlines=settings.slo,
        late=settings.late,
    )


class Evaluation:
    """What a configuration comes to: the contests, their episodes, and what run.json says of it.

    Attributes:
        settings: of the first scenario; all have the same seeds and episodes.
        contests: by the name of the scenario.
        notices: lines to say if a policy was trained for other objectives.
        known: keys of all rows, in their order.
        metrics: of every row, by name.
        run: for run.json.

    Raises:
        InputError: something in it cannot be evaluated.
    """

    def __init__(self, config: DictConfig) -> None:
        told = plain(config)
        scenarios = scenarios_of(told)
        every = {one.name: validated(EvaluateSettings, one.config, "evaluate") for one in scenarios}
        self.contests = {name: contest_of(settings) for name, settings in every.items()}
        if len({frozenset(contest.names) for contest in self.contests.values()}) > 1:
            raise InputError("sweep: policy: null leaves a player out, who has to play everywhere")
        self.settings = settings = every[scenarios[0].name]
        # Where scenarios are compared, single episodes are not looked at.
        recorded = settings.record if told["sweep"] is None else 0
        if recorded:
            for source in self.contests[scenarios[0].name].sources.values():
                check_recordable(source.evaluation_templates(0))
        told_apart = (
            line
            for contest in self.contests.values()
            for line in other_objectives(contest.schedulers, contest.objective)
        )
        self.notices = list(dict.fromkeys(told_apart))
        self.metrics = all_metrics(settings.slo, settings.late)
        if settings.keep:
            episodes = len(settings.seed) * settings.episodes
            check_promises(settings.keep, settings.minimise, self.metrics, episodes)
        self._tasks = [
            Task(name, seed, episode, contest.names, episode < recorded)
            for name, contest in self.contests.items()
            for seed in settings.seed
            for episode in range(settings.episodes)
        ]
        self.known = {key: None for task in self._tasks for key in task.keys}
        sources = [each for contest in self.contests.values() for each in contest.sources.values()]
        worlds = (
            (each.workflow, self.contests[name].cluster.single_core_speed)
            for name, each in every.items()
            if not is_trace(each.workload)
        )
        self.run = {
            "format": 1,
            "command": typed_command(),
            **program(),
            "seeds": list(settings.seed),
            "episodes": settings.episodes,
            "workload_sha256": fingerprint(sources, settings.episodes),
            "players_sha256": hashes_of(self.contests),
            "config": told,
            "scenarios": {each.name: dict(each.point) for each in scenarios},
            "assumptions": assumed_of(worlds, "evaluation"),
            "samples": _samples(self.contests),
        }
        if settings.resume is not None:
            check_resume(Path(settings.resume), self.run, self.metrics, self.known)

    def play(self, done: Container[Key]) -> Iterator[Played]:
        """Plays what has to be played still, in any order."""
        left = [task for task in (task.without(done) for task in self._tasks) if task.policies]
        return play_all(self.contests, left, self.settings.workers, self.settings.ray.address)


def typed_command() -> str:
    """The command without `resume`, so that typed again it gives the same from the start."""
    typed = [word for word in typed_words("hydra", "task") if not word.startswith("resume=")]
    return " ".join(["python evaluate.py", *typed])


def sources_of(settings: EvaluateSettings, cluster: ClusterConfig) -> dict[int, WorkloadSource]:
    """What arrives, by seed.

    Raises:
        InputError: it cannot be made, or the cluster cannot run it.
    """
    sources = {}
    drawn = is_trace(settings.workload)  # then every episode has functions of its own
    for seed in settings.seed:
        sources[seed] = workload_source(settings.workflow, settings.workload, cluster, seed)
        with located(f"workload, seed {seed}") if drawn else nullcontext():
            for episode in range(settings.episodes if drawn else 1):
                check_world(sources[seed].evaluation_templates(episode), cluster)
    return sources


def _samples(contests: Mapping[str, Contest]) -> dict[str, str]:
    """A line on each sample of a trace, by the scenario that plays it."""
    return {
        name: str(source.sample(0).report)
        for name, contest in contests.items()
        for source in list(contest.sources.values())[:1]
        if isinstance(source, TraceGenerator)
    }
