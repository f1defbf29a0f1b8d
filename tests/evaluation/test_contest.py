"""Every scheduler meets the same episodes, whoever else plays and wherever it is played."""

import math
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from agents.baseline import make_baselines
from env.score.metrics import METRICS
from env.score.optimum import OptimumSettings
from env.score.reward import Objective
from env.sim.declared.episode import EpisodeWorkload
from env.sim.declared.hardware import cluster_from_config
from env.sim.declared.keep_alive_policy import Lru
from env.sim.declared.ordering import FIRST_COME
from env.sim.declared.rules import DEFAULT_RULES, Lease, Rules
from env.workloads.generator import WorkloadGenerator
from env.workloads.source import workload_source
from evaluation.contest import Contest, Row, Task, play_all
from tests.env.worlds import CROWDED, TINY, world
from tests.episodes import assert_sound

SMALL = OptimumSettings(functions=6, nodes=4, memory_tiers=(1.0,))
TRACE = ("cluster=funcsched", "workload=azure_like", *CROWDED, "workload.sampling.ratio=0.1")


def contest_of(
    *names: str,
    seed: int = 0,
    optimum: OptimumSettings | None = None,
    rules: Rules = DEFAULT_RULES,
    overrides: Sequence[str] = TINY,
) -> Contest:
    """The named baselines in a small world."""
    config = world(*overrides)
    cluster = cluster_from_config(config["cluster"], "cluster")
    objective = Objective(time_weight=1, cost_weight=1)
    source = workload_source(config["workflow"], config["workload"], cluster, seed)
    players = make_baselines(names, queued=rules.order is not None)
    return Contest(players, cluster, {seed: source}, objective, optimum, rules, (2.0, 5.0), 100.0)


def tasks_of(contest: Contest, episodes: int, record: bool = False) -> list[Task]:
    (seed,) = contest.sources
    return [Task("", seed, episode, contest.names, record) for episode in range(episodes)]


def with_episode(contest: Contest, workload: EpisodeWorkload) -> Contest:
    """The same contest, in which every episode is this one."""
    source = SimpleNamespace(evaluation_episode=lambda episode: workload)
    return replace(contest, sources=dict.fromkeys(contest.sources, cast(WorkloadGenerator, source)))


def rows_of(contest: Contest, tasks: list[Task], workers: int = 1) -> dict[tuple[str, int], Row]:
    """Rows by policy and episode, without what a clock measured and what is not known (NaN)."""
    rows = {}
    for played in play_all({"": contest}, tasks, workers, None):
        for row, _ in played:
            assert row.metrics["decisions_per_s"] > 0
            known = {k: v for k, v in row.metrics.items() if not math.isnan(v)}
            same = {k: v for k, v in known.items() if k in METRICS}
            rows[row.policy, row.episode] = row.model_copy(update={"metrics": same})
    return rows


def test_recorded_episodes_are_valid_and_replay() -> None:
    contest = contest_of(
        "random", "worst_fit", "earliest_finish_stingy", "greedy_objective", seed=3
    )
    for task in tasks_of(contest, 2, record=True):
        for row, episode in contest.play(task):
            assert episode is not None and episode.expected is not None
            assert_sound(episode)
            # The recording tells of the episode that the row counts.
            assert row.metrics["rent"] == episode.expected.total_rent
            assert row.metrics["makespan"] == episode.expected.last_completion_time
            assert row.metrics["decisions"] == len(episode.actions)


def test_the_schedulers_meet_the_same_episodes_in_any_company() -> None:
    both, one = contest_of("random", "cheapest", seed=1), contest_of("random", seed=1)
    together = rows_of(both, tasks_of(both, 3))
    alone = rows_of(one, tasks_of(one, 2))
    assert alone == {key: together[key] for key in alone}
    third = contest_of("random", seed=2)
    other = rows_of(third, tasks_of(third, 2))
    assert [row.metrics for row in other.values()] != [row.metrics for row in alone.values()]
    for episode in range(3):
        assert (
            together["random", episode].metrics["decisions"]
            == together["cheapest", episode].metrics["decisions"]
        )


