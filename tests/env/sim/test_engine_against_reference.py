"""Where functions are placed at once, engine, reference and goldens have the same numbers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given

from env.sim.check.validate import violations
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.episode.episode_file import read_episode
from env.sim.episode.recording import episode_of
from env.sim.episode.replay import replayed
from env.sim.view.raw_env import RawEnv
from env.sim.view.step_log import StepLog
from tests.env.small import functions
from tests.episodes import begun
from tests.reference_inputs import Decided, play_plain
from tests.reference_world import ReferenceWorld
from tests.strategies import Scenario, scenarios

GOLDEN = sorted((Path(__file__).parents[2] / "golden").glob("*.json"))
assert len(GOLDEN) == 6


def play(scenario: Scenario, **others: Any) -> RawEnv:
    """The engine, recorded, having played a scenario; `others` are arguments of a `RawEnv`."""
    env = begun(scenario.arrival_times, scenario.templates, scenario.cluster, record=True, **others)
    while (function := env.current_function) is not None:
        env.step(*scenario.placements[function.wf_id, function.fn_id])
    return env


def assert_same(env: RawEnv, wanted: ReferenceWorld, decided: list[Decided]) -> None:
    """Same decisions, times, leases and rents; what has completed is in the order of the ends."""
    assert decided == [
        (log.wf_id, log.fn_id, log.creation_time, tuple(log.target_node_before)) for log in env.logs
    ]
    ends = sorted((one.end, one.wf_id, one.fn_id) for one in wanted.runs)
    assert [one for log in env.logs for one in log.completed] == [tuple(end[1:]) for end in ends]
    runs = {(run["wf_id"], run["fn_id"]): run for run in env.runs}
    fields = ("submission", "start", "end", "server_start", "data_transfer")
    for one in wanted.runs:
        own = [runs[one.wf_id, one.fn_id][f"{field}_time"] for field in fields]
        assert own == [one.dispatched, one.start, one.end, one.startup, one.transfer]
    leases = [max(0.0, server.expiration) for server in wanted.servers]
    assert np.maximum(0.0, env.state.servers["expiration_time"]).tolist() == leases
    rents = [wanted.rent(server) for server in wanted.servers]
    paid = env.state.ledger["rent"].reshape(len(rents), -1).sum(axis=1)
    assert paid.tolist() == pytest.approx(rents)
    assert sum(log.rent for log in env.logs) == pytest.approx(env.total_rent)


EIGHTEEN_YEARS = Scenario(
    (0.0, 0.0, 0.0),
    (functions(1), functions(1_000_000), functions(4_000_000_000)),
    ClusterConfig(1_000_000, 1e3, 3e2, 12.5, (ServerType("slow", 1, 0.0, 0.0, 1, 2, 4, 7),)),
    {(0, 0): ("slow", 0, 0, 4), (1, 0): ("slow", 0, 0, 1), (2, 0): ("slow", 0, 0, 1)},
)
"""At 7 operations a second: so long that float64 no longer holds a nanosecond."""


@given(scenario=scenarios())
@example(EIGHTEEN_YEARS)
def test_random_episodes(scenario: Scenario) -> None:
    """As the reference has them; the checker agrees."""
    env = play(scenario)
    assert_same(env, *play_plain(scenario))
    assert violations(episode_of(env, "random", "")) == []


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_golden_episodes_are_met_bit_for_bit(path: Path) -> None:
    """By the engine, in all that the file says; by the reference, as the engine is held to it."""
    episode, wanted = read_episode(path), json.loads(path.read_text())["expected"]
    scenario = Scenario(
        tuple(episode.arrival_times),
        tuple(episode.templates()),
        episode.cluster,
        {row.function: (*row.place, row.memory_allocated_mb) for row in episode.actions},
    )
    env = play(scenario)
    assert_same(env, *play_plain(scenario))
    assert [(log.wf_id, log.fn_id) for log in env.logs] == [row.function for row in episode.actions]
    assert wanted["decision_count"] == len(env.logs)
    assert wanted["decisions"] == [
        {
            "submission_time": log.submission_time,
            "cold_start_time": log.cold_start_time,
            "data_transfer_time": log.data_transfer_time,
            "creation_time": log.creation_time,
            "rent": log.rent,
            "completed_before_next_decision": [list(one) for one in log.completed],
            "target_node_before": dict(
                zip(row["target_node_before"], log.target_node_before, strict=True)
            ),
        }
        for log, row in zip(env.logs, wanted["decisions"], strict=True)
    ]
    times = ("submission_time", "creation_time", "start_time", "completion_time")
    for row in wanted["functions"]:
        own = env.workload.workflows[row["workflow_id"]].functions[row["function_id"]]
        assert {key: getattr(own, key) for key in times} == {key: row[key] for key in times}
    for row in wanted["servers"]:
        server = env.cluster.servers[row["server_type"]][row["server_index"]]
        assert (server.hours_rented, server.expiration_time, server.rent) == (
            row["hours_rented"],
            row["lease_expiration_time"],
            row["rent"],
        )
    results = replayed(episode)
    assert results.total_rent == wanted["total_rent"]
    assert results.last_completion_time == wanted["last_completion_time"]
    assert list(results.workflow_completion_times) == wanted["workflow_completion_times"]


@given(scenario=scenarios())
def test_replay_and_fork(scenario: Scenario) -> None:
    """Reset, replay from a file and a fork at any moment all end the same way."""
    env = play(scenario)
    episode = episode_of(env, "first", "")
    assert replayed(episode) == episode.expected
    first = env.logs
    env.reset()
    half = len(first) // 2

    def play_again(part: RawEnv, logs: list[StepLog]) -> None:
        for log in logs:
            place = (log.server_name, log.server_id, log.numa_node_id, log.memory_alloc)
            assert part.step(*place) == log

    play_again(env, first[:half])
    fork = env.fork()
    play_again(fork, first[half:])
    assert fork.done
    assert len(env.logs) == half
    play_again(env, first[half:])
    assert env.logs == first
    assert env.total_rent == fork.total_rent
