"""The lower bound by hand, and that no schedule undercuts it."""

import numpy as np
import pytest

from agents.baseline import known_baselines, make_baselines
from agents.scheduler import play
from env.score.lower_bound import lower_bound
from env.score.metrics import episode_metrics
from env.score.reward import Objective
from env.sim.declared.hardware import ServerType
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.view.raw_env import RawEnv
from tests.env import small
from tests.env.small import cluster_of

BOTH = Objective(time_weight=1, cost_weight=1)


def server(name: str, rate: float, cold: float, cpu: int, speed: int | None = None) -> ServerType:
    return ServerType(name, 1, rate, cold, 1, cpu, 8192, speed)


def chain(seconds: int) -> WorkflowTemplate:
    """Two functions on one core each, `seconds` together at the cluster's core speed."""
    return small.chain(500 * seconds, 500 * seconds, memory=512)


def test_the_bound_by_hand() -> None:
    cluster = cluster_of(server("small", 0.2, 20.0, 1), server("big", 0.8, 50.0, 8))
    env = RawEnv([0.0, 15.0, 100.0], [chain(10)] * 3, cluster)
    # Nothing starts before 20 s: flow times are at least 30, 15 and 10 s, slowdowns 3, 1.5 and 1.
    # 30 s of work cost 30 / 3600 hours at 0.1 USD per core-hour; an hour costs at least 0.2 USD.
    slowdown, cost_ratio = 5.5 / 3, 0.2 / (30 / 3600 * 0.1)
    assert lower_bound(env.state, BOTH) == pytest.approx(slowdown + cost_ratio)
    assert lower_bound(env.state, Objective(time_weight=2, cost_weight=0)) == pytest.approx(
        2 * slowdown
    )


def test_much_work_costs_more_than_an_hour() -> None:
    cluster = cluster_of(server("small", 0.2, 0.0, 1), server("big", 0.8, 0.0, 8))
    env = RawEnv([0.0], [chain(36_000)], cluster)
    assert lower_bound(env.state, BOTH) == pytest.approx(2)


def test_a_faster_core_shortens_the_chain() -> None:
    cluster = cluster_of(server("plain", 0.2, 0.0, 1), server("fast", 0.8, 0.0, 1, speed=2_000))
    env = RawEnv([0.0], [chain(10)], cluster)
    assert lower_bound(env.state, Objective(time_weight=1, cost_weight=0)) == pytest.approx(0.5)


def test_no_baseline_undercuts_it() -> None:
    cluster = cluster_of(server("small", 0.2, 20.0, 2), server("fast", 0.8, 5.0, 4, speed=1_500))
    for scheduler in make_baselines(known_baselines()):
        env = RawEnv([0.0, 3.0, 40.0], [chain(10), chain(4_000), chain(50)], cluster)
        play(env, scheduler, BOTH, np.random.SeedSequence(0))
        assert episode_metrics(env.state, BOTH)["bound_gap"] >= 0
