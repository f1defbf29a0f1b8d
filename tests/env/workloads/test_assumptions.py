"""What was assumed of workflow files, in words: by file and in total."""

import json
from pathlib import Path
from typing import Any

import pytest

from env.workloads.assumptions import printed
from env.workloads.templates import assumed_of
from tests.env.workloads.conftest import Composed

SPEED = 1_000_000_000


def record(number: int, **measured: float) -> dict[str, Any]:
    return {"id": f"t{number}", **measured}


def write(path: Path, records: list[dict[str, Any]], tasks: int = 4, chained: bool = True) -> None:
    specified = [
        {"id": f"t{number}", "parents": [f"t{number - 1}"] if chained and number else []}
        for number in range(tasks)
    ]
    workflow = {"specification": {"tasks": specified}, "execution": {"tasks": records}}
    path.write_text(json.dumps({"workflow": workflow}))


def assumed(composed: Composed, path: Path, *overrides: str) -> dict[str, dict[str, Any]]:
    group = composed("+workflow=files", f"workflow.path={path}", *overrides)["workflow"]
    return assumed_of([(group, SPEED)], "evaluation")


ALL = {"runtimeInSeconds": 10.0, "memoryInBytes": 500e6, "coreCount": 1.0}
WHOLE = [record(number, **ALL) for number in range(4)]


@pytest.mark.parametrize(
    ("records", "chained", "text"),
    [
        (WHOLE, False, "no dependencies at all in 1 of 1 workflows"),
        (
            [record(0, **ALL), record(1, runtimeInSeconds=3.0), record(2, memoryInBytes=500e6)],
            True,
            "runtimes: 2 of 4 drawn; memory: 2 of 4 drawn; cores: 3 of 4 drawn",
        ),
        (
            [*WHOLE[:3], record(3, **ALL | {"coreCount": 64.0})],
            True,
            "cores: 1 of 4 cut to 16, work kept",
        ),
        (
            [
                record(0, **ALL | {"coreCount": 2.5}),
                record(1, runtimeInSeconds=10.0, memoryInBytes=500e6, avgCPU=250.0),
                record(2, runtimeInSeconds=10.0, memoryInBytes=500e6, avgCPU=200.0),
                record(3, runtimeInSeconds=10.0, memoryInBytes=500e6, avgCPU=60.0),
            ],
            True,
            "cores: 2 of 4 rounded up to whole ones",
        ),
    ],
)
def test_what_is_said_of_a_file(
    composed: Composed, tmp_path: Path, records: Any, chained: bool, text: str
) -> None:
    file = tmp_path / "w.json"
    write(file, records, chained=chained)
    found = assumed(composed, file)
    said = ("total", text), (str(file), text)
    assert [(where, each["text"]) for where, each in found.items()] == [*said]
    assert printed(found) == [f"assumed, {file}: {text}"]


def test_files_are_told_apart_and_added_up(composed: Composed, tmp_path: Path) -> None:
    write(tmp_path / "a.json", WHOLE[:3])
    write(tmp_path / "b.json", WHOLE[:2], chained=False)
    write(tmp_path / "c.json", WHOLE)
    found = assumed(composed, tmp_path)
    assert list(found) == ["total", f"{tmp_path}/a.json", f"{tmp_path}/b.json"]
    assert found["total"]["counts"]["runtime drawn"] == 3
    lines = printed(found)
    assert lines[0].startswith(f"assumed, {tmp_path}/a.json: runtimes: 1 of 4 drawn")
    assert lines[1].startswith(f"assumed, {tmp_path}/b.json: runtimes: 2 of 4 drawn")
    assert lines[2].startswith("assumed, 3 workflows in all: runtimes: 3 of 12 drawn")
    assert lines[2].endswith("no dependencies at all in 1 of 3 workflows")


def test_a_file_is_named_as_a_terminal_may_have_it(composed: Composed, tmp_path: Path) -> None:
    write(tmp_path / "a\n\x1b[2J.json", WHOLE[:3])
    (line,) = printed(assumed(composed, tmp_path))
    assert line.startswith(rf"assumed, {tmp_path}/a \x1b[2J.json: runtimes")


def test_several_worlds_are_added_up(composed: Composed, tmp_path: Path) -> None:
    write(tmp_path / "a.json", WHOLE[:3])
    write(tmp_path / "b.json", WHOLE[:2])

    def group(file: str, scale: float = 1.0) -> tuple[dict[str, Any], int]:
        overrides = ("+workflow=files", f"workflow.path={tmp_path}/{file}")
        factor = f"workflow.annotation.runtime_scale={scale}"
        return composed(*overrides, factor)["workflow"], SPEED

    both = assumed_of([group("a.json"), group("b.json"), group("a.json")], "evaluation")
    assert list(both) == ["total", f"{tmp_path}/a.json", f"{tmp_path}/b.json"]
    assert both["total"]["text"].startswith("runtimes: 3 of 8 drawn")
    scaled = assumed_of([group("a.json"), group("a.json", 0.5)], "evaluation")
    drawn = "runtimes: 1 of 4 drawn; memory: 1 of 4 drawn; cores: 1 of 4 drawn"
    assert scaled["total"]["text"] == (
        f"{drawn}; or in other scenarios: {drawn}; runtimes: 4 of 4 multiplied by 0.5"
    )
