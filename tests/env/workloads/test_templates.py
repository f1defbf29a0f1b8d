"""Pools: the config group `workflow` from YAML to templates, and what was assumed of files."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from env.base.schema import validated
from env.sim.declared.images import Images
from env.workloads.assumptions import printed
from env.workloads.templates import FilesEntry, WorkflowConfig, assumed_of, template_pools
from tests.documents import put, refused_in_a_line
from tests.env.worlds import composed

SPEED = 1_000_000_000
ANNOTATION = composed("+workflow=files")["workflow"]["annotation"]


def configured(data: dict[str, Any]) -> WorkflowConfig:
    return validated(WorkflowConfig, data, "workflow")


def names(*overrides: str) -> list[list[str]]:
    """Of the workflows for training and for evaluation."""
    pools = template_pools(configured(composed(*overrides)["workflow"]), SPEED)
    return [
        [each.name for each in pool.templates] for pool in (pools["training"], pools["evaluation"])
    ]


def test_the_study_has_disjoint_pools_of_the_stated_kind() -> None:
    pools = template_pools(configured(composed("+workflow=study")["workflow"]), SPEED)
    training, evaluation = pools["training"].templates, pools["evaluation"].templates
    assert (len(training), len(evaluation)) == (60, 30)
    seen = {template.computation.tobytes() for template in training}
    assert len(seen) == 60
    assert not seen & {template.computation.tobytes() for template in evaluation}
    assert len({template.name for template in training + evaluation}) == 90
    for template in training + evaluation:
        runtime = template.computation / template.parallelism / SPEED
        assert template.function_count in range(28, 81)
        for values, low, high in (
            (runtime, 0.5, 1800),
            (template.parallelism, 1, 4),
            (template.memory_req, 512, 4096),
        ):
            assert values.min() >= low and values.max() <= high
    assert pools["training"].weights.sum() == pytest.approx(1)


def test_pools_are_filled_once() -> None:
    data = composed("+workflow=tiny")["workflow"]
    assert template_pools(configured(data), SPEED) is template_pools(configured(data), SPEED)
    assert template_pools(configured(data), SPEED) is not template_pools(configured(data), 5)


def test_inline_numbers_and_names() -> None:
    mix = {
        "numbered": {
            "functions": [{"runtime": 2.0, "memory": 100, "parallelism": 3}, {"computation": 7}],
            "edges": [{"from": 0, "to": 1, "bytes": 50}],
        },
        "named": {
            "weight": 3,
            "functions": {"a": {"runtime": 2.0}, 5: {"runtime": 1.0}},
            "edges": [{"from": "a", "to": 5, "bytes": 60, "probability": 0.3}],
        },
    }
    pool = template_pools(configured({"mix": mix, "annotation": ANNOTATION}), 10)["training"]
    numbered, named = pool.templates
    assert numbered.computation.tolist() == [60, 7]
    assert numbered.memory_req[0] == 100
    assert (numbered.edges.tolist(), numbered.data_bytes.tolist()) == ([[0, 1]], [50])
    assert (numbered.probability.tolist(), named.probability.tolist()) == ([1.0], [0.3])
    assert named.function_names == ("a", "5")
    assert named.name == "named"
    assert pool.weights.tolist() == [0.25, 0.75]
    sizes = {"workflows": 1, "tasks": 2}
    assert pool.assumptions == {
        "workflow: mix.numbered": sizes | {"memory drawn": 1, "parallelism drawn": 1},
        "workflow: mix.named": sizes | {"memory drawn": 2, "parallelism drawn": 2},
    }


@pytest.mark.parametrize(
    ("functions", "edge", "words"),
    [
        ({"regions": {"allowed": ["r"], "disallowed": ["r"]}}, {}, "'r' is both allowed and disal"),
        ({}, {"probability": 0}, "greater than 0, found 0"),
        ({}, {"probability": 1.5}, "or equal to 1, found 1.5"),
    ],
)
def test_regions_and_probabilities_that_are_refused(
    functions: dict[str, Any], edge: dict[str, Any], words: str
) -> None:
    entry = {
        "functions": [{"runtime": 1.0, **functions}] * 2,
        "edges": [{"from": 0, "to": 1, "bytes": 0, **edge}],
    }
    with refused_in_a_line("workflow: mix.m.", words):
        configured({"mix": {"m": entry}, "annotation": ANNOTATION})


def test_a_mix_draws_entries_by_weight(fixtures: Path, tmp_path: Path) -> None:
    """The weight belongs to the entry, however many files it has."""
    for number in range(3):
        shutil.copy(fixtures / "photo.json", tmp_path / f"{number}.json")
    mix = {
        "many": {"path": str(tmp_path), "weight": 1},
        "one": {"path": str(fixtures / "photo.dax"), "weight": 4},
    }
    pool = template_pools(configured({"mix": mix, "annotation": ANNOTATION}), SPEED)["training"]
    assert [template.name for template in pool.templates] == ["0", "1", "2", "photo"]
    assert pool.weights == pytest.approx([1 / 15, 1 / 15, 1 / 15, 0.8])
    drawn = pool.draw(np.random.default_rng(0), 4_000)
    share = sum(template.name == "photo" for template in drawn) / 4_000
    assert share == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize("group", ["study", "files"])
def test_a_path_takes_the_place_of_the_mix(fixtures: Path, group: str) -> None:
    path = f"workflow.path={fixtures}/photo.json"
    assert names(f"+workflow={group}", path) == [["photo"], ["photo"]]


def test_containers_are_started_from_the_programs_of_a_file(fixtures: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        shutil.copy(fixtures / "photo.json", tmp_path / f"{name}.json")
    assert images(composed("+workflow=files", f"workflow.path={tmp_path}")) == [
        [0, 1, 1, 2],
        [3, 4, 4, 5],
    ]


def test_functions_without_a_name_share_no_containers() -> None:
    assert images(composed("+workflow=tiny")) == [[0, 1, 2], [3, 4, 5, 6], [7, 8, 9, 10, 11, 12]]


def images(told: dict[str, Any]) -> list[list[int]]:
    """Of the functions of each workflow."""
    templates = template_pools(configured(told["workflow"]), SPEED)["training"].templates
    return [of.tolist() for of in Images.by_name(templates, 1.0).of.values()]


def test_other_files_for_evaluation(fixtures: Path) -> None:
    paths = (
        f"workflow.path=[{fixtures}/photo.json,{fixtures}/photo.dax]",
        f"workflow.evaluation_path={fixtures}/photo_old.json",
    )
    assert names("+workflow=files", *paths) == [["photo", "photo"], ["photo_old"]]


def test_a_changed_file_is_read_again(fixtures: Path, tmp_path: Path) -> None:
    file = tmp_path / "w.json"
    shutil.copy(fixtures / "photo.json", file)
    config = configured({"path": str(file), "annotation": ANNOTATION})
    assert template_pools(config, SPEED)["training"].templates[0].function_count == 4
    shutil.copy(fixtures / "photo_old.json", file)
    assert template_pools(config, SPEED)["training"].templates[0].function_count == 3


def test_a_validated_path_means_the_same_elsewhere(
    fixtures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(fixtures)
    mix = {"a": {"path": ["photo.dax"]}}
    config = configured({"path": "photo.json", "mix": mix, "annotation": ANNOTATION})
    entry = config.mix["a"]
    assert config.path == (str(fixtures / "photo.json"),)
    assert isinstance(entry, FilesEntry) and entry.path == (str(fixtures / "photo.dax"),)


@pytest.mark.parametrize(
    ("group", "path", "value", "message"),
    [
        ("files", "path", "???", "path: missing, it has no default and must be given"),
        ("study", "evaluation_path", "x", "evaluation_path needs path, which is not given"),
        ("study", "mix.blast", {"recip": "blast"}, "mix.blast: one of the keys recipe, path, fun"),
        ("tiny", "mix.chain.functions", [], "mix.chain: no tasks, at least 1 is needed"),
        ("tiny", "mix.chain.edges.0.to", 9, "mix.chain: edge 0 -> 9: '9', no such task"),
        (
            "tiny",
            "mix.chain.edges.0",
            {"from": 2, "to": 1, "bytes": 1},
            "mix.chain: workflow 'chain': the graph has a cycle",
        ),
    ],
)
def test_bad_configs(group: str, path: str, value: object, message: str) -> None:
    data = composed(f"+workflow={group}")["workflow"]
    put(*(int(part) if part.isdigit() else part for part in path.split(".")), to=value)(data)
    with refused_in_a_line(f"workflow: {message}"):
        template_pools(configured(data), SPEED)


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
