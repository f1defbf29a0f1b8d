"""Intervals and comparisons worked out by hand, and what an evaluation writes."""

import csv
import json
from pathlib import Path

import pytest

from agents.baseline import make_baselines
from agents.evaluation import (
    COLUMNS,
    EpisodeTable,
    Interval,
    Results,
    evaluate_all,
    interval,
    summarise,
    write_summary,
)
from agents.scheduler import Kind
from env.reward import METRICS, Objective
from env.schema import validated
from env.sim.episode_file import cluster_from_config, read_episode
from env.sim.replay import differences, replayed
from env.sim.validate import violations
from env.workloads.generator import WorkloadConfig, WorkloadGenerator
from env.workloads.templates import WorkflowConfig
from tests.env.worlds import TINY, world

# The 97.5% quantile of Student's t with 2 degrees of freedom, from a printed table.
T_2 = 4.302653


def rows_of(*values: float) -> list[dict[str, float]]:
    """An episode for each J; every other metric is 0."""
    return [{**dict.fromkeys(COLUMNS[:-1], 0.0), "J": value} for value in values]


def test_an_interval_by_hand() -> None:
    # Of 1, 2, 6: mean 3, variance (4 + 1 + 9) / 2 = 7, standard error sqrt(7 / 3) = 1.527525.
    found = interval([1, 2, 6])
    half = T_2 * 1.527525
    assert found.mean == pytest.approx(3)
    assert found.ci_low == pytest.approx(3 - half, rel=1e-5)
    assert found.ci_high == pytest.approx(3 + half, rel=1e-5)


@pytest.mark.parametrize("values", [[4.5], [4.5, 4.5, 4.5]])
def test_an_interval_without_spread_has_no_width(values: list[float]) -> None:
    assert interval(values) == Interval(4.5, 4.5, 4.5)


def test_rows_are_sorted_by_mean_j_and_compared_in_pairs() -> None:
    results: Results = {
        "worst": rows_of(6, 9, 9),
        "best_rule": rows_of(2, 4, 6),
        "learned": rows_of(1, 3, 2),
    }
    summary = summarise(
        results, {"worst": "baseline", "best_rule": "baseline", "learned": "learned"}
    )
    assert [row["policy"] for row in summary] == ["learned", "best_rule", "worst"]
    learned, best, worst = (row["J_over_best_baseline"] for row in summary)
    assert isinstance(learned, Interval) and isinstance(worst, Interval)
    # By episode -1, -1, -4: mean -2, variance (1 + 1 + 4) / 2 = 3, standard error 1.
    assert learned.mean == pytest.approx(-2)
    assert learned.ci_low == pytest.approx(-2 - T_2, rel=1e-5)
    assert learned.ci_high == pytest.approx(-2 + T_2, rel=1e-5)
    assert best == Interval(0, 0, 0)
    assert worst.mean == pytest.approx(4)  # 4, 5, 3


def test_without_baselines_the_best_policy_is_the_measure() -> None:
    results = {"one": rows_of(2, 4), "other": rows_of(5, 5)}
    summary = summarise(results, {"one": "learned", "other": "learned"})
    cells = [row["J_over_best_baseline"] for row in summary]
    assert [cell.mean for cell in cells if isinstance(cell, Interval)] == [0, 2]


def test_references_are_no_measure() -> None:
    results = {"seer": rows_of(1, 1), "rule": rows_of(3, 5), "learned": rows_of(2, 2)}
    kinds: dict[str, Kind] = {"seer": "reference", "rule": "baseline", "learned": "learned"}
    summary = summarise(results, kinds)
    assert [row["policy"] for row in summary] == ["seer", "learned", "rule"]
    cells = [row["J_over_best_baseline"] for row in summary]
    assert [cell.mean for cell in cells if isinstance(cell, Interval)] == [-3, -2, 0]
    del results["rule"]
    cells = [row["J_over_best_baseline"] for row in summarise(results, kinds)]
    assert [cell.mean for cell in cells if isinstance(cell, Interval)] == [-1, 0]


