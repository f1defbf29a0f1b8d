"""A contest: schedulers play the same held-out episodes, in this process or in many of Ray's."""

import math
import pickle
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np
from pydantic import Field

from agents.scheduler import Kind, Scheduler, play
from env.base.errors import InputError, located
from env.base.schema import Recorded
from env.score.optimum import OptimumSettings, optimum
from env.score.reward import Objective
from env.sim.declared.episode import Episode
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.rules import Rules
from env.sim.episode.episode_file import EpisodeFile
from env.sim.episode.recording import episode_of
from env.sim.view.raw_env import RawEnv
from env.workloads.source import WorkloadSource
from evaluation.episode_metrics import SHARES, PlayedEpisode, all_metrics
from run.ray_session import connect

SCHEDULER_KEY = 2
"""First word of the spawn key of what schedulers draw; 0 and 1 are those of the episodes."""
Key = tuple[str, str, int, int]
"""Policy, scenario, seed and episode: what no other row has."""


@dataclass(frozen=True)
class Task:
    """One episode to play: by the schedulers of these names, recorded or not."""

    scenario: str
    seed: int
    episode: int
    policies: tuple[str, ...]
    record: bool

    @property
    def keys(self) -> tuple[Key, ...]:
        """Of its rows."""
        return tuple((name, self.scenario, self.seed, self.episode) for name in self.policies)

    def without(self, done: Container[Key]) -> Self:
        """The same for the policies that have not played it."""
        return replace(self, policies=tuple(key[0] for key in self.keys if key not in done))


class Row(Recorded, allow_inf_nan=True):
    """What one policy made of one episode: a row of results.parquet."""

    policy: str
    kind: Kind
    scenario: str
    seed: int
    episode: int
    flow_time_quantiles: Annotated[  # s, flow times of what arrived at `SHARES`, ascending
        list[float], Field(min_length=len(SHARES), max_length=len(SHARES))
    ]
    metrics: dict[str, float]  # by the names of `all_metrics`

    @property
    def key(self) -> Key:
        """What no other row has."""
        return self.policy, self.scenario, self.seed, self.episode


Played = list[tuple[Row, EpisodeFile | None]]
"""Rows of one episode, with its recording if it was to be recorded."""


@dataclass(frozen=True)
class Contest:
    """Who plays, where, and for what: one scenario."""

    schedulers: Sequence[Scheduler]
    cluster: ClusterConfig
    sources: Mapping[int, WorkloadSource]  # what arrives, by seed
    objective: Objective
    optimum: OptimumSettings | None  # of which episodes the best schedule is searched, if any
    rules: Rules  # where functions wait centrally, the order is the scheduler's
    deadlines: tuple[float, ...]  # as `all_metrics` takes them
    late: float  # likewise

    @property
    def names(self) -> tuple[str, ...]:
        """Of the schedulers."""
        return tuple(scheduler.name for scheduler in self.schedulers)

    def play(self, task: Task) -> Played:
        """Has every policy of a task play its episode."""
        workload = self.sources[task.seed].evaluation_episode(task.episode)
        best_J, metrics = math.nan, all_metrics(self.deadlines, self.late)
        if self.optimum is not None:
            whole = RawEnv.of(Episode(workload, self.cluster, self.rules))
            if self.optimum.allows(whole):
                best_J = optimum(whole, self.objective, self.optimum.memory_tiers)
        played: Played = []
        for scheduler in self.schedulers:
            if scheduler.name not in task.policies:
                continue
            rules, asked = self.rules, tuple(scheduler.asked)
            if not any(kind.ticks for kind in asked):
                rules = rules.with_all_servers
            if rules.order is not None:
                order = scheduler.order or rules.order
                rules = replace(rules, order=order, placement=scheduler.fit)
            episode = Episode(workload, self.cluster, rules, asked=asked)
            env = RawEnv.of(episode, task.record)
            # Numbered by episode, so they do not depend on who plays what before, or where.
            draws = np.random.SeedSequence(task.seed, spawn_key=(SCHEDULER_KEY, task.episode))
            # Where the engine takes all decisions, the episode is over before any is asked for.
            started = math.nan if env.done else time.perf_counter()
            where = f"episode {task.episode} of seed {task.seed}"
            with located(f"{scheduler.name}: {where}"):
                play(env, scheduler, self.objective, draws)
            seconds = time.perf_counter() - started
            power = env.cluster_config.power
            finished = PlayedEpisode(env.state, self.objective, power, env, seconds, best_J)
            quantiles = np.quantile(finished.flow_times, SHARES, method="inverted_cdf")
            row = Row(
                policy=scheduler.name,
                kind=scheduler.kind,
                scenario=task.scenario,
                seed=task.seed,
                episode=task.episode,
                flow_time_quantiles=quantiles.tolist(),
                metrics={name: metric.compute(finished) for name, metric in metrics.items()},
            )
            recording = None
            if task.record:
                name = recording_name(row.policy, row.seed, row.episode)
                recording = episode_of(env, name, f"held-out {where}, placed by {row.policy}")
            played.append((row, recording))
        return played


def recording_name(policy: str, seed: int, episode: int) -> str:
    """What a recorded episode and its file (with .json behind) are called."""
    return f"{policy}_{seed}_{episode:04d}"


Contests = Mapping[str, Contest]
"""By the name of the scenario."""


def play_all(
    contests: Contests, tasks: Sequence[Task], workers: int, address: str | None
) -> Iterator[Played]:
    """Plays tasks; what they come to is yielded as it is known, in any order.

    Args:
        contests, tasks: who plays where, and what.
        workers: processes that play, no more than tasks; 1 plays in this one, without Ray.
        address: of a running Ray cluster; None starts Ray on this machine.

    Raises:
        InputError: there is no Ray at the address.
    """
    workers = min(workers, len(tasks))
    if workers <= 1:
        yield from (contests[task.scenario].play(task) for task in tasks)
        return
    import ray  # takes seconds to import
    from ray.util import ActorPool

    # Cores are named as wanted: playing on more processes than cores is slower, not wrong.
    connect(address, num_cpus=workers if address is None else None)
    try:
        player = ray.remote(_Player)
        # As bytes: arrays that Ray shares cannot be written to, and players have some to work in.
        shared = ray.put(pickle.dumps(contests))
        pool = ActorPool([player.remote(shared) for _ in range(workers)])
        yield from pool.map_unordered(lambda actor, task: actor.play.remote(task), tasks)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, InputError):
            raise error.cause from None  # that of Ray has many lines
        raise
    finally:
        ray.shutdown()


class _Player:
    """Contests, pickled, in a process of Ray's."""

    def __init__(self, contests: bytes) -> None:
        self._contests: Contests = pickle.loads(contests)

    def play(self, task: Task) -> Played:
        """See `Contest.play`: the same in every process, whatever was played before."""
        return self._contests[task.scenario].play(task)
