"""The checker accepts right schedules and names what is wrong with any other."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

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
from tests.documents import Change, put
from tests.env.small import chain, cluster_of, functions

GOLDEN = sorted((Path(__file__).parents[2] / "golden").glob("*.json"))
CHAIN, MEMORY, LEASE, GRAPH = GOLDEN[1], GOLDEN[3], GOLDEN[4], GOLDEN[5]


LATE = 1e7
"""Seconds: float64 tells moments 2e-9 s apart here; so much do differences of times lose."""
RATE = 27493.546826731344


def one_server(rate: float, speed: int) -> ClusterConfig:
    return cluster_of(ServerType("s", 1, rate, 0.0, 1, 1, 4), speed=speed)


def played(
    arrivals: Sequence[float], template: WorkflowTemplate, cluster: ClusterConfig, **others: Any
) -> tuple[RawEnv, EpisodeFile]:
    """An episode and its file, which the checker accepts: on the servers and nodes in turn."""
    templates = [template] * len(arrivals)
    env = RawEnv(arrivals, templates, cluster, record=True, **others)
    (kind,), turn = cluster.server_types, 0
    while not env.done:
        turn += 1
        function = env.current_function
        assert function is not None
        place = turn % kind.count, turn // kind.count % kind.numa_nodes
        env.step("s", *place, function.memory_req)
    episode = episode_of(env, "played", "a test")
    assert violations(episode) == []
    return env, episode


def test_a_wait_of_an_instant_is_a_wait() -> None:
    """The second function waits 4e-11 s for the memory of the first."""
    played([0.0], functions(4, 4, memory=4), one_server(1.0, 10**11))


def test_large_bills_are_compared_by_their_size() -> None:
    """Rent of 50 times 3 hours at an odd rate: the sums differ in their last digits."""
    env, episode = played([0.0], chain(*[10_000] * 50), one_server(RATE, 1))
    rent = env.total_rent
    assert rent > 3.5e6
    changed = episode.model_dump()
    changed["expected"]["total_rent"] = rent * (1 + 1e-9)
    found = violations(EpisodeFile.model_validate(changed))
    assert [line.split(" ")[0] for line in found] == ["total_rent"]


def test_an_hour_of_work_is_one_or_two_hours_by_rounding() -> None:
    """From 1254.1 s on it ends an instant after the first hour of its lease."""
    env, _ = played([1254.1222905422305], functions(3600), one_server(1.0, 1))
    assert env.total_rent == 2.0


@pytest.mark.parametrize("lease", [Lease(), Lease(step=1.1), Lease(kind="always", step=7.7e3)])
def test_late_schedules_of_any_world_are_right(lease: Lease) -> None:
    """Containers kept for 0.1 s, transfers of thirds of seconds, many leases of an odd rate."""
    work, edges = [1, 5 * 10**9, 10**10], [(0, 1), (1, 2)]
    template = WorkflowTemplate("late", work, [1, 2, 4], [1, 1, 2], edges, [10**9, 10**8])
    server = ServerType("s", 2, RATE, 2.7, 2, 1, 4)
    arrivals = [0.0, *(LATE + 0.7 * k for k in range(8)), *(LATE + 1e4 / 3 * k for k in range(8))]
    rules = Rules(lease=lease, keep_alive=Fixed(keep=0.1))
    cluster = ClusterConfig(10**10, 3e9, 3e9, 3e9, (server,))
    played(arrivals, template, cluster, rules=rules, images=Images.by_name([template], 0.3))


def test_work_that_takes_no_time_begins_a_lease() -> None:
    """An operation of 1e-11 s is lost beside 1e7 s: its server is started and paid all the same."""
    env, episode = played([LATE, LATE], functions(1, memory=4), one_server(1.0, 10**11))
    assert env.total_rent == 1.0
    assert episode.expected is not None
    assert episode.expected.servers[0].lease_seconds == 3600
    assert [run.end_time for run in episode.expected.runs] == [LATE, LATE]


@pytest.mark.parametrize("keep_alive", [NoKeepAlive(), Lru()])
def test_functions_of_no_length_wait_their_turn(keep_alive: KeepAlive) -> None:
    """Where each takes all memory of the one node, none starts beside another."""
    one = functions(1, 1, 10**12, memory=4)
    rules, images = Rules(Fcfs(), keep_alive=keep_alive), Images.by_name([one], 0.0)
    env, _ = played([LATE] * 3, one, one_server(1.0, 10**11), rules=rules, images=images)
    assert env.total_rent == 1.0


def _changed(path: Path, change: Change) -> EpisodeFile:
    document = read_episode(path).model_dump()
    change(document["expected"])
    return EpisodeFile.model_validate(document)


def _shift(table: str, row: int, seconds: float, *keys: str) -> Change:
    def change(results: Any) -> None:
        for key in keys:
            results[table][row][key] += seconds

    return change


@pytest.mark.parametrize(
    ("path", "change", "words"),
    [
        (
            GRAPH,
            lambda results: results.update(runs=results["runs"][:-1]),
            ["workflow 1 function 11", "0 times"],
        ),
        (CHAIN, _shift("runs", 3, 0.1, "end_time"), ["function 3", "41.7", "41.6"]),
        (
            CHAIN,
            _shift("runs", 2, -0.1, "submission_time", "joined_time", "dispatch_time"),
            ["function 2", "submission_time", "20.1 is due"],
        ),
        (CHAIN, _shift("runs", 3, -8.0, "server_start_time"), ["server_start_time is 0.0", "8.0"]),
        (MEMORY, put("runs", 1, "start_time", to=5.0), ["workflow 1", "no container makes room"]),
        (LEASE, put("servers", 0, "lease_seconds", to=10800.0), ["3 hours rented, 4 are due"]),
        (LEASE, put("servers", 0, "lease_expiration_time", to=20050.0), ["after the lease ends"]),
    ],
)
def test_each_kind_of_error_is_named(path: Path, change: Change, words: list[str]) -> None:
    found = violations(_changed(path, change))
    assert any(all(word in line for word in words) for line in found), found


def test_decision_order() -> None:
    document = read_episode(GOLDEN[2]).model_dump()
    for rows, key in ((document, "actions"), (document["expected"], "runs")):
        rows[key] = (rows[key][1], rows[key][0], *rows[key][2:])
    found = violations(EpisodeFile.model_validate(document))
    assert any("comes before" in line for line in found), found


def test_placements_that_cannot_be() -> None:
    document = read_episode(CHAIN).model_dump()
    document["expected"]["runs"][0]["memory_allocated_mb"] = 10_000
    document["expected"]["runs"][1]["server_index"] = 4
    found = violations(EpisodeFile.model_validate(document))
    assert any("10000 MB" in line and "8192" in line for line in found), found
    assert any("small 4 node 0, which does not exist" in line for line in found), found


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(path) for path in GOLDEN]) == 0
    assert capsys.readouterr().out == ""
    bad = tmp_path / "bad.json"
    write_episode(bad, _changed(LEASE, put("servers", 0, "lease_seconds", to=10800.0)))
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
