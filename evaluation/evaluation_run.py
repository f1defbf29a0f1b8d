"""What a configuration of `evaluate.py` comes to: who plays what, and what run.json says of it."""

import hashlib
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import OmegaConf

from agents.baseline import ALL, all_baselines, make_baselines
from agents.own_rule import RuleCode, own_rules
from agents.scheduler import Scheduler
from env.base.errors import InputError, located
from env.base.files import name_apart
from env.base.schema import names_file, short, validated
from env.learn.layouts import AgentsConfig
from env.score.reward import Objective, check_world
from env.sim.declared.episode import EpisodeWorkload
from env.sim.declared.hardware import ClusterConfig, cluster_from_config
from env.workloads.source import (
    WorkloadSource,
    funded_tenants,
    is_funded,
    is_trace,
    workload_source,
)
from env.workloads.templates import assumed_of
from env.workloads.traces.trace_samples import TraceGenerator
from evaluation.contest import Contest, Contests, Key, Played, Task, play_all
from evaluation.episode_metrics import all_metrics
from evaluation.evaluate_settings import EvaluateSettings
from evaluation.promise import check_promises
from evaluation.results import check_resume, program
from run.command import Job


def contest_of(settings: EvaluateSettings) -> Contest:
    """Who plays a scenario, where.

    Raises:
        InputError: something in it cannot be evaluated.
    """
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
    """What a configuration comes to: the contests, their episodes, and what run.json says of it.

    Raises:
        InputError: something in it cannot be evaluated.
    """

    def __init__(self, job: Job) -> None:
        scenarios = job.scenarios
        every = {one.name: validated(EvaluateSettings, one.config, "evaluate") for one in scenarios}
        # By the name of the scenario, as settings are; all have the same seeds and episodes.
        self.contests = {name: contest_of(settings) for name, settings in every.items()}
        if len({frozenset(contest.names) for contest in self.contests.values()}) > 1:
            raise InputError("sweep: policy: null leaves a player out, who has to play everywhere")
        self.settings = settings = every[scenarios[0].name]
        # Where scenarios are compared, single episodes are not looked at.
        recorded = settings.record if job.config["sweep"] is None else 0
        contests = self.contests.values()
        notices = (other_objectives(each.schedulers, each.objective) for each in contests)
        self.notices = list(dict.fromkeys(chain.from_iterable(notices)))  # lines for the user
        self.metrics = all_metrics(settings.slo, settings.late)  # of every row, by name
        if settings.keep:
            check_promises(settings.keep, settings.minimise, self.metrics)
        self._tasks = [
            Task(name, seed, episode, contest.names, episode < recorded)
            for name, contest in self.contests.items()
            for seed in settings.seed
            for episode in range(settings.episodes)
        ]
        self.keys = {key: None for task in self._tasks for key in task.keys}  # of rows, in order
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


def players_of(settings: EvaluateSettings, cluster: ClusterConfig) -> list[Scheduler]:
    """The learned policies of a scenario, then the baselines, each in the order given.

    Raises:
        InputError: one of them cannot play here, two have one name, or there is nobody.
    """
    players = [*_policies(settings, cluster), *_baselines(settings)]
    for player in players:
        if any(kind.ticks for kind in player.asked) and settings.lease.autoscale is None:
            raise InputError(f"'{player.name}' scales, which takes lease=autoscaled")
    for name, count in Counter(player.name for player in players).items():
        if count > 1:
            raise InputError(f"baselines: '{name}' is what another one is called")
    if not players:
        raise InputError("evaluate: neither a policy nor baselines, at least 1 is needed")
    return players


def _baselines(settings: EvaluateSettings) -> list[Scheduler]:
    queued, funded = settings.rules.order is not None, is_funded(settings.workload)
    scaled = settings.lease.autoscale is not None
    entries: list[str | RuleCode] = []
    for entry in settings.baselines:
        entries += all_baselines(queued, funded, scaled) if entry == ALL else [entry]
    names = [entry for entry in entries if isinstance(entry, str)]
    named = iter(make_baselines(names, queued, settings.in_copies, funded))
    own = iter(own_rules([entry for entry in entries if isinstance(entry, RuleCode)], queued))
    return [next(own) if isinstance(entry, RuleCode) else next(named) for entry in entries]


def _policies(settings: EvaluateSettings, cluster: ClusterConfig) -> list[Scheduler]:
    if settings.agents is not None:
        validated(AgentsConfig, settings.agents, "agents")
    if not settings.policy:
        return []
    # PyTorch takes seconds to import; baselines alone do without.
    import torch

    from agents.learned.learned_scheduler import LearnedScheduler

    torch.set_num_threads(1)  # as in processes of Ray, so that sums come out the same
    return [
        LearnedScheduler(
            folder,
            cluster,
            settings.objective,
            settings.agents,
            settings.rules.order is not None,
            funded_tenants(settings.workload),
            name,
        )
        for name, folder in policy_folders(settings).items()
    ]


