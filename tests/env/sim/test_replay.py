"""What the replay command compares; test_world_episode_damaged.py has what it prints."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from env.sim.episode.episode_file import read_episode, write_episode
from env.sim.episode.replay import differences, main, replayed
from env.sim.episode.rows import Results

CHAIN = Path(__file__).parents[2] / "golden" / "02_chain_with_transfers.json"


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
