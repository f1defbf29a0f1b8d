"""The replay command: golden numbers, differences, and bad input."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from env.sim.episode.episode_file import read_episode, write_episode
from env.sim.episode.plain_episode import Results
from env.sim.episode.replay import differences, main, replayed

GOLDEN = sorted((Path(__file__).parents[2] / "golden").glob("*.json"))
CHAIN, GRAPH = GOLDEN[1], GOLDEN[5]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_golden_episodes_are_met_bit_for_bit(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(path)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    printed = json.loads(captured.out)
    original = json.loads(path.read_text())
    assert printed.pop("name") == original["name"]
    assert printed == original["expected"]


def test_a_file_without_expected_just_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bare.json.gz"
    write_episode(path, read_episode(CHAIN).model_copy(update={"expected": None}))
    assert main([str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["total_rent"] == 2.0


def _results(path: Path, change: Callable[[Any], None]) -> Results:
    plain = replayed(read_episode(path)).model_dump()
    for key in ("decisions", "functions", "servers"):
        plain[key] = list(plain[key])
    change(plain)
    return Results.model_validate(plain)


def _move(table: str, row: int, key: str, by: float) -> Callable[[Any], None]:
    def change(plain: Any) -> None:
        plain[table][row][key] += by

    return change


def _completed_elsewhere(plain: Any) -> None:
    plain["decisions"][2]["completed_before_next_decision"] = ()


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            _move("functions", 0, "completion_time", 1e-8),
            "functions.workflow 0 function 0.completion_time: 12.0 computed, 12.00000001 expected",
        ),
        (_move("decisions", 3, "rent", 0.5), "decisions.3.rent: 1.5 computed, 2.0 expected"),
        (
            _completed_elsewhere,
            "decisions.2.completed_before_next_decision: [[0, 2]] computed, [] expected",
        ),
        (
            lambda plain: plain["functions"].pop(),
            "functions.workflow 0 function 3: computed, but not expected",
        ),
    ],
)
def test_differences_are_named(change: Callable[[Any], None], line: str) -> None:
    assert differences(replayed(read_episode(CHAIN)), _results(CHAIN, change)) == [line]


@pytest.mark.parametrize(
    "change",
    [
        lambda plain: plain["functions"].reverse(),
        _move("functions", 0, "completion_time", 1e-10),
        lambda plain: plain["servers"].append(
            {
                "server_type": "idle",
                "server_index": 0,
                "hours_rented": 0,
                "lease_expiration_time": 0.0,
                "rent": 0.0,
            }
        ),
    ],
)
def test_what_is_no_difference(change: Callable[[Any], None]) -> None:
    assert differences(replayed(read_episode(CHAIN)), _results(CHAIN, change)) == []
