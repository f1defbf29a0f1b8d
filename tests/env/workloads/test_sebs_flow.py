"""SeBS-Flow: definitions unrolled as they were measured, and the numbers of their functions."""

import json
from pathlib import Path
from typing import Any

import pytest

from env.base.errors import InputError
from env.workloads.task_graph import TaskGraph
from env.workloads.workflow_files import find_workflow_files, read_workflow_file

HEADER = "func,start,end,is_cold,blob.upload,blob.download,request_id,max_mem_used\n"
SPLIT = {"type": "task", "func_name": "split", "next": "each"}
EACH = {"type": "map", "root": "one", "array": "list", "next": "both"}
BOTH = {
    "type": "parallel",
    "parallel_functions": [
        {"root": "a", "states": {"a": {"type": "task", "func_name": "sum", "next": "b"}} | {
            "b": {"type": "loop", "func_name": "refine", "array": "list"}}},
        {"root": "try", "states": {
            "try": {"type": "task", "func_name": "book", "failure": "undo"},
            "undo": {"type": "task", "func_name": "cancel"}}},
    ],
}  # fmt: skip
MANY = {"type": "repeat", "func_name": "f", "count": 10**9}
ONE = {"one": {"type": "task", "func_name": "work"}}
STATES = {"split": SPLIT, "each": {**EACH, "states": ONE}, "both": BOTH}
MEASURED = """\
split,10,14,True,1000,,x,
split,20,21,False,3000,9,y,90
work,30,36,True,0,500,x,40
work,30,33,False,7,500,x,41
work,30,31,False,7,400,y,60
work,30,35,False,7,500,y,
run_workflow,0,90,,,,x,
sum,40,42,True,0,800,x,
sum,40,43,True,0,800,y,
refine,50,51,False,0,0,x,
refine,50,51,False,0,0,x,
refine,50,51,False,0,0,x,
refine,50,51,False,0,0,y,
cancel,60,61,False,0,0,x,
"""


def read(folder: Path, states: Any = STATES, rows: str = MEASURED) -> TaskGraph:
    (folder / "definition.json").write_text(json.dumps({"root": "split", "states": states}))
    (folder / "config.json").write_text('{"memory": 128}')
    (folder / "aws_warm_128_processed.csv").write_text(HEADER + rows)
    ((file, inside),) = find_workflow_files([str(folder)]).items()
    return read_workflow_file(file, inside=inside)


def test_a_definition_is_unrolled_as_it_was_measured(tmp_path: Path) -> None:
    """A run has 2 executions of `work` and 1 to 3, 2 in the middle, of `refine`; `book` failed.

    Numbers are medians of warm executions, those of `sum` are cold ones. `split` uploads 2,000
    bytes, of which `work` takes 500.
    """
    graph = read(tmp_path)
    assert graph.name == f"{tmp_path.name}_aws_warm_128"
    names = ["split_0", "work_1", "work_2", "sum_3", "refine_4", "refine_5", "cancel_6"]
    assert [task.name for task in graph.tasks] == names
    assert set(graph.edge_bytes) == {
        *((0, 1), (0, 2), (1, 3), (2, 3)),
        *((3, 4), (4, 5), (1, 6), (2, 6)),
    }
    tasks = {task.category: task for task in graph.tasks}
    runtimes = {"split": 1, "work": 3, "sum": 2.5, "refine": 1, "cancel": 1}
    assert {name: task.runtime for name, task in tasks.items()} == runtimes
    memory = {"split": 90, "work": 60, "sum": None, "refine": None, "cancel": None}
    assert {name: task.memory for name, task in tasks.items()} == memory
    assert (graph.edge_bytes[0, 1], graph.edge_bytes[1, 3], graph.edge_bytes[1, 6]) == (500, 7, 0)
    assert graph.assumptions == {
        "tasks that failed when measured, left out": 1,
        "runtimes of cold containers, as none was warm": 1,
        "parallelism taken as 1": 7,
    }


def test_maps_in_maps_and_functions_that_were_not_measured(tmp_path: Path) -> None:
    inner = {**EACH, "states": ONE, "next": None}
    outer = {**EACH, "root": "in", "states": {"in": inner}, "next": "end"}
    end = {"type": "repeat", "func_name": "rest", "count": 2}
    graph = read(tmp_path, {"split": SPLIT, "each": outer, "end": end})
    assert [task.name for task in graph.tasks][3:] == ["rest_3", "rest_4"]
    assert graph.tasks[4].runtime is None


@pytest.mark.parametrize(
    ("states", "words"),
    [
        ({"split": SPLIT}, "definition.json: state 'each': no such state"),
        ({"split": {**SPLIT, "next": "split"}}, "definition.json: state 'split': comes again"),
        ({"split": {"type": "switch"}}, "definition.json: states.split: .*'switch'"),
        ({"split": MANY}, "definition.json: more than 5,000,000 tasks and edges"),
    ],
)
def test_definitions_that_are_refused(tmp_path: Path, states: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read(tmp_path, states)


def test_a_definition_stands_for_all_measurements_beside_it(tmp_path: Path) -> None:
    read(tmp_path)
    (tmp_path / "gcp_burst_256_processed.csv").write_text(HEADER + MEASURED)
    found = [file.name for file in find_workflow_files([str(tmp_path / "definition.json")])]
    assert found == ["aws_warm_128_processed.csv", "gcp_burst_256_processed.csv"]
    assert [file.name for file in find_workflow_files([f"{tmp_path}/aws*"])] == found[:1]


@pytest.mark.realdata
def test_real_samples(data_dir: Path) -> None:
    """The same tasks on every platform."""
    tasks = {"6100.1000-genome": 19, "6200.trip-booking": 6, "650.vid": 4, "660.map-reduce": 10}
    for file, inside in find_workflow_files([str(data_dir / "sebs_flow")]).items():
        graph = read_workflow_file(file, inside=inside)
        assert len(graph.tasks) == (tasks | {"690.ml": 3})[file.parent.name], file
        assert all(task.runtime for task in graph.tasks), file
        if "aws" in file.name:
            assert all((task.memory or 0) > 50 for task in graph.tasks), file