def test_summary_files(tmp_path: Path) -> None:
    results: Results = {"b": rows_of(3, 5), "a": rows_of(1, 2)}
    write_summary(tmp_path, summarise(results, {"a": "reference", "b": "baseline"}))
    rows = json.loads((tmp_path / "summary.json").read_text())
    assert [row["policy"] for row in rows] == ["a", "b"]
    for row in rows:
        assert list(row) == ["policy", "kind", *COLUMNS]
        assert set(METRICS) <= set(row)
        for key in COLUMNS:
            assert list(row[key]) == ["mean", "ci_low", "ci_high"]
            assert row[key]["ci_low"] <= row[key]["mean"] <= row[key]["ci_high"]
    with (tmp_path / "summary.csv").open() as file:
        table = list(csv.DictReader(file))
    assert list(table[0])[:5] == ["policy", "kind", "J_mean", "J_ci_low", "J_ci_high"]
    assert len(table[0]) == 2 + 3 * len(COLUMNS)
    assert [line["kind"] for line in table] == ["reference", "baseline"]
    for line, row in zip(table, rows, strict=True):
        assert line["policy"] == row["policy"]
        for key in COLUMNS:
            for part, value in row[key].items():
                assert float(line[f"{key}_{part}"]) == value


def test_episodes_file(tmp_path: Path) -> None:
    rows = rows_of(3, 5)
    with EpisodeTable(tmp_path) as written:
        for episode, row in enumerate(rows):
            written.add("b", episode, row)
            # On disk at once: an evaluation that is killed keeps what it has.
            with (tmp_path / "episodes.csv").open() as file:
                table = list(csv.DictReader(file))
            assert len(table) == episode + 1
    shown = [(line["policy"], line["episode"], float(line["J"])) for line in table]
    assert shown == [("b", "0", 3), ("b", "1", 5)]


def play_tiny(names: list[str], episodes: int, seed: int, record_to: Path | None) -> Results:
    """The named baselines in the tiny world."""
    config = world(*TINY)
    cluster = cluster_from_config(config["cluster"], "cluster")
    generator = WorkloadGenerator(
        validated(WorkflowConfig, config["workflow"], "workflow"),
        validated(WorkloadConfig, {**config["workload"], "seed": seed}, "workload"),
        cluster.single_core_speed,
    )
    told: list[tuple[str, int]] = []
    results = evaluate_all(
        make_baselines(names),
        cluster,
        generator,
        Objective(time_weight=1, cost_weight=1),
        episodes,
        seed,
        record_to,
        lambda name, index, row: told.append((name, index)),
    )
    assert told == [(name, index) for index in range(episodes) for name in names]
    return results


def test_recorded_episodes_are_valid_and_replay(tmp_path: Path) -> None:
    names = ["random", "worst_fit", "earliest_finish_stingy", "greedy_objective"]
    results = play_tiny(names, 2, 3, tmp_path / "episodes")
    files = sorted((tmp_path / "episodes").iterdir())
    assert {file.name for file in files} == {f"{name}_000{i}.json" for name in names for i in "01"}
    for file in files:
        episode = read_episode(file)
        assert episode.expected is not None
        assert violations(episode) == []
        assert differences(replayed(episode), episode.expected) == []
        # The file tells of the episode that the table counts.
        name, _, index = file.stem.rpartition("_")
        row = results[name][int(index)]
        assert row["rent"] == episode.expected.total_rent
        assert row["makespan"] == episode.expected.last_completion_time
        assert row["decisions"] == len(episode.actions)


def test_the_schedulers_meet_the_same_episodes_in_any_company() -> None:
    def without_speed(results: Results, name: str) -> list[dict[str, float]]:
        return [{k: v for k, v in row.items() if k != "decisions_per_s"} for row in results[name]]

    together = play_tiny(["random", "cheapest"], 3, 1, None)
    alone = play_tiny(["random"], 2, 1, None)
    other = play_tiny(["random"], 2, 2, None)
    assert without_speed(together, "random")[:2] == without_speed(alone, "random")
    assert without_speed(alone, "random") != without_speed(other, "random")
    decisions = [[row["decisions"] for row in rows] for rows in together.values()]
    assert decisions[0] == decisions[1]
