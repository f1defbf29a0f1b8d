"""Damaged episode files: one line of what is wrong, or of what differs when played."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from env.sim.episode.episode_file import read_episode, write_episode
from env.sim.episode.recording import episode_of
from env.sim.episode.replay import differences, main, replayed
from env.sim.episode.rows import Results
from tests.documents import Change, left_out, put, refused_in_a_line
from tests.env.sim.test_episode_file import CHAIN
from tests.recorded_worlds import crowded, shared, trace, world


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A trace sample whose functions are placed by who is asked, and worlds beside it."""
    folder = tmp_path_factory.mktemp("worlds")
    found = {"golden": json.loads(CHAIN.read_text())}
    for name, env in {
        "asked": trace("rr", placement="asked"),
        "engine": world("funcsched", keep_alive="lru"),
        "chosen": world("chosen", keep_alive="lru"),
        "immediate": world("immediate", keep_alive="lru"),
        "shared": shared("stride+sjf"),
        "workflows": shared("stride_workflows"),
        "crowded": crowded(),
    }.items():
        path = folder / f"{name}.json"
        write_episode(path, episode_of(env, name, "a test"))
        found[name] = json.loads(path.read_text())
    return found


def damaged(document: Any, change: Change, folder: Path) -> Path:
    """A file of a changed document."""
    changed = copy.deepcopy(document)
    change(changed)
    path = folder / "bad.json"
    path.write_text(json.dumps(changed))
    return path


def _add_edge(source: int, target: int) -> Change:
    edge = {"source": source, "target": target, "data_bytes": 1}
    return lambda document: document["workflows"][0]["edges"].append(edge)


def _repeat_type(document: Any) -> None:
    document["cluster"]["server_types"] *= 2


QUEUE = ("options", "queue")
SECOND = ("workflows", 0, "functions", 1)
FUNCTION = ("workflows", 0, "functions", 0)
BARE_ACTION = {
    **{"workflow_id": 0, "function_id": 0, "memory_allocated_mb": 1024},
    **{"server_type": "small", "server_index": 0, "numa_node_index": 0},
}


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("golden", put("nme", to="x"), ["nme", "unknown key", "'name'"]),
        ("golden", put("format", to=3), ["format: 3 found, allowed are 1 and 2"]),
        ("golden", left_out("actions"), ["actions", "missing"]),
        ("golden", put("actions", 0, "server_type", to="smal"), ["'smal'", "'small'"]),
        (
            "golden",
            put("actions", 0, "server_index", to=1),
            ["0.server_index", "1", "0 to 0"],
        ),
        (
            "golden",
            put("actions", 0, "memory_allocated_mb", to=9000),
            ["0", "9000", "8192"],
        ),
        ("golden", put("actions", 1, "function_id", to=9), ["actions.1", "function 9"]),
        ("golden", put("actions", 1, "function_id", to=0), ["actions.1", "placed twice"]),
        ("golden", left_out("actions", 2), ["function 2", "never placed"]),
        ("golden", put("workflows", 0, "workflow_id", to=3), ["workflows.0", "id 3"]),
        ("golden", put(*SECOND, "function_id", to=7), ["functions.1", "id 7", "0 to 3"]),
        ("golden", put(*SECOND, "computation", to=0), ["functions.1.computation", "1", "0"]),
        (
            "golden",
            put("workflows", 0, "tenant", to="two words"),
            ["0.tenant", "'two words'"],
        ),
        ("golden", _add_edge(3, 0), ["workflow 0", "cycle"]),
        ("golden", _add_edge(0, 1), ["edge 0 -> 1", "twice"]),
        ("golden", _add_edge(0, 8), ["edge 0 -> 8", "function 8"]),
        ("golden", _repeat_type, ["bad.json: cluster: server type 'small' is declared twice"]),
        ("asked", put("format", to=1), ["unknown key"]),
        ("asked", put(*QUEUE, "order", to="rank"), ["options.queue.order", "by_rank"]),
        ("asked", put(*QUEUE, "placement", to="worst"), ["placement", "'worst'", "worst_fit"]),
        (
            "asked",
            put("options", "keep_alive", to={"policy": "lru"}),
            ["earlier: 4 found, keep_alive 'lru' knows of none"],
        ),
        ("asked", put("images", to=[]), ["images: none found"]),
        ("asked", put("images", 1, "image_id", to=0), ["images.1: id 0", "0 to 2"]),
        (
            "engine",
            put("images", 0, "memory_mb", to=0),
            ["images.0.memory_mb: 0 found", "at least 1"],
        ),
        ("asked", put("earlier", 0, "image", to=7), ["earlier.0.image: 7", "0 to 2"]),
        ("asked", left_out("workflows", 0, "work"), ["workflows: 32 of 33 have work"]),
        ("asked", put(*FUNCTION, "image", to=3), ["workflows.0.functions.0.image: 3", "0 to 2"]),
        ("asked", left_out(*FUNCTION, "rank"), ["functions.0.rank: None", "needed with order"]),
        ("chosen", left_out("actions", 2, "dispatch_time"), ["actions.2.dispatch_time: None"]),
        ("asked", put("actions", 0, "memory_allocated_mb", to=9999), ["actions.0", "9999 MB"]),
        (
            "engine",
            put("actions", to=[BARE_ACTION]),
            ["actions: 1 found, order 'funcsched' and placement 'worst_fit' need none"],
        ),
        ("shared", left_out("funding"), ["funding: missing, options.queue.sharing needs it"]),
        ("crowded", left_out("funding"), ["funding: missing, cluster.cpu_share needs it"]),
        ("crowded", left_out("cluster", "cpu_share"), ["funding: found", "cluster.cpu_share"]),
        ("workflows", left_out("workflows", 1, "tickets"), ["workflows.1.tickets: None", "needed"]),
        ("workflows", left_out(*QUEUE, "lends"), ["queue.lends: None", "needed with"]),
        (
            "shared",
            put("funding", "currencies", "lab", "currency", to="lab"),
            ["funding", "'lab'", "cycle"],
        ),
        (
            "shared",
            left_out("funding", "tenants", "b"),
            ["workflows.1.tenant: 'b' found", "funding"],
        ),
        ("shared", left_out(*QUEUE, "turns_seed"), ["queue.turns_seed: None", "needed with"]),
        (
            "shared",
            put(*QUEUE, "time_slice", to=4.0),
            ["options.queue", "time_slice 4.0", "with sharing"],
        ),
        (
            "immediate",
            put("funding", to={"tenants": {"a": {"tickets": 1}}}),
            ["funding: found, it is allowed only with options.queue"],
        ),
    ],
)
def test_bad_content_gets_one_clear_line(
    tmp_path: Path, documents: dict[str, Any], name: str, change: Change, words: list[str]
) -> None:
    path = damaged(documents[name], change, tmp_path)
    with refused_in_a_line(f"{path}: ", *words):
        read_episode(path)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("asked", put("actions", 1, "workflow_id", to=0), ["actions.1: places workflow 0"]),
        ("asked", left_out("actions", -1), ["actions: 38 found, but functions wait"]),
        (
            "asked",
            lambda document: document["actions"].append(document["actions"][0]),
            ["actions.", "but the episode is over"],
        ),
        (
            "chosen",
            put("actions", 0, "dispatch_time", to=5000.0),
            ["actions.1: workflow 1 function 0 cannot start at 1.0 s, it is 5000.0 s"],
        ),
    ],
)
def test_what_cannot_be_played_gets_one_line(
    tmp_path: Path,
    documents: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
    name: str,
    change: Change,
    words: list[str],
) -> None:
    path = damaged(documents[name], change, tmp_path)
    code = main([str(path)])
    printed = capsys.readouterr().err
    assert code in (1, 2) and printed.startswith(f"{path}: ")
    assert code == 1 or (len(printed.splitlines()) == 1 and all(word in printed for word in words))