def policy_folders(settings: EvaluateSettings) -> dict[str, Path]:
    """The folders of the learned policies, by what tables call them.

    That is the name of the folder, with as many above it as it takes to tell them apart; of the
    folder `policy` of a run the name of the run's. Where the policy is swept the scenario names it,
    and all are called `learned`.

    Raises:
        InputError: one is not there, one is given twice, or a name is none of a file.
    """
    from agents.learned.learned_scheduler import policy_folder

    folders = [policy_folder(path) for path in settings.policy]
    if settings.sweeps_policy:
        return dict(zip(["learned"], folders, strict=True))
    paths = [folder.resolve() for folder in folders]
    parts = [(path.parent if path.name == "policy" else path).parts for path in paths]
    named: dict[str, Path] = {}
    for place, (own, folder) in enumerate(zip(parts, folders, strict=True)):
        others = parts[:place] + parts[place + 1 :]
        if own in others:
            raise InputError(f"policy: {short(settings.policy[place])} is given twice")
        # Recorded episodes are files of this name.
        name = name_apart(own, others)
        if not names_file(name) or name in named:
            raise InputError(f"policy: {short(name)}: rename the folder, it names a row and files")
        named[name] = folder
    return named


def hashes_of(contests: Contests) -> dict[str, str]:
    """Hashes of the files of learned policies and of rules of the user's own, by their names.

    Where policies of several scenarios have one name, it has the hash of each.
    """
    by_name: dict[str, list[str]] = {}
    for contest in contests.values():
        for player in contest.schedulers:
            if isinstance(sha256 := getattr(player, "sha256", None), str):
                by_name.setdefault(player.name, []).append(sha256)
    return {name: " ".join(dict.fromkeys(hashes)) for name, hashes in by_name.items()}


def other_objectives(players: Sequence[Scheduler], objective: Objective) -> Iterator[str]:
    """A line to say for each policy that was trained for another objective than the one here."""
    compared = objective.model_dump()
    for player in players:
        trained = getattr(player, "trained_for", compared)  # only policies have been
        if trained != compared:
            yield (
                f"note: {player.name} was trained for {weights(trained)}, here "
                f"{weights(compared)} counts"
            )


def weights(objective: Mapping[str, float]) -> str:
    """As they are overridden: objective.time_weight=1.0 objective.cost_weight=0.1."""
    return " ".join(f"objective.{name}={weight}" for name, weight in objective.items() if weight)


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


def fingerprint(sources: Iterable[WorkloadSource], episodes: int) -> str:
    """A hash of all that arrives in so many held-out episodes of each source.

    It is equal only where the same functions are asked for at the same times.
    """
    digest = hashlib.sha256()
    for source in sources:
        if isinstance(source, TraceGenerator):
            _add_samples(digest, source, episodes)
        else:
            for episode in range(episodes):
                _add_episode(digest, source.evaluation_episode(episode))
    return digest.hexdigest()


def _add_episode(digest: "hashlib._Hash", workload: EpisodeWorkload) -> None:
    """Workflows, times and tenants."""
    digest.update(repr(workload.arrival_times).encode())
    for each in workload.templates:
        sizes = each.computation, each.memory_req, each.parallelism
        for array in (*sizes, each.edges, each.data_bytes):
            digest.update(array.tobytes())
        for name, units in sorted(each.resources.items()):
            digest.update(repr(name).encode() + units.tobytes())
        if (each.probability < 1).any():  # without conditions, the hash is that of older ones
            digest.update(each.probability.tobytes())
    if workload.tenants:  # without any, the hash is that of older evaluations
        digest.update(repr(workload.tenants).encode())


def _add_samples(digest: "hashlib._Hash", source: TraceGenerator, episodes: int) -> None:
    """The trace, and the functions that are drawn of it.

    Requests are drawn from these alone, by rules and seeds that the configuration has. Drawing all
    of them just for a hash would take longer than to play some of them.
    """
    digest.update(repr(source.recording.names).encode())
    for numbers in vars(source.recording.invocations).values():
        digest.update(np.asarray(numbers).tobytes())
    for episode in range(episodes):
        profiles = source.sample(episode).profiles
        digest.update(repr(profiles.names).encode())
        times = profiles.execution, profiles.cold_start
        # One thread each is in the hash of older evaluations.
        for array in (*times, profiles.memory, np.ones_like(profiles.memory)):
            digest.update(array.tobytes())
