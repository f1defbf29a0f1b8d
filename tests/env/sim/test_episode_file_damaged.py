"""Damaged episode files: one line of what is wrong, or of what differs when played."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from env.sim.episode.episode_file import read_episode, write_episode
from env.sim.episode.model import Results
from env.sim.episode.replay import differences, main, replayed
from tests.documents import Change, left_out, put, refused_in_a_line
from tests.episodes import GOLDEN, written
from tests.recorded_worlds import shared, trace, world


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A trace sample whose functions are placed by who is asked, and worlds beside it."""
    folder = tmp_path_factory.mktemp("worlds")
    documents = {"golden": json.loads(GOLDEN[1].read_text())}
    for name, env in {
        "asked": trace("rr", placement="asked"),
        "chosen": world("chosen", keep_alive="lru"),
        "shared": shared("stride+sjf"),
        "workflows": shared("stride_workflows"),
    }.items():
        documents[name] = json.loads(written(env, folder / f"{name}.json").read_text())
    return documents


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


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("golden", put("nme", to="x"), ["nme", "unknown key", "'name'"]),
        ("golden", put("format", to=3), ["format: 3 found, allowed are 1 and 2"]),
        ("golden", left_out("actions"), ["actions", "missing"]),
        ("golden", left_out("actions", 2), ["expected: 4 decisions and 4 functions", "3 actions"]),
        ("golden", put("workflows", 0, "workflow_id", to=3), ["workflows.0", "id 3"]),
        ("golden", put(*SECOND, "function_id", to=7), ["functions.1", "id 7", "0 to 3"]),
        ("golden", put(*SECOND, "computation", to=0), ["functions.1.computation", "1", "0"]),
        ("golden", put("workflows", 0, "tenant", to="two words"), ["0.tenant", "'two words'"]),
        ("golden", _add_edge(3, 0), ["workflow 0", "cycle"]),
        ("golden", _add_edge(0, 1), ["edge 0 -> 1", "twice"]),
        ("golden", _add_edge(0, 8), ["edge 0 -> 8", "function 8"]),
        ("golden", _repeat_type, ["bad.json: cluster: server type 'small' is declared twice"]),
        ("asked", put("format", to=1), ["unknown key"]),
        ("asked", put(*QUEUE, "order", to="rank"), ["options.queue.order", "by_rank"]),
        ("asked", put(*QUEUE, "placement", to="worst"), ["placement", "'worst'", "worst_fit"]),
        ("asked", put("images", to=[]), ["images: none found"]),
        ("asked", put("images", 1, "image_id", to=0), ["images.1: id 0", "0 to 2"]),
        ("asked", put("earlier", 0, "image", to=7), ["image: 7 found", "0 to 2"]),
        ("asked", left_out("workflows", 0, "work"), ["33 workflow templates but 32 work"]),
        ("asked", put(*FUNCTION, "image", to=3), ["image: 3 found", "0 to 2"]),
        ("shared", put("funding", "currencies", "lab", "currency", to="lab"), ["funding", "cycle"]),
        ("workflows", left_out(*QUEUE, "sharing"), ["sharing: missing, order 'by_workflow'"]),
        ("shared", put(*QUEUE, "time_slice", to=4.0), ["options.queue", "time_slice 4.0"]),
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
        ("asked", put("actions", 0, "memory_allocated_mb", to=99999), ["actions.0", "99999 MB"]),
        ("asked", put("actions", 0, "server_type", to="x"), ["actions.0: server type 'x' is un"]),
        ("chosen", left_out("actions", 2, "dispatch_time"), ["actions.2: dispatch_time: missing"]),
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
    write_episode(path, read_episode(GOLDEN[1]).model_copy(update={"expected": None}))
    assert main([str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["total_rent"] == 2.0


def differing(change: Change) -> list[str]:
    computed = replayed(read_episode(GOLDEN[1]))
    document = computed.model_dump(mode="json")
    change(document)
    return differences(computed, Results.model_validate(document))


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            put("runs", 0, "end_time", to=12.0 + 1e-8),
            "runs.workflow 0 function 0 run 0.end_time: 12.0 computed, 12.00000001 expected",
        ),
        (put("servers", 0, "rent", to=1.0), "servers.small 0.rent: 0.5 computed, 1.0 expected"),
        (
            lambda document: document["runs"].pop(),
            "runs.workflow 0 function 3 run 0: computed, but not expected",
        ),
    ],
)
def test_differences_are_named(change: Change, line: str) -> None:
    assert differing(change) == [line]


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document["runs"].reverse(),
        put("runs", 0, "end_time", to=12.0 + 1e-10),
        lambda document: document["servers"].append(
            {"server_type": "idle", "server_index": 0, "lease_seconds": 0.0, "rent": 0.0}
        ),
    ],
)
def test_what_is_no_difference(change: Change) -> None:
    assert differing(change) == []
