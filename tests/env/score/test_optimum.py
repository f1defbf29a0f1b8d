"""The best schedule of small episodes: worked out by hand, and never beaten."""

from itertools import product

import pytest

from env.score.metrics import episode_metrics
from env.score.optimum import OptimumSettings, optimum
from env.score.reward import Objective
from env.sim.declared.hardware import ServerType
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.view.raw_env import RawEnv
from tests.env.small import cluster_of

BOTH = Objective(time_weight=1, cost_weight=1)
TIME = Objective(time_weight=1, cost_weight=0)


def fork_join(memory: int = 1024) -> WorkflowTemplate:
    """Two functions of 10 s on one core each, then one of 10 s; no data."""
    return WorkflowTemplate("fork", [10_000] * 3, [memory] * 3, [1] * 3, [(0, 2), (1, 2)], [0, 0])


# One core each, 10 s to start; the second costs as much again.
PAIR = cluster_of(
    ServerType("one", 1, 1.0, 10.0, 1, 1, 4096), ServerType("two", 1, 1.0, 10.0, 1, 1, 4096)
)


def test_time_alone_takes_both_servers() -> None:
    # Side by side: 10 s of start, 10 s and 10 s of work = 30 s; on one core the first two share it
    # and take 20 s, 40 s in all. The critical path is 20 s.
    env = RawEnv([0.0], [fork_join()], PAIR)
    assert optimum(env, TIME, [1.0]) == pytest.approx(30 / 20)
    assert env.decisions == 0


def test_cost_makes_it_one_server() -> None:
    # 30 s of work at 1 USD per core-hour are worth 30 / 3600 USD: an hour of one server is a cost
    # ratio of 120, of two 240.
    lowest = optimum(RawEnv([0.0], [fork_join()], PAIR), BOTH, [1.0])
    assert lowest == pytest.approx(40 / 20 + 120)


def test_less_memory_lets_two_run_at_once() -> None:
    # A node of two cores that holds one function with all its memory (1024 MB of 1500) or two with
    # 0.7 of it: one after another 10 + 10 + 10 s, or together 10 / 0.7 s (717 MB of 1024: a speed
    # of 700 of 1000) and the last one with all of it in 10 s.
    node = cluster_of(ServerType("one", 1, 1.0, 0.0, 1, 2, 1500))
    env = RawEnv([0.0], [fork_join()], node)
    assert optimum(env, TIME, [1.0]) == pytest.approx(30 / 20)
    assert optimum(env, TIME, [0.7, 1.0]) == pytest.approx((10 / 0.7 + 10) / 20)


@pytest.mark.parametrize("objective", [TIME, BOTH])
def test_no_other_schedule_is_better(objective: Objective) -> None:
    cluster = cluster_of(
        ServerType("slow", 1, 0.3, 10.0, 2, 1, 2048),
        ServerType("fast", 1, 0.9, 4.0, 1, 2, 2048, 1_500),
    )
    arrivals, templates = [0.0, 7.0], [fork_join(), fork_join(2000)]
    best = float("inf")
    for nodes in product(range(3), repeat=6):
        env = RawEnv(arrivals, templates, cluster)
        for node in nodes:
            function = env.current_function
            assert function is not None
            env.step(*env.place_of(node), function.memory_req)
        best = min(best, episode_metrics(env.state, objective)["J"])
    assert best == optimum(RawEnv(arrivals, templates, cluster), objective, [1.0])


def test_only_small_episodes_are_tried() -> None:
    env = RawEnv([0.0, 1.0], [fork_join()] * 2, PAIR)
    settings = OptimumSettings(functions=6, nodes=2, memory_tiers=(1.0,))
    assert settings.allows(env)
    assert not settings.model_copy(update={"functions": 5}).allows(env)
    assert not settings.model_copy(update={"nodes": 1}).allows(env)
