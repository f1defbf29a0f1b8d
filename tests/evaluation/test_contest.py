"""Every scheduler meets the same episodes, whoever else plays and wherever it is played."""

import math
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

import pytest

from agents.baseline import make_baselines
from env.base.schema import validated
from env.score.metrics import METRICS
from env.score.optimum import OptimumSettings
from env.score.reward import Objective
from env.sim.check.validate import violations
from env.sim.cluster_file import cluster_from_config
from env.sim.episode.replay import differences, replayed
from env.workloads.generator import EpisodeWorkload, WorkloadConfig, WorkloadGenerator
from env.workloads.templates import WorkflowConfig
from evaluation.contest import Contest, Row, Task, all_metrics, play_all
from tests.env.worlds import TINY, world

SMALL = OptimumSettings(functions=6, nodes=4, memory_tiers=(1.0,))


def contest_of(*names: str, optimum: OptimumSettings | None = None) -> Contest:
    """The named baselines in the tiny world."""
    cluster = cluster_from_config(world(*TINY)["cluster"], "cluster")
    objective = Objective(time_weight=1, cost_weight=1)
    return Contest(make_baselines(names), cluster, objective, optimum)


def tasks_of(contest: Contest, episodes: int, seed: int, record: bool = False) -> list[Task]:
    config = world(*TINY)
    generator = WorkloadGenerator(
        validated(WorkflowConfig, config["workflow"], "workflow"),
        validated(WorkloadConfig, {**config["workload"], "seed": seed}, "workload"),
        contest.cluster.single_core_speed,
    )
    names = tuple(scheduler.name for scheduler in contest.schedulers)
    return [
        Task(seed, episode, names, generator.evaluation_episode(episode), record)
        for episode in range(episodes)
    ]


def rows_of(contest: Contest, tasks: list[Task], workers: int = 1) -> dict[tuple[str, int], Row]:
    """Rows by policy and episode, without what a clock measured and what is not known (NaN)."""
    rows = {}
    for played in play_all(contest, tasks, workers, None):
        for row, _ in played:
            assert row.metrics["decisions_per_s"] > 0
            same = {k: v for k, v in row.metrics.items() if k in METRICS}
            rows[row.policy, row.episode] = replace(row, metrics=same)
    return rows


def test_recorded_episodes_are_valid_and_replay() -> None:
    contest = contest_of("random", "worst_fit", "earliest_finish_stingy", "greedy_objective")
    for task in tasks_of(contest, 2, 3, record=True):
        for row, episode in contest.play(task):
            assert episode is not None and episode.expected is not None
            assert violations(episode) == []
            assert differences(replayed(episode), episode.expected) == []
            # The recording tells of the episode that the row counts.
            assert row.metrics["rent"] == episode.expected.total_rent
            assert row.metrics["makespan"] == episode.expected.last_completion_time
            assert row.metrics["decisions"] == len(episode.actions)


def test_recorded_episodes_say_whose_a_workflow_is() -> None:
    contest = contest_of("random")
    (task,) = tasks_of(contest, 1, 3, record=True)
    owners = tuple("ab"[index % 2] for index in range(len(task.workload.templates)))
    shared = replace(task, workload=replace(task.workload, tenants=owners))
    ((_, told),) = contest.play(shared)
    ((_, untold),) = contest.play(task)
    assert told is not None and untold is not None
    assert tuple(told.tenants) == owners
    assert untold.tenants == []
    assert told.expected == untold.expected


def test_the_schedulers_meet_the_same_episodes_in_any_company() -> None:
    both, one = contest_of("random", "cheapest"), contest_of("random")
    together = rows_of(both, tasks_of(both, 3, 1))
    alone = rows_of(one, tasks_of(one, 2, 1))
    assert alone == {key: together[key] for key in alone}
    other = rows_of(one, tasks_of(one, 2, 2))
    assert [row.metrics for row in other.values()] != [row.metrics for row in alone.values()]
    for episode in range(3):
        assert (
            together["random", episode].metrics["decisions"]
            == together["cheapest", episode].metrics["decisions"]
        )


def test_a_task_is_played_by_those_who_have_not() -> None:
    contest = contest_of("random", "cheapest")
    (task,) = tasks_of(contest, 1, 0)
    left = task.without({("random", 0, 0), ("cheapest", 1, 0), ("cheapest", 0, 1)})
    assert [row.policy for row, _ in contest.play(left)] == ["cheapest"]


def played_by(workers: int) -> Any:
    contest = contest_of("random", "earliest_finish")
    return rows_of(contest, tasks_of(contest, 3, 0, record=True), workers=workers)


@pytest.mark.long
def test_two_processes_come_to_the_same_numbers() -> None:
    # In a process of its own: in this one other tests may have started Ray.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:
        assert other.submit(played_by, 2).result() == played_by(1)


def test_the_gap_to_the_optimum_is_known_where_all_schedules_can_be_tried() -> None:
    contest = contest_of("random", "cheapest", optimum=SMALL)
    (task,) = tasks_of(contest, 1, 0)
    assert all(math.isnan(row.metrics["optimum_gap"]) for row, _ in contest.play(task))
    chain = next(t for t in task.workload.templates if t.function_count == 3)
    small = replace(task, workload=EpisodeWorkload((0.0,), (chain,)))
    gaps = {row.policy: row.metrics["optimum_gap"] for row, _ in contest.play(small)}
    # All on one small server at once: nothing is cheaper, and the large one starts later.
    assert gaps["cheapest"] == pytest.approx(0, abs=1e-12)
    assert gaps["random"] > 0.5  # pays a second server


def test_every_metric_says_what_it_is() -> None:
    for name, metric in all_metrics().items():
        assert metric.name == name
        assert metric.formula