def test_a_task_is_played_by_those_who_have_not() -> None:
    contest = contest_of("random", "cheapest")
    (task,) = tasks_of(contest, 1)
    left = task.without(
        {
            *(("random", "", 0, 0), ("cheapest", "", 1, 0), ("cheapest", "", 0, 1)),
            ("cheapest", "lease=always", 0, 0),
        }
    )
    assert [row.policy for row, _ in contest.play(left)] == ["cheapest"]


def test_the_gap_to_the_optimum_is_known_where_all_schedules_can_be_tried() -> None:
    contest = contest_of("random", "cheapest", optimum=SMALL)
    (task,) = tasks_of(contest, 1)
    assert all(math.isnan(row.metrics["optimum_gap"]) for row, _ in contest.play(task))
    templates = contest.sources[0].evaluation_episode(0).templates
    chain = next(t for t in templates if t.function_count == 3)
    small = with_episode(contest, EpisodeWorkload((0.0,), (chain,)))
    gaps = {row.policy: row.metrics["optimum_gap"] for row, _ in small.play(task)}
    # All on one small server at once: nothing is cheaper, and the large one starts later.
    assert gaps["cheapest"] == pytest.approx(0, abs=1e-12)
    assert gaps["random"] > 0.5  # pays a second server


FREE = Rules(FIRST_COME, "asked", lease=Lease(kind="always", charged=False), keep_alive=Lru())
WORLDS = {
    "tiny": (TINY, DEFAULT_RULES, ["random", "cheapest"]),
    "queued": (TINY, FREE, ["fcfs", "sjf+cheapest"]),
    "trace": (TRACE, Rules(keep_alive=Lru()), ["random", "cheapest"]),
    "trace, queued": (TRACE, FREE, ["fcfs", "funcsched", "sjf+cheapest"]),
}


@pytest.mark.parametrize("name", WORLDS)
def test_parts_of_the_time_and_shares_of_workflows(name: str) -> None:
    """What is known of functions adds up; what is known of workflows is in order."""
    overrides, rules, players = WORLDS[name]
    contest = contest_of(*players, rules=rules, overrides=overrides)
    for task in tasks_of(contest, 2):
        for row, _ in contest.play(task):
            found, times = row.metrics, row.flow_time_quantiles
            assert times == sorted(times) and len(times) == 200
            assert times[99] <= found["flow_time_median"] <= times[100]
            assert found["slo_2"] <= found["slo_5"]
            assert found["late"] == pytest.approx(np.mean(np.array(times) > 100), abs=0.01)
            assert (found["queueing"] > 0) <= (rules.order is not None)
            assert (found["server_start"] > 0) <= (rules.lease.kind == "hourly")
            parts = ("queueing", "server_start", "container_start", "transfer", "execution")
            if rules == DEFAULT_RULES:  # there functions have no images
                assert all(math.isnan(found[part]) for part in parts[1:])
            elif "trace" in name and rules.order is not None:
                # A function of its own is all that a workflow has to wait for.
                assert sum(found[part] for part in parts) == pytest.approx(found["flow_time"])


def test_an_order_of_the_scheduler_is_played() -> None:
    contest = contest_of("fcfs", "sjf", "sjf+best_fit", rules=FREE, overrides=TRACE)
    (kind,) = contest.cluster.server_types
    one_small = replace(contest.cluster, server_types=(replace(kind, count=1, memory=1024),))
    crowded = replace(contest, cluster=one_small)
    (task,) = tasks_of(crowded, 1)
    waits = {row.policy: row.metrics["queueing"] for row, _ in crowded.play(task)}
    assert waits["sjf"] < waits["fcfs"]
    assert waits["sjf+best_fit"] == waits["sjf"]  # there is one node only
