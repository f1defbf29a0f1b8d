"""Evaluation: schedulers play the same held-out episodes, in this process or in many of Ray's."""

import math
import pickle
import time
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Protocol, Self, TypeVar

import numpy as np
from pydantic import Field

from agents.scheduler import Kind, Scheduler, play
from env.score.metrics import METRICS, FinishedEpisode, Metric, by_name
from env.score.optimum import OptimumSettings, optimum
from env.score.reward import Objective
from env.sim.episode.episode_file import EpisodeFile
from env.sim.episode.recording import episode_of
from env.sim.hardware import ClusterConfig
from env.sim.rules import DEFAULT_RULES, Images, Rules
from env.sim.view.raw_env import RawEnv
from env.workloads.generator import EpisodeWorkload
from run.ray_session import connect

EpisodeCount = Annotated[int, Field(ge=1, le=100_000)]
"""Episodes of a seed; all their workloads are made before the first is played."""
SCHEDULER_KEY = 2
"""First word of the spawn key of what schedulers draw; 0 and 1 are those of the episodes."""


@dataclass(frozen=True)
class PlayedEpisode(FinishedEpisode):
    """A finished episode, and what only an evaluation knows of it.

    Attributes:
        seconds: of wall time that playing it took.
        best_J: of the optimum; NaN where the episode is too large to try every schedule.
    """

    seconds: float
    best_J: float


EVALUATION_METRICS: dict[str, Metric[PlayedEpisode]] = by_name(
    Metric(
        "decisions_per_s",
        "",
        None,
        "functions placed / seconds of wall time",
        lambda played: played.total("decisions") / played.seconds,
    ),
    Metric(
        "optimum_gap",
        "",
        "lower",
        "J / J of the best of all schedules - 1, of episodes small enough to try them all",
        lambda played: played.J / played.best_J - 1,
    ),
)
"""By name; these follow `METRICS` in every output of an evaluation."""


def all_metrics() -> dict[str, Metric[Any]]:
    """Every metric of an evaluation, by name."""
    return {**METRICS, **EVALUATION_METRICS}


@dataclass(frozen=True)
class Task:
    """One episode to play.

    Attributes:
        seed: of the evaluation.
        episode: its number.
        policies: names of the schedulers that play it.
        workload: what arrives.
        record: whether it is recorded.
    """

    seed: int
    episode: int
    policies: tuple[str, ...]
    workload: EpisodeWorkload
    record: bool

    def without(self, done: Container[tuple[str, int, int]]) -> Self:
        """The same for the policies that have not played it; `done`: (policy, seed, episode)."""
        left = [name for name in self.policies if (name, self.seed, self.episode) not in done]
        return replace(self, policies=tuple(left))


@dataclass(frozen=True)
class Row:
    """What one policy made of one episode: a row of results.parquet.

    Attributes:
        policy: its name.
        kind: what it is.
        seed: of the evaluation.
        episode: its number.
        metrics: by the names of `all_metrics`.
    """

    policy: str
    kind: Kind
    seed: int
    episode: int
    metrics: dict[str, float]

    @property
    def key(self) -> tuple[str, int, int]:
        """What no other row has."""
        return self.policy, self.seed, self.episode


Played = list[tuple[Row, EpisodeFile | None]]
"""Rows of one episode, with its recording if it was to be recorded."""


