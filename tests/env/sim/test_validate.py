"""The checker accepts right schedules and names what is wrong with any other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agents.order.fcfs import Fcfs
from env.sim.check.validate import main, violations
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.images import Images
from env.sim.declared.keep_alive_policy import Fixed, KeepAlivePolicy, Lru, NoKeepAlive
from env.sim.declared.rules import Lease, Rules
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.episode.episode_file import read_episode, write_episode
from env.sim.episode.model import EpisodeFile
from env.sim.episode.recording import episode_of
from env.sim.view.raw_env import RawEnv
from tests.documents import Change, at, left_out, put
from tests.env.small import chain, cluster_of, functions
from tests.episodes import GOLDEN, objections
from tests.recorded_worlds import shared, trace, world

BY_NAME = dict(zip(("chain", "speeds", "memory", "lease", "graph"), GOLDEN[1:], strict=True))
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
    found = objections(episode, put("expected", "total_rent", to=rent * (1 + 1e-9)))
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
def test_functions_of_no_length_wait_their_turn(keep_alive: KeepAlivePolicy) -> None:
    """Where each takes all memory of the one node, none starts beside another."""
    one = functions(1, 1, 10**12, memory=4)
    rules, images = Rules(Fcfs(), keep_alive=keep_alive), Images.by_name([one], 0.0)
    env, _ = played([LATE] * 3, one, one_server(1.0, 10**11), rules=rules, images=images)
    assert env.total_rent == 1.0


UNTOLD = {
    **{name: set[str]() for name in ("chain", "memory", "lease", "queued")},
    "at once": {"warm_containers.end_time"},
    "asked": {"warm_containers.end_time", "servers.lease_expiration_time"},
    "trace": {
        *("runs.numa_node_index", "warm_containers.numa_node_index", "warm_containers.image"),
        *("warm_containers.begin_time", "warm_containers.end_time"),
    },
}
"""What the record does not explain: which of several nodes has room, when a container that nobody
uses is started ahead of requests or removed, how far what was preempted had a lease extended."""


@pytest.fixture(scope="module")
def episodes() -> dict[str, EpisodeFile]:
    envs = {
        "at once": world("immediate", keep_alive="lru"),
        "queued": world("rr", "always charged", "fixed"),
        "asked": world("rr", "hourly in steps of a minute", "lru", placement="asked"),
        "trace": trace("fcfs"),
        "shared": shared("stride+sjf"),
    }
    golden = {name: read_episode(path) for name, path in BY_NAME.items()}
    return golden | {name: episode_of(env, name, "a test") for name, env in envs.items()}


def leaves(value: Any, keys: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [leaf for key, inner in value.items() for leaf in leaves(inner, (*keys, key))]
    if isinstance(value, list):
        return [leaf for key, inner in enumerate(value) for leaf in leaves(inner, (*keys, key))]
    return [] if value is None else [keys]


def move(document: Any, leaf: tuple[Any, ...], by: float) -> None:
    """Another value: a time or an amount by so much, or relative to it, of a count the next."""
    results, key = at(document["expected"], leaf[:-1]), leaf[-1]
    value = results[key]
    if isinstance(value, bool):
        results[key] = not value
    elif key == "outcome":
        results[key] = "preempted" if value == "completed" else "completed"
    elif isinstance(value, float):
        results[key] = value + max(by, by * value if by < 1 else 0.0)
    else:
        results[key] = "other" if isinstance(value, str) else value + 1


@pytest.mark.parametrize("name", UNTOLD)
def test_no_number_can_be_changed_unseen(episodes: dict[str, EpisodeFile], name: str) -> None:
    """Every number of the results, moved a little, is seen, but for what no rule tells."""
    episode, by = episodes[name], 1e-6 if name in BY_NAME else 1.0
    assert violations(episode) == []
    unseen = set()
    for leaf in leaves(episode.model_dump(mode="json")["expected"]):
        if not objections(episode, partial(move, leaf=leaf, by=by)):
            unseen.add(f"{leaf[0]}.{leaf[-1]}")
    assert unseen <= UNTOLD[name]


RUNS, SERVER, WARM = (
    ("expected", *keys) for keys in (("runs",), ("servers", 0), ("warm_containers", 0))
)


def _first_run(fields: Any, **of: Any) -> Change:
    """Other fields of the first run that has certain ones."""

    def change(document: Any) -> None:
        runs = document["expected"]["runs"]
        next(run for run in runs if of.items() <= run.items()).update(fields)

    return change


def _shift(row: int, seconds: float, *keys: str) -> Change:
    """Other times of a run."""

    def change(document: Any) -> None:
        for key in keys:
            document["expected"]["runs"][row][key] += seconds

    return change


def _ranks(by: float, chosen: Callable[[Any], bool]) -> Change:
    """Other ranks of the functions of some workflows."""

    def change(document: Any) -> None:
        for workflow in filter(chosen, document["workflows"]):
            for function in workflow["functions"]:
                function["rank"] += by

    return change


def _swap(document: Any) -> None:
    """The first two decisions, the other way round."""
    for rows in (document["actions"], document["expected"]["runs"]):
        rows[:2] = rows[1::-1]


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("graph", left_out("expected", "runs", -1), ["workflow 1 function 11", "0 times"]),
        ("chain", _shift(3, 0.1, "end_time"), ["function 3", "41.7", "41.6"]),
        (
            "chain",
            _shift(2, -0.1, "submission_time", "joined_time", "dispatch_time"),
            ["function 2", "submission_time", "20.1 is due"],
        ),
        ("chain", _shift(3, -8.0, "server_start_time"), ["server_start_time is 0.0", "8.0"]),
        ("memory", put(*RUNS, 1, "start_time", to=5.0), ["workflow 1", "no container makes room"]),
        ("lease", put(*SERVER, "lease_expiration_time", to=20050.0), ["after the lease ends"]),
        ("chain", put(*RUNS, 0, "memory_allocated_mb", to=10_000), ["10000 MB", "8192"]),
        ("chain", put(*RUNS, 1, "server_index", to=4), ["small 4 node 0, which does not exist"]),
        ("speeds", _swap, ["comes before"]),
        # Cold starts: 2.5 s of a container, 20 or 30 s of a server.
        ("at once", _first_run({"container_cold_start_time": 1.5}), ["is 1.5, 2.5 is due"]),
        ("at once", _first_run({"warm": True}, warm=False), ["warm on a server that was off"]),
        ("at once", _first_run({"dispatch_time": 1.0}), ["at 0.0, but dispatched at 1.0"]),
        ("asked", _first_run({"server_type": "tiny"}), ["tiny", "does not exist"]),
        ("queued", put(*WARM, "end_time", to=3000.0), ["warm_containers.0: idle for more"]),
        ("queued", put(*SERVER, "lease_seconds", to=600.0), ["server small 0: 0.166667 hours"]),
        ("asked", lambda document: document["actions"].pop(), ["actions: ", "runs"]),
        ("trace", put("workflows", 0, "work", to=9), ["operations"]),
        # Of those that wait the smallest rank goes, and of tenants within each alone.
        ("trace", _ranks(-1e9, lambda each: each["workflow_id"] % 2 == 0), ["before its turn"]),
        (
            "shared",
            _ranks(-1000.0, lambda each: each["tenant"] == "a" and each["workflow_id"] >= 20),
            ["before its turn"],
        ),
    ],
)
def test_each_kind_of_error_is_named(
    episodes: dict[str, EpisodeFile], name: str, change: Change, words: list[str]
) -> None:
    found = objections(episodes[name], change)
    assert any(all(word in line for word in words) for line in found), found


def test_ranks_count_within_a_tenant_alone(episodes: dict[str, EpisodeFile]) -> None:
    all_of_one = _ranks(1000.0, lambda each: each["tenant"] == "a")
    assert objections(episodes["shared"], all_of_one) == []


@pytest.mark.parametrize("late", [2.0**63, 1e30])
def test_a_moment_that_is_far_too_late_is_seen_at_once(
    episodes: dict[str, EpisodeFile], late: float
) -> None:
    """Leases of servers that are always up are not renewed one by one up to it."""
    assert objections(episodes["queued"], put(*RUNS, -1, "end_time", to=late))


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(path) for path in GOLDEN]) == 0
    assert capsys.readouterr().out == ""
    bad, document = tmp_path / "bad.json", read_episode(BY_NAME["lease"]).model_dump(by_alias=True)
    put(*SERVER, "lease_seconds", to=10800.0)(document)
    write_episode(bad, EpisodeFile.model_validate(document))
    assert main([str(bad)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{bad}: server small 0: 3 hours rented, 4 are due"
    ]
    bare = tmp_path / "bare.json"
    write_episode(bare, read_episode(BY_NAME["lease"]).model_copy(update={"expected": None}))
    for path in (bare, tmp_path / "absent.json"):
        assert main([str(path)]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert len(captured.err.splitlines()) == 1
        assert str(path) in captured.err
