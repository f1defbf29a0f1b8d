"""The old layout of WfFormat: which task or file a name means, and what is stated twice."""

from typing import Any

import networkx as nx
import numpy as np
import pytest

from env.base.errors import InputError
from env.workloads.task_graph import TaskGraph
from tests.documents import refused_in_a_line
from tests.env.workloads.test_wfformat import read


def old(*tasks: dict[str, Any], key: str = "tasks") -> TaskGraph:
    return read({"schemaVersion": "1.4", "workflow": {key: list(tasks)}})


def task(name: str, *files: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {"name": name, "runtime": 1.0, "files": list(files), **others}


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
    assert [(task.category, task.runtime) for task in graph.tasks] == [
        ("QC", 5.0),
        ("QC", 7.0),
        ("REPORT", 3.0),
    ]


def test_an_id_counts_before_a_name() -> None:
    graph = old(
        task("b", id="a"),
        task("a", id="b"),
        task("c", parents=["a"]),
    )
    assert edges(graph) == {("a", "c")}


def test_a_name_of_several_tasks_is_no_reference() -> None:
    says = "task '3' has the parent 'QC', the name of 2 tasks and the id of none"
    with refused_in_a_line(f"photo.json: {says}"):
        old(task("QC", id="1"), task("QC", id="2"), task("REPORT", id="3", parents=["QC"]))


def test_without_ids_names_may_not_repeat() -> None:
    with pytest.raises(InputError, match="task 'QC' is declared twice"):
        old({"name": "QC"}, {"name": "QC"})


WRITTEN = {"name": "f", "link": "output", "size": 1000}
READ = {"name": "f", "link": "input"}


@pytest.mark.parametrize(
    ("written", "read", "moved"),
    [
        ({"id": "f1"}, {}, 1000),
        ({"path": "/w"}, {}, 1000),
        ({"path": "//w/x/../"}, {"path": "/w"}, 1000),
        ({"path": "/w"}, {"path": "w"}, 0),
        ({"path": "/w"}, {"path": "/v"}, 0),
        ({"id": "f1"}, {"path": "/w"}, 1000),
        ({"id": "f1", "path": "/w"}, {"path": "/w"}, 1000),
        ({"id": "f1", "path": "/w"}, {"path": "/v"}, 0),
        ({"id": "f1", "path": "/w"}, {"id": "f1", "path": "/v"}, 1000),
        ({"id": "f1", "path": "/w"}, {"id": "f2", "path": "/w"}, 0),
        ({"id": "f1"}, {"id": "f1", "name": "g"}, 1000),
        ({}, {"name": "g"}, 0),
    ],
)
def test_files_are_the_same_unless_both_ends_state_otherwise(
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


def test_one_end_may_have_many_files() -> None:
    """Each reader gets its own of what one task writes."""
    many = [WRITTEN | {"name": f"f{k}", "id": str(k), "size": k} for k in range(20)]
    readers = [task(f"r{k}", READ | {"name": f"f{k}"}, parents=["a"]) for k in range(20)]
    graph = old(task("a", *many), *readers)
    assert graph.edge_bytes == {(0, k + 1): k for k in range(20)}


def test_sizes_under_other_names_are_one_files() -> None:
    graph = old(
        task("a", WRITTEN | {"id": "f1"}),
        task("b", READ | {"size": 999}, parents=["a"]),
    )
    assert graph.edge_bytes == {(0, 1): 1000}
    assert graph.assumptions == {"files with several sizes, the writer's taken": 1}


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (
            {"runtime": 1.0, "runtimeInSeconds": 100.0},
            "runtimeInSeconds, runtime: found 100.0 and 1.0",
        ),
        (
            {"files": [WRITTEN | {"sizeInBytes": 1}]},
            "size of output 'f': found 1.0 and 1000.0",
        ),
    ],
)
def test_two_values_for_one_thing_are_refused(task: dict[str, Any], message: str) -> None:
    with refused_in_a_line(f"photo.json: task 'a': {message}, one is needed"):
        old({"name": "a"} | task)


def test_the_same_value_twice_is_one() -> None:
    twice = {"runtime": 4.0, "runtimeInSeconds": 4.0, "memory": 300_000, "memoryInBytes": 3e8 + 499}
    (task,) = old({"name": "a"} | twice | {"files": [WRITTEN, WRITTEN]}).tasks
    assert (task.runtime, task.memory, list(task.writes.values())) == (4, 300.000499, [1000])


def test_declared_order_wins_over_several_steps() -> None:
    """Of all pairs, as a search through the declared edges from each reader tells."""
    rng = np.random.default_rng(3)
    count = 60
    declared = nx.DiGraph()
    declared.add_nodes_from(range(count))
    declared.add_edges_from(sorted(pair) for pair in rng.integers(count, size=(150, 2)).tolist())
    declared.remove_edges_from([(k, k) for k in range(count)])
    readers = rng.permutation(count).tolist()  # task k reads what task readers[k] writes
    graph = old(
        *(
            task(
                f"t{k}",
                WRITTEN | {"name": f"f{k}"},
                READ | {"name": f"f{readers[k]}"},
                parents=[f"t{parent}" for parent in declared.predecessors(k)],
            )
            for k in range(count)
        )
    )
    implied = {(writer, k) for k, writer in enumerate(readers) if writer != k}
    against = {(writer, k) for writer, k in implied if nx.has_path(declared, k, writer)}
    assert 3 < len(against) < len(implied)
    assert graph.edge_bytes.keys() == set(declared.edges) | implied - against
