"""The checker accepts right schedules and names what is wrong with any other."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents.order.fcfs import Fcfs
from env.sim.check.validate import main, violations
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.images import Images
from env.sim.declared.keep_alive_policy import Fixed, Lru, NoKeepAlive
from env.sim.declared.rules import KeepAlive, Lease, Rules
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.episode.episode_file import read_episode, write_episode
from env.sim.episode.model import EpisodeFile
from env.sim.episode.recording import episode_of
from env.sim.view.raw_env import RawEnv
from tests.env.sim.test_validate_world import leaves, moved

GOLDEN = sorted((Path(__file__).parents[2] / "golden").glob("*.json"))
CHAIN, MEMORY, LEASE, GRAPH = GOLDEN[1], GOLDEN[3], GOLDEN[4], GOLDEN[5]


def _one_server(rate: float, speed: int) -> ClusterConfig:
    return ClusterConfig(speed, 1e9, 1e9, 1e9, (ServerType("s", 1, rate, 0.0, 1, 1, 4),))


def test_a_wait_of_an_instant_is_a_wait() -> None:
    """The second function waits 4e-11 s for the memory of the first."""
    both = WorkflowTemplate("both", [4, 4], [4, 4], [1, 1], np.zeros((0, 2), np.int64), [])
    env = RawEnv([0.0], [both], _one_server(1.0, 10**11), record=True)
    for _ in range(2):
        env.step("s", 0, 0, 4)
    episode = episode_of(env, "instant", "a test")
    assert violations(episode) == []


def test_large_bills_are_compared_by_their_size() -> None:
    """Rent of 50 times 3 hours at an odd rate: the sums differ in their last digits."""
    rate = 27493.546826731344
    chain = WorkflowTemplate(
        "chain", [10_000] * 50, [1] * 50, [1] * 50, [(k, k + 1) for k in range(49)], [0] * 49
    )
    env = RawEnv([0.0], [chain], _one_server(rate, 1), record=True)
    while not env.done:
        env.step("s", 0, 0, 1)
    episode = episode_of(env, "large", "a test")
    assert violations(episode) == []
    rent = env.total_rent
    assert rent > 3.5e6
    changed = episode.model_dump(by_alias=True)
    changed["expected"]["total_rent"] = rent * (1 + 1e-9)
    found = violations(EpisodeFile.model_validate(changed))
    assert [line.split(" ")[0] for line in found] == ["total_rent"]


def test_an_hour_of_work_is_one_or_two_hours_by_rounding() -> None:
    """From 1254.1 s on it ends an instant after the first hour of its lease."""
    hour = WorkflowTemplate("hour", [3600], [1], [1], np.zeros((0, 2), np.int64), [])
    env = RawEnv([1254.1222905422305], [hour], _one_server(1.0, 1), record=True)
    env.step("s", 0, 0, 1)
    assert env.total_rent == 2.0
    assert violations(episode_of(env, "hour", "a test")) == []


LATE = 1e7
"""Seconds: float64 tells moments 2e-9 s apart here; so much do differences of times lose."""


@pytest.mark.parametrize("lease", [Lease(), Lease(step=1.1), Lease(kind="always", step=7.7e3)])
def test_late_schedules_of_any_world_are_right(lease: Lease) -> None:
    """Containers kept for 0.1 s, transfers of thirds of seconds, many leases of an odd rate."""
    chain = WorkflowTemplate(
        "chain", [1, 5 * 10**9, 10**10], [1, 2, 4], [1, 1, 2], [(0, 1), (1, 2)], [10**9, 10**8]
    )
    server = ServerType("s", 2, 27493.546826731344, 2.7, 2, 1, 4)
    cluster = ClusterConfig(10**10, 3e9, 3e9, 3e9, (server,))
    arrivals = [0.0, *(LATE + 0.7 * k for k in range(8)), *(LATE + 1e4 / 3 * k for k in range(8))]
    env = RawEnv(
        arrivals,
        [chain] * len(arrivals),
        cluster,
        record=True,
        rules=Rules(lease=lease, keep_alive=Fixed(keep=0.1)),
        images=Images.by_name([chain], 0.3),
    )
    turn = 0
    while not env.done:
        turn += 1
        function = env.current_function
        assert function is not None
        env.step("s", turn % 2, turn // 2 % 2, function.memory_req)
    assert violations(episode_of(env, "late", "a test")) == []


def test_work_that_takes_no_time_begins_a_lease() -> None:
    """An operation of 1e-11 s is lost beside 1e7 s: its server is started and paid all the same."""
    one = WorkflowTemplate("one", [1], [4], [1], np.zeros((0, 2), np.int64), [])
    env = RawEnv([LATE, LATE], [one] * 2, _one_server(1.0, 10**11), record=True)
    while not env.done:
        env.step("s", 0, 0, 4)
    assert env.total_rent == 1.0
    episode = episode_of(env, "short", "a test")
    assert episode.expected is not None
    assert episode.expected.servers[0].lease_seconds == 3600
    assert [run.end_time for run in episode.expected.runs] == [LATE, LATE]
    assert violations(episode) == []


@pytest.mark.parametrize("keep_alive", [NoKeepAlive(), Lru()])
def test_functions_of_no_length_wait_their_turn(keep_alive: KeepAlive) -> None:
    """Where each takes all memory of the one node, none starts beside another."""
    one = WorkflowTemplate("one", [1, 1, 10**12], [4] * 3, [1] * 3, np.zeros((0, 2), np.int64), [])
    env = RawEnv(
        [LATE] * 3,
        [one] * 3,
        _one_server(1.0, 10**11),
        record=True,
        rules=Rules(Fcfs(), keep_alive=keep_alive),
        images=Images.by_name([one], 0.0),
    )
    assert env.done and env.total_rent == 1.0
    assert violations(episode_of(env, "short", "a test")) == []


def _changed(path: Path, change: Callable[[Any], None]) -> EpisodeFile:
    document = read_episode(path).model_dump(by_alias=True)
    change(document["expected"])
    return EpisodeFile.model_validate(document)


def _shift(table: str, row: int, seconds: float, *keys: str) -> Callable[[Any], None]:
    def change(results: Any) -> None:
        for key in keys:
            results[table][row][key] += seconds

    return change


def _drop_function(results: Any) -> None:
    results["runs"] = results["runs"][:-1]


def _set(table: str, row: int, key: str, value: Any) -> Callable[[Any], None]:
    def change(results: Any) -> None:
        results[table][row][key] = value

    return change


@pytest.mark.parametrize(
    ("path", "change", "words"),
    [
        (GRAPH, _drop_function, ["workflow 1 function 11", "0 times"]),
        (CHAIN, _shift("runs", 3, 0.1, "end_time"), ["function 3", "41.7", "41.6"]),
        (
            CHAIN,
            _shift("runs", 2, -0.1, "submission_time", "joined_time", "dispatch_time"),
            ["function 2", "submission_time", "20.1 is due"],
        ),
        (CHAIN, _shift("runs", 3, -8.0, "server_start_time"), ["server_start_time is 0.0", "8.0"]),
        (MEMORY, _set("runs", 1, "start_time", 5.0), ["workflow 1", "no container makes room"]),
        (LEASE, _set("servers", 0, "lease_seconds", 10800.0), ["3 hours rented, 4 are due"]),
        (LEASE, _set("servers", 0, "lease_expiration_time", 20050.0), ["after the lease ends"]),
    ],
)
def test_each_kind_of_error_is_named(
    path: Path, change: Callable[[Any], None], words: list[str]
) -> None:
    found = violations(_changed(path, change))
    assert any(all(word in line for word in words) for line in found), found


@pytest.mark.parametrize("path", [CHAIN, MEMORY, LEASE], ids=lambda path: path.stem)
def test_no_number_can_be_changed_unseen(path: Path) -> None:
    """Every number of the results, moved a little, is seen."""
    episode = read_episode(path)
    assert episode.expected is not None
    numbers = leaves(episode.expected.model_dump(mode="json"))
    assert len(numbers) > 50
    for leaf in numbers:
        document = episode.model_dump(mode="json", by_alias=True)
        holder = document["expected"]
        for key in leaf[:-1]:
            holder = holder[key]
        holder[leaf[-1]] = moved(leaf[-1], holder[leaf[-1]], 1e-6)
        assert violations(EpisodeFile.model_validate(document)), leaf


def test_decision_order() -> None:
    document = read_episode(GOLDEN[2]).model_dump(by_alias=True)
    for rows, key in ((document, "actions"), (document["expected"], "runs")):
        rows[key] = (rows[key][1], rows[key][0], *rows[key][2:])
    found = violations(EpisodeFile.model_validate(document))
    assert any("comes before" in line for line in found), found


def test_placements_that_cannot_be() -> None:
    document = read_episode(CHAIN).model_dump(by_alias=True)
    document["expected"]["runs"][0]["memory_allocated_mb"] = 10_000
    document["expected"]["runs"][1]["server_index"] = 4
    found = violations(EpisodeFile.model_validate(document))
    assert any("10000 MB" in line and "8192" in line for line in found), found
    assert any("small 4 node 0, which does not exist" in line for line in found), found


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(path) for path in GOLDEN]) == 0
    assert capsys.readouterr().out == ""
    bad = tmp_path / "bad.json"
    write_episode(bad, _changed(LEASE, _set("servers", 0, "lease_seconds", 10800.0)))
    assert main([str(bad)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{bad}: server small 0: 3 hours rented, 4 are due"
    ]
    bare = tmp_path / "bare.json"
    write_episode(bare, read_episode(LEASE).model_copy(update={"expected": None}))
    for path in (bare, tmp_path / "absent.json"):
        assert main([str(path)]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert len(captured.err.splitlines()) == 1
        assert str(path) in captured.err