@dataclass(frozen=True)
class Contest:
    """Who plays, where, and for what.

    Attributes:
        schedulers: who plays.
        cluster: the hardware.
        objective: what J is made of.
        optimum: of which episodes the best schedule is searched; None for none.
        rules: how the world works; where functions wait centrally, the order is the scheduler's.
        cold_start: seconds, of every container.
    """

    schedulers: Sequence[Scheduler]
    cluster: ClusterConfig
    objective: Objective
    optimum: OptimumSettings | None
    rules: Rules = DEFAULT_RULES
    cold_start: float = 0.0

    def play(self, task: Task) -> Played:
        """Has every policy of a task play its episode."""
        best_J = self._best_J(task.workload)
        played: Played = []
        for scheduler in self.schedulers:
            if scheduler.name not in task.policies:
                continue
            env = self._env(task.workload, task.seed, task.record, scheduler)
            # Numbered by episode, so they do not depend on who plays what before, or where.
            draws = np.random.SeedSequence(task.seed, spawn_key=(SCHEDULER_KEY, task.episode))
            started = time.perf_counter()
            play(env, scheduler, self.objective, draws)
            seconds = time.perf_counter() - started
            power = env.cluster_config.power
            finished = PlayedEpisode(env.state, self.objective, power, seconds, best_J)
            metrics = {name: metric.compute(finished) for name, metric in all_metrics().items()}
            row = Row(scheduler.name, scheduler.kind, task.seed, task.episode, metrics)
            name = recording_name(row.policy, row.seed, row.episode)
            told = f"held-out episode {row.episode} of seed {row.seed}, placed by {row.policy}"
            played.append((row, episode_of(env, name, told) if task.record else None))
        return played

    def _env(
        self, workload: EpisodeWorkload, seed: int, record: bool, player: Scheduler | None = None
    ) -> RawEnv:
        rules, images = self.rules, None
        if rules.order is not None and player is not None:
            rules = replace(rules, order=player.order or rules.order, placement=player.fit)
        if rules.order is not None or rules.keeps_warm or self.cold_start > 0.0:
            images = Images.by_name(workload.templates, self.cold_start)
        return RawEnv(
            workload.arrival_times,
            workload.templates,
            self.cluster,
            seed,
            record,
            tenants=workload.tenants,
            rules=rules,
            images=images,
        )

    def _best_J(self, workload: EpisodeWorkload) -> float:
        if self.optimum is None:
            return math.nan
        env = self._env(workload, 0, record=False)
        if not self.optimum.allows(env):
            return math.nan
        return optimum(env, self.objective, self.optimum.memory_tiers).J


def recording_name(policy: str, seed: int, episode: int) -> str:
    """What a recorded episode and its file (with .json behind) are called."""
    return f"{policy}_{seed}_{episode:04d}"


Unit = TypeVar("Unit", contravariant=True)
Result = TypeVar("Result", covariant=True)


class Plays(Protocol[Unit, Result]):
    """A contest of any kind; processes get copies of it."""

    def play(self, task: Unit) -> Result:
        """Plays one task: the same in every process, whatever was played before."""


def play_all(
    contest: Plays[Unit, Result], tasks: Sequence[Unit], workers: int, address: str | None
) -> Iterator[Result]:
    """Plays tasks; what they come to is yielded as it is known, in any order.

    Args:
        contest: who plays, where.
        tasks: what.
        workers: processes that play, no more than tasks; 1 plays in this one, without Ray.
        address: of a running Ray cluster; None starts Ray on this machine.

    Raises:
        InputError: there is no Ray at the address.
    """
    workers = min(workers, len(tasks))
    if workers <= 1:
        yield from map(contest.play, tasks)
        return
    import ray  # takes seconds to import
    from ray.util import ActorPool

    # Cores are named as wanted: playing on more processes than cores is slower, not wrong.
    connect(address, num_cpus=workers if address is None else None)
    try:
        player = ray.remote(_Player)
        # As bytes: arrays that Ray shares cannot be written to, and players have some to work in.
        shared = ray.put(pickle.dumps(contest))
        pool = ActorPool([player.remote(shared) for _ in range(workers)])
        yield from pool.map_unordered(lambda actor, task: actor.play.remote(task), tasks)
    finally:
        ray.shutdown()


class _Player:
    """A contest, pickled, in a process of Ray's."""

    def __init__(self, contest: bytes) -> None:
        self._contest: Plays[Any, Any] = pickle.loads(contest)

    def play(self, task: Any) -> Any:
        """See `Plays.play`."""
        return self._contest.play(task)
