"""Damaged episode files of format 2: one line of what is wrong, or of what differs when played."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from env.base.errors import InputError
from env.sim.episode.episode_file import read_episode, write_episode
from env.sim.episode.recording import episode_of
from env.sim.episode.replay import main
from tests.recorded_worlds import crowded, shared, trace, world

Change = Callable[[Any], None]


def _set(*keys: Any, to: Any) -> Change:
    def change(document: Any) -> None:
        for key in keys[:-1]:
            document = document[key]
        document[keys[-1]] = to

    return change


def _drop(*keys: Any) -> Change:
    def change(document: Any) -> None:
        for key in keys[:-1]:
            document = document[key]
        del document[keys[-1]]

    return change


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A trace sample whose functions are placed by who is asked, and worlds beside it."""
    folder = tmp_path_factory.mktemp("worlds")
    found = {}
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


QUEUE = ("options", "queue")
FUNCTION = ("workflows", 0, "functions", 0)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("asked", _set("format", to=1), ["unknown key"]),
        ("asked", _set(*QUEUE, "order", to="rank"), ["options.queue.order", "by_rank"]),
        ("asked", _set(*QUEUE, "placement", to="worst"), ["placement", "'worst'", "worst_fit"]),
        (
            "asked",
            _set("options", "keep_alive", to={"policy": "lru"}),
            ["earlier: 4 found, keep_alive 'lru' knows of none"],
        ),
        ("asked", _set("images", to=[]), ["images: none found"]),
        ("asked", _set("images", 1, "image_id", to=0), ["images.1: id 0", "0 to 2"]),
        (
            "engine",
            _set("images", 0, "memory_mb", to=0),
            ["images.0.memory_mb: 0 found", "at least 1"],
        ),
        ("asked", _set("earlier", 0, "image", to=7), ["earlier.0.image: 7", "0 to 2"]),
        ("asked", _drop("workflows", 0, "work"), ["workflows: 32 of 33 have work"]),
        ("immediate", _set("workflows", 3, "work", to=5), ["workflows: 1 of 8 have work"]),
        ("asked", _set(*FUNCTION, "image", to=3), ["workflows.0.functions.0.image: 3", "0 to 2"]),
        ("asked", _drop(*FUNCTION, "image"), ["workflows.0.functions.0.image: None"]),
        ("asked", _drop(*FUNCTION, "rank"), ["functions.0.rank: None", "needed with order"]),
        ("engine", _set(*FUNCTION, "rank", to=1.0), ["functions.0.rank: 1.0", "only with order"]),
        ("asked", _set("actions", 0, "dispatch_time", to=0.0), ["actions.0.dispatch_time: 0.0"]),
        ("chosen", _drop("actions", 2, "dispatch_time"), ["actions.2.dispatch_time: None"]),
        ("asked", _set("actions", 0, "memory_allocated_mb", to=9999), ["actions.0", "9999 MB"]),
        (
            "engine",
            lambda document: document.update(actions=[_bare_action()]),
            ["actions: 1 found, order 'funcsched' and placement 'worst_fit' need none"],
        ),
        ("shared", _drop("funding"), ["funding: missing, options.queue.sharing needs it"]),
        ("crowded", _drop("funding"), ["funding: missing, cluster.cpu_share needs it"]),
        ("crowded", _drop("cluster", "cpu_share"), ["funding: found", "cluster.cpu_share"]),
        ("workflows", _drop("workflows", 1, "tickets"), ["workflows.1.tickets: None", "needed"]),
        ("workflows", _drop(*QUEUE, "lends"), ["queue.lends: None", "needed with"]),
        ("shared", _set(*QUEUE, "lends", to=True), ["queue.lends: True", "allowed only with"]),
        ("shared", _set("workflows", 0, "tickets", to=2.0), ["workflows.0.tickets: 2.0", "only"]),
        (
            "shared",
            _set("funding", "currencies", "lab", "currency", to="lab"),
            ["funding", "'lab'", "cycle"],
        ),
        ("shared", _drop("funding", "tenants", "b"), ["workflows.1.tenant: 'b' found", "funding"]),
        ("shared", _set("workflows", 0, "tenant", to="d"), ["workflows.0.tenant: 'd' found"]),
        ("shared", _drop(*QUEUE, "turns_seed"), ["queue.turns_seed: None", "needed with"]),
        ("shared", _drop(*QUEUE, "sharing"), ["queue.turns_seed: 7", "allowed only with"]),
        ("shared", _set(*QUEUE, "time_slice", to=4.0), ["queue.time_slice: 4.0", "sharing"]),
        (
            "immediate",
            _set("funding", to={"tenants": {"a": {"tickets": 1}}}),
            ["funding: found, it is allowed only with options.queue"],
        ),
    ],
)
def test_bad_content_gets_one_clear_line(
    tmp_path: Path, documents: dict[str, Any], name: str, change: Change, words: list[str]
) -> None:
    document = copy.deepcopy(documents[name])
    change(document)
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(document))
    with pytest.raises(InputError) as caught:
        read_episode(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ") and "\n" not in message
    for word in words:
        assert word in message


def _bare_action() -> dict[str, Any]:
    return {
        "workflow_id": 0,
        "function_id": 0,
        "server_type": "small",
        "server_index": 0,
        "numa_node_index": 0,
        "memory_allocated_mb": 1024,
    }


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("asked", _set("actions", 1, "workflow_id", to=0), ["actions.1: places workflow 0"]),
        ("asked", _drop("actions", -1), ["actions: 38 found, but functions wait"]),
        (
            "asked",
            lambda document: document["actions"].append(document["actions"][0]),
            ["actions.", "but the episode is over"],
        ),
        (
            "chosen",
            _set("actions", 0, "dispatch_time", to=5000.0),
            ["actions.0: choose: nothing is to come"],
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
    document = copy.deepcopy(documents[name])
    change(document)
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(document))
    code = main([str(path)])
    printed = capsys.readouterr().err
    assert code in (1, 2) and printed.startswith(f"{path}: ")
    assert code == 1 or (len(printed.splitlines()) == 1 and all(word in printed for word in words))


def test_the_command_names_what_differs(
    tmp_path: Path, documents: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    document = copy.deepcopy(documents["asked"])
    path = tmp_path / "episode.json"
    path.write_text(json.dumps(document))
    assert main([str(path)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert json.loads(captured.out)["runs"] == document["expected"]["runs"]
    run = document["expected"]["runs"][0]
    computed, run["end_time"] = run["end_time"], run["end_time"] + 1e-6
    path.write_text(json.dumps(document))
    assert main([str(path)]) == 1
    name = f"workflow {run['workflow_id']} function {run['function_id']} run 0"
    assert capsys.readouterr().err.splitlines() == [
        f"{path}: runs.{name}.end_time: {computed} computed, {run['end_time']} expected"
    ]
