"""What was assumed of workflow files, by file and in total."""

import json
from pathlib import Path
from typing import Any

import pytest

from env.workloads.assumptions import printed
from env.workloads.templates import assumed_of
from tests.env.worlds import composed

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


def assumed(path: Path, *overrides: str) -> dict[str, dict[str, Any]]:
    group = composed("+workflow=files", f"workflow.path={path}", *overrides)["workflow"]
    return assumed_of([(group, SPEED)], "evaluation")


DRAWN = ("parallelism drawn", "memory drawn", "runtime drawn")
ALL = {"runtimeInSeconds": 10.0, "memoryInBytes": 500e6, "coreCount": 1.0}
WHOLE = [record(number, **ALL) for number in range(4)]


@pytest.mark.parametrize(
    ("records", "chained", "text"),
    [
        (WHOLE, False, "no dependencies: 1"),
        (
            [record(0, **ALL), record(1, runtimeInSeconds=3.0), record(2, memoryInBytes=500e6)],
            True,
            "parallelism drawn: 3; memory drawn: 2; runtime drawn: 2",
        ),
        (
            [
                record(0, **ALL | {"coreCount": 2.5}),
                record(1, runtimeInSeconds=10.0, memoryInBytes=500e6, avgCPU=250.0),
                record(2, runtimeInSeconds=10.0, memoryInBytes=500e6, avgCPU=200.0),
                record(3, runtimeInSeconds=10.0, memoryInBytes=500e6, avgCPU=60.0),
            ],
            True,
            "cores rounded up: 2",
        ),
    ],
)
def test_what_is_said_of_a_file(tmp_path: Path, records: Any, chained: bool, text: str) -> None:
    file = tmp_path / "w.json"
    write(file, records, chained=chained)
    summary = assumed(file)
    text = f"workflows: 1; tasks: 4; {text}"
    assert [(where, each["text"]) for where, each in summary.items()] == [
        ("total", text),
        (str(file), text),
    ]
    assert printed(summary) == [f"assumed, {file}: {text}"]


def test_files_are_told_apart_and_added_up(tmp_path: Path) -> None:
    write(tmp_path / "a.json", WHOLE[:3])
    write(tmp_path / "b.json", WHOLE[:2], chained=False)
    write(tmp_path / "c.json", WHOLE)
    summary = assumed(tmp_path)
    assert list(summary) == ["total", f"{tmp_path}/a.json", f"{tmp_path}/b.json"]
    assert summary["total"]["counts"]["runtime drawn"] == 3
    first, second, total = printed(summary)
    assert first.startswith(f"assumed, {tmp_path}/a.json: workflows: 1; tasks: 4; ")
    assert second.startswith(f"assumed, {tmp_path}/b.json: workflows: 1; tasks: 4; ")
    assert total.startswith("assumed, in all: workflows: 3; tasks: 12; ")
    assert total.endswith("runtime drawn: 3; no dependencies: 1")


def test_a_file_is_named_as_a_terminal_may_have_it(tmp_path: Path) -> None:
    write(tmp_path / "a\n\x1b[2J.json", WHOLE[:3])
    (line,) = printed(assumed(tmp_path))
    assert line.startswith(rf"assumed, {tmp_path}/a \x1b[2J.json: workflows")


def test_several_worlds_are_added_up(tmp_path: Path) -> None:
    write(tmp_path / "a.json", WHOLE[:3])
    write(tmp_path / "b.json", WHOLE[:2])

    def group(file: str, scale: float = 1.0) -> tuple[dict[str, Any], int]:
        overrides = ("+workflow=files", f"workflow.path={tmp_path}/{file}")
        factor = f"workflow.annotation.runtime_scale={scale}"
        return composed(*overrides, factor)["workflow"], SPEED

    both = assumed_of([group("a.json"), group("b.json"), group("a.json")], "evaluation")
    assert list(both) == ["total", f"{tmp_path}/a.json", f"{tmp_path}/b.json"]
    assert both["total"]["counts"] == {"workflows": 2, "tasks": 8} | dict.fromkeys(DRAWN, 3)
    scaled = assumed_of([group("a.json"), group("a.json", 0.5)], "evaluation")
    drawn = "; ".join(["workflows: 1", "tasks: 4", *(f"{what}: 1" for what in DRAWN)])
    assert scaled["total"]["text"] == (
        f"{drawn}; or in other scenarios: {drawn}; runtime multiplied by runtime_scale: 4"
    )