def test_the_command_names_what_differs(
    tmp_path: Path, documents: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    document = documents["asked"]
    path = damaged(document, lambda whole: None, tmp_path)
    assert main([str(path)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert json.loads(captured.out)["runs"] == document["expected"]["runs"]
    run = document["expected"]["runs"][0]
    later = run["end_time"] + 1e-6
    damaged(document, put("expected", "runs", 0, "end_time", to=later), tmp_path)
    assert main([str(path)]) == 1
    name = f"workflow {run['workflow_id']} function {run['function_id']} run 0"
    assert capsys.readouterr().err.splitlines() == [
        f"{path}: runs.{name}.end_time: {run['end_time']} computed, {later} expected"
    ]


def test_a_file_without_expected_just_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bare.json.gz"
    write_episode(path, read_episode(CHAIN).model_copy(update={"expected": None}))
    assert main([str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["total_rent"] == 2.0


def differing(change: Callable[[Any], None]) -> list[str]:
    computed = replayed(read_episode(CHAIN))
    document = computed.model_dump(mode="json")
    change(document)
    return differences(computed, Results.model_validate(document))


def _move(table: str, row: int, key: str, by: float) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        document[table][row][key] += by

    return change


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            _move("runs", 0, "end_time", 1e-8),
            "runs.workflow 0 function 0 run 0.end_time: 12.0 computed, 12.00000001 expected",
        ),
        (_move("servers", 0, "rent", 0.5), "servers.small 0.rent: 0.5 computed, 1.0 expected"),
        (
            lambda document: document["runs"].pop(),
            "runs.workflow 0 function 3 run 0: computed, but not expected",
        ),
    ],
)
def test_differences_are_named(change: Callable[[Any], None], line: str) -> None:
    assert differing(change) == [line]


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document["runs"].reverse(),
        _move("runs", 0, "end_time", 1e-10),
        lambda document: document["servers"].append(
            {"server_type": "idle", "server_index": 0, "lease_seconds": 0.0, "rent": 0.0}
        ),
    ],
)
def test_what_is_no_difference(change: Callable[[Any], None]) -> None:
    assert differing(change) == []
