"""What a configuration of `evaluate.py` comes to: who plays what, and what run.json says of it."""

from collections.abc import Container, Iterator
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from env.base.errors import InputError, located
from env.base.schema import validated
from env.score.reward import check_world
from env.sim.declared.hardware import ClusterConfig, cluster_from_config
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
from run.command import Job


def contest_of(settings: EvaluateSettings) -> Contest:
    """Who plays a scenario, where, or `InputError`: something in it cannot be evaluated."""
    cluster = cluster_from_config(settings.cluster, "cluster")
    return Contest(
        schedulers=players_of(settings, cluster),
        cluster=cluster,
        sources=sources_of(settings, cluster),
        objective=settings.objective,
        optimum=settings.optimum if settings.in_copies else None,
        rules=settings.rules,
        deadlines=settings.slo,
        late=settings.late,
    )


class Evaluation:
    """What a configuration comes to, or `InputError`: contests, episodes, what run.json says of it.

    Attributes:
        settings: of the first scenario; all have the same seeds and episodes.
        contests: by the name of the scenario.
        notices: lines to say if a policy was trained for other objectives.
        keys: of all rows, in their order.
        metrics: of every row, by name.
        run: for run.json.
    """

    def __init__(self, job: Job) -> None:
        scenarios = job.scenarios
        every = {one.name: validated(EvaluateSettings, one.config, "evaluate") for one in scenarios}
        self.contests = {name: contest_of(settings) for name, settings in every.items()}
        if len({frozenset(contest.names) for contest in self.contests.values()}) > 1:
            raise InputError("sweep: policy: null leaves a player out, who has to play everywhere")
        self.settings = settings = every[scenarios[0].name]
        # Where scenarios are compared, single episodes are not looked at.
        recorded = settings.record if job.config["sweep"] is None else 0
        contests = self.contests.values()
        notices = (other_objectives(each.schedulers, each.objective) for each in contests)
        self.notices = list(dict.fromkeys(chain.from_iterable(notices)))
        self.metrics = all_metrics(settings.slo, settings.late)
        if settings.keep:
            check_promises(settings.keep, settings.minimise, self.metrics)
        self._tasks = [
            Task(name, seed, episode, contest.names, episode < recorded)
            for name, contest in self.contests.items()
            for seed in settings.seed
            for episode in range(settings.episodes)
        ]
        self.keys = {key: None for task in self._tasks for key in task.keys}
        sources = [source for contest in contests for source in contest.sources.values()]
        worlds = (
            (each.workflow, self.contests[name].cluster.single_core_speed)
            for name, each in every.items()
            if not is_trace(each.workload)
        )
        # Typed again, the command gives the same from the start.
        given: Any = OmegaConf.to_container(job.composed.hydra.overrides, resolve=False)
        typed = [word for word in given["hydra"] + given["task"] if not word.startswith("resume=")]
        self.run = {
            "format": 1,
            "command": " ".join(["python evaluate.py", *typed]),
            **program(),
            "seeds": list(settings.seed),
            "episodes": settings.episodes,
            "workload_sha256": fingerprint(sources, settings.episodes),
            "players_sha256": hashes_of(self.contests),
            "config": job.config,
            "scenarios": {each.name: dict(each.point) for each in scenarios},
            "assumptions": assumed_of(worlds, "evaluation"),
            "samples": {
                name: str(source.sample(0).report)
                for name, contest in self.contests.items()
                if isinstance(source := contest.sources[settings.seed[0]], TraceGenerator)
            },
        }
        if settings.resume is not None:
            check_resume(Path(settings.resume), self.run, self.metrics, self.keys)

    def play(self, done: Container[Key]) -> Iterator[Played]:
        """Plays what has to be played still, in any order."""
        left = [task for task in (task.without(done) for task in self._tasks) if task.policies]
        return play_all(self.contests, left, self.settings.workers, self.settings.ray.address)


def sources_of(settings: EvaluateSettings, cluster: ClusterConfig) -> dict[int, WorkloadSource]:
    """What arrives, by seed; or `InputError`: it cannot be made, or the cluster cannot run it."""
    sources = {}
    drawn = is_trace(settings.workload)  # then every episode has functions of its own
    for seed in settings.seed:
        sources[seed] = workload_source(settings.workflow, settings.workload, cluster, seed)
        with located(f"workload, seed {seed}") if drawn else nullcontext():
            for episode in range(settings.episodes if drawn else 1):
                check_world(sources[seed].evaluation_templates(episode), cluster)
    return sources
