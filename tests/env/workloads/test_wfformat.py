"""WfFormat: both layouts, their quirks, and what a broken file gets."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from env.base.errors import InputError
from env.workloads.annotation import AnnotationRules, annotate
from env.workloads.task_graph import TaskGraph
from env.workloads.wfformat import read_wfformat
from tests.documents import put, refused_in_a_line


def read(data: Any) -> TaskGraph:
    return read_wfformat(json.dumps(data).encode(), "photo", "photo.json")


@pytest.fixture
def photo(fixtures: Path) -> Any:
    return json.loads((fixtures / "photo.json").read_text())


def test_current_layout(photo: dict[str, Any]) -> None:
    graph = read(photo)
    split, scale_2, scale_3, join = graph.tasks
    assert [task.category for task in graph.tasks] == ["split", "scale", "scale", "join"]
    assert (split.runtime, split.memory, split.cores) == (0, 300.000001, 1.305)
    assert (scale_2.memory, scale_2.cores) == (0, 1)
    assert scale_3.cores == 2  # the stated count, not the average use
    assert join.memory is None
    assert graph.edge_bytes == {
        (0, 1): 4_000_000,
        (0, 2): 5_000_000,
        (0, 3): 700,
        (1, 3): 40_000,
        (2, 3): 0,
    }


def test_a_number_tells_no_kind(photo: dict[str, Any]) -> None:
    numbered = json.loads(json.dumps(photo).replace("scale_", ""))
    categories = [task.category for task in read(numbered).tasks]
    assert categories == ["split", "ID02", "ID03", "join"]


def test_what_had_to_be_decided_is_counted(photo: dict[str, Any]) -> None:
    assert read(photo).assumptions == {
        "edges stated by one end only, kept": 1,  # scale_ID03 does not name join_ID04 as its child
        "edges added for a file that is read": 1,  # join reads log.txt, split is not its parent
        "file sizes missing, taken as 0": 1,  # b.small.jpg
    }


def test_old_layout(fixtures: Path) -> None:
    graph = read(json.loads((fixtures / "photo_old.json").read_text()))
    assert [task.runtime for task in graph.tasks] == [4.0, 12.5, 2.0]
    assert [task.memory for task in graph.tasks] == [300.0, 200.0, None]  # kB and bytes to MB
    assert [task.cores for task in graph.tasks] == [1, 1, None]
    assert [task.category for task in graph.tasks] == ["split", "scale", "scale"]
    # b.jpg: the writer says 5000000, the reader 4999999
    assert graph.edge_bytes == {(0, 1): 4_000_000, (0, 2): 5_000_000}
    assert graph.assumptions["files with several sizes, the writer's taken"] == 1


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("execution", "tasks", 1, "runtimeInSeconds"), -1, "greater than or equal to 0, found -1"),
        (("execution", "tasks", 1, "id"), "split_ID01", "'split_ID01' has two execution records"),
        (("specification", "files", 1, "sizeInBytes"), -1, "files.1.sizeInBytes"),
        (
            ("specification", "files", 1, "id"),
            "album.tar",
            "'album.tar': found 9000000.0 and 4000000.0",
        ),
        (("specification", "tasks", 1, "id"), "split_ID01", "'split_ID01' is declared twice"),
        (("specification", "tasks", 1, "parents"), ["x"], "has the parent 'x', no such task"),
        (("specification", "tasks"), [], "no tasks, at least 1 is needed"),
    ],
)
def test_bad_values(
    photo: dict[str, Any], path: tuple[str | int, ...], value: Any, message: str
) -> None:
    put(*path, to=value)(photo["workflow"])
    with refused_in_a_line("photo.json: ", message):
        read(photo)


@pytest.mark.parametrize("second", ["jobs", "specification"])
def test_tasks_of_two_layouts_are_refused(second: str) -> None:
    task = {"name": "a", "runtime": 1.0}
    with pytest.raises(InputError, match="^photo.json: workflow: found .*, one of them is needed"):
        read({"workflow": {"tasks": [task], second: [task]}})


def test_records_of_no_task(photo: dict[str, Any], rules: AnnotationRules) -> None:
    """Some are counted; where all are, nothing would be measured, which is refused."""
    records = photo["workflow"]["execution"]["tasks"]
    records[1]["id"] = "Scale"
    _, counts = annotate(read(photo), rules, 1_000)
    assert counts["execution records of no task"] == 1
    for number, record in enumerate(records):
        record["id"] = f"Other{number}"
    with refused_in_a_line("photo.json: execution record 'Other0' (of 4) belongs to no task, and"):
        annotate(read(photo), rules, 1_000)


def test_with_several_writers_only_declared_edges_count(photo: dict[str, Any]) -> None:
    tasks = photo["workflow"]["specification"]["tasks"]
    tasks[1]["outputFiles"].append("log.txt")
    graph = read(photo)
    assert (0, 3) not in graph.edge_bytes
    assert graph.edge_bytes[1, 3] == 40_700


WRONG: list[Any] = [None, True, -3, 10**400, "x", [], {}]


@pytest.mark.parametrize("file", ["photo.json", "photo_old.json"])
def test_any_value_may_be_wrong(fixtures: Path, rules: AnnotationRules, file: str) -> None:
    """Whatever stands in a place, the file either loads or is refused in one line."""
    whole = json.loads((fixtures / file).read_text())
    refused = 0
    for path in list(_paths(whole)):
        for wrong in WRONG:
            data = copy.deepcopy(whole)
            put(*path, to=wrong)(data)
            try:
                annotate(read(data), rules, 1_000_000_000)
            except InputError as error:
                refused += 1
                assert "\n" not in str(error) and len(str(error)) < 500
    assert refused > 300


def _paths(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = dict(enumerate(node)) if isinstance(node, list) else node
    if isinstance(items, dict):
        for key, inner in items.items():
            yield from _paths(inner, (*path, key))
