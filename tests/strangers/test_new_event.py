"""A new kind of event in one file: servers fail at times from a list, and come back."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from agents.baseline import make_baselines
from agents.scheduler import play
from env.score.reward import Objective
from env.sim.declared.aside import Change
from env.sim.declared.episode import Episode, EpisodeWorkload
from env.sim.declared.hardware import ServerType
from env.sim.declared.rules import Lease, Rules
from env.sim.episode.episode_file import read_episode
from env.sim.events.endings import bring_back, take_down
from env.sim.state.block import State
from env.sim.view.raw_env import RawEnv
from report import gantt
from report.timeline import read_timeline
from tests.env.small import chain, cluster_of
from tests.episodes import assert_sound, checked, written

CLUSTER = cluster_of(ServerType("s", 2, 3.6, 0.0, 1, 1, 100))
COLD = cluster_of(ServerType("s", 2, 3.6, 7.0, 1, 1, 100))
JOB = chain(50_000, 50_000, memory=100)  # 50 s each


def fails(server: int, state: State) -> None:
    take_down(state, server)


def recovers(server: int, state: State) -> None:
    bring_back(state, server)


def failures(*listed: tuple[int, float, float]) -> tuple[Change, ...]:
    """Of (server, from, until)."""
    changes = [Change(begin, partial(fails, server)) for server, begin, _ in listed]
    changes += [Change(end, partial(recovers, server)) for server, _, end in listed]
    return tuple(sorted(changes, key=lambda change: change.time))


def test_by_hand(tmp_path: Path) -> None:
    """Server 0 fails at 70, 20 s into the second function, which runs on server 1 then."""
    workload = EpisodeWorkload((0.0,), (JOB,))
    episode = Episode(workload, CLUSTER, changes=failures((0, 70.0, 5000.0)))
    env = RawEnv.of(episode, record=True)
    for server in (0, 0, 1):
        env.step("s", server, 0, 100)
    runs = [tuple(run) for run in env.runs[["fn_id", "node", "start_time", "end_time", "outcome"]]]
    assert runs == [(0, 0, 0.0, 50.0, 0), (1, 0, 50.0, 70.0, 2), (1, 1, 70.0, 120.0, 0)]
    assert_sound(read_episode(written(env, tmp_path / "failure.json")))
    leases = read_timeline(tmp_path / "failure.json").leases
    assert leases["end"].tolist()[0] == 70.0
    gantt.main([str(tmp_path / "failure.json"), "-o", str(tmp_path / "gantt.png")])


@pytest.mark.parametrize("order", ["fcfs", None])
@pytest.mark.parametrize("kind", ["hourly", "always"])
def test_at_random(order: str | None, kind: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        (player,) = make_baselines([order or "cheapest"], queued=order is not None)
        times = 60.0 * np.arange(5) + rng.uniform(0.0, 20.0, 5)
        listed = [(i % 2, float(time), float(time + 50.0)) for i, time in enumerate(times)]
        rules = Rules(player.order, player.fit, lease=Lease(kind=kind, step=60.0))
        workload = EpisodeWorkload(tuple(rng.uniform(0, 200, 5).tolist()), (JOB,) * 5)
        env = RawEnv.of(Episode(workload, COLD, rules, changes=failures(*listed)), record=True)
        play(env, player, Objective(time_weight=1, cost_weight=1), np.random.SeedSequence(0))
        checked(env)
