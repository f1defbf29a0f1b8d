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
        (("specification", "files", 1, "id"), "album.tar", "found 9000000.0 and 4000000.0"),
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


@pytest.mark.parametrize(
    ("workflow", "says"),
    [({}, "no tasks"), ({"tasks": [{"runtime": 1.0}]}, "tasks.0: one of id and name is needed")],
)
def test_there_are_tasks_and_each_is_called_something(workflow: Any, says: str) -> None:
    with refused_in_a_line("photo.json: ", says):
        read({"workflow": workflow})


def test_records_of_no_task(photo: dict[str, Any], rules: AnnotationRules) -> None:
    """Some are counted; where all are, nothing would be measured, which is refused."""
    records = photo["workflow"]["execution"]["tasks"]
    records[1]["id"] = "Scale"
    _, counts = annotate(read(photo), rules, 1_000)
    assert counts["execution records of no task"] == 1
    for number, record in enumerate(records):
        record["id"] = f"Other{number}"
    with refused_in_a_line("photo.json: no task has a runtime (4 execution records of no task); "):
        annotate(read(photo), rules, 1_000)


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


# The old layout: which task or file a name means, and what is stated twice.


def old(*tasks: dict[str, Any], key: str = "tasks") -> TaskGraph:
    return read({"schemaVersion": "1.4", "workflow": {key: list(tasks)}})


def task(name: str, *files: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {"name": name, "runtime": 1.0, "files": list(files), **others}


def test_resources_of_a_task(rules: AnnotationRules) -> None:
    graph = old(task("a", resources={"CPU": 2, "GPU": 0.57}), task("b"))
    template, _ = annotate(graph, rules, 1_000)
    assert {name: row.tolist() for name, row in template.resources.items()} == {
        "CPU": [2.0, 0.0],
        "GPU": [0.57, 0.0],
    }
    with pytest.raises(InputError, match=r"tasks.0.resources.GPU: found '0.12345', a number from"):
        old(task("a", resources={"GPU": 0.12345}))


def edges(graph: TaskGraph) -> set[tuple[str, str]]:
    return {(graph.tasks[a].name, graph.tasks[b].name) for a, b in graph.edge_bytes}


@pytest.mark.parametrize("key", ["tasks", "jobs"])
def test_tasks_of_one_name_are_told_apart_by_id(key: str) -> None:
    graph = old(
        {"name": "QC", "id": "1", "runtime": 5.0, "children": ["3"]},
        {"name": "QC", "id": "2", "runtime": 7.0, "children": ["REPORT"]},
        {"name": "REPORT", "id": "3", "runtime": 3.0, "parents": ["1", "2"]},
        key=key,
    )
    assert edges(graph) == {("1", "3"), ("2", "3")}
    found = [(task.category, task.runtime) for task in graph.tasks]
    assert found == [("QC", 5.0), ("QC", 7.0), ("REPORT", 3.0)]


def test_a_name_of_several_tasks_is_no_reference() -> None:
    says = "task '3' has the parent 'QC', no such task"
    with refused_in_a_line(f"photo.json: {says}"):
        old(task("QC", id="1"), task("QC", id="2"), task("REPORT", id="3", parents=["QC"]))


WRITTEN = {"name": "f", "link": "output", "size": 1000}
READ = {"name": "f", "link": "input"}


@pytest.mark.parametrize(
    ("written", "read", "moved"),
    [
        ({"id": "f1"}, {}, 1000),
        ({"path": "//w/x/../"}, {"path": "/w"}, 1000),
        ({"path": "/w"}, {"path": "w"}, 0),
        ({"id": "f1"}, {"path": "/w"}, 1000),
        ({"id": "f1", "path": "/w"}, {"path": "/v"}, 0),
        ({"id": "f1", "path": "/w"}, {"id": "f1", "path": "/v", "name": "g"}, 1000),
        ({"id": "f1", "path": "/w"}, {"id": "f2", "path": "/w"}, 0),
    ],
)
def test_files_are_the_same_by_what_all_of_them_state(
    written: dict[str, Any], read: dict[str, Any], moved: int
) -> None:
    graph = old(
        task("a", WRITTEN | written),
        task("b", READ | read, parents=["a"]),
    )
    assert graph.edge_bytes == {(0, 1): moved}


@pytest.mark.parametrize(
    ("read", "parents"), [({}, ["b"]), ({"path": "/y"}, []), ({"id": "2"}, [])]
)
def test_of_two_files_of_one_name_the_declared_parents_or_what_is_stated_counts(
    read: dict[str, Any], parents: list[str]
) -> None:
    graph = old(
        task("a", WRITTEN | {"path": "/x", "id": "1"}),
        task("b", WRITTEN | {"path": "/y", "id": "2", "size": 70}),
        task("c", READ | read, parents=parents),
    )
    assert graph.edge_bytes == {(1, 2): 70}


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (
            {"runtime": 1.0, "runtimeInSeconds": 100.0},
            "runtimeInSeconds, runtime: found 100.0 and 1.0",
        ),
        (
            {"files": [WRITTEN | {"sizeInBytes": 1}]},
            "output 'f': sizeInBytes, size: found 1.0 and 1000.0",
        ),
    ],
)
def test_two_values_for_one_thing_are_refused(task: dict[str, Any], message: str) -> None:
    with refused_in_a_line(f"photo.json: task 'a': {message}, one is needed"):
        old({"name": "a"} | task)


def test_the_same_value_twice_is_one() -> None:
    twice = {"runtime": 4.0, "runtimeInSeconds": 4.0, "memory": 300_000, "memoryInBytes": 3e8}
    (task,) = old({"name": "a"} | twice | {"files": [WRITTEN, WRITTEN]}).tasks
    assert (task.runtime, task.memory, list(task.writes.values())) == (4, 300, [1000])


def test_declared_order_wins_over_several_steps() -> None:
    """The first task cannot wait for the last one, which writes what it reads; another can."""
    graph = old(
        task("a", READ),
        task("b", parents=["a"]),
        task("c", WRITTEN, parents=["b"]),
        task("d", READ),
    )
    assert edges(graph) == {("a", "b"), ("b", "c"), ("c", "d")}
    assert graph.assumptions == {
        "edges added for a file that is read": 1,
        "file dependencies against the declared order left out": 1,
    }
