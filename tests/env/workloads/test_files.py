"""Which files a path names, compressed files, and the real samples."""

import csv
import gzip
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from env.base.errors import InputError
from env.workloads.annotation import AnnotationRules, annotate
from env.workloads.workflow_files import find_workflow_files, read_workflow_file
from tests.documents import refused_in_a_line

ALL = ["photo.dax", "photo_old.json.gz", "photo.json"]


@pytest.fixture
def folder(fixtures: Path, tmp_path: Path) -> Path:
    """photo.json, INDEX.csv, deep/photo.dax, deep/photo_old.json.gz."""
    (tmp_path / "deep").mkdir()
    shutil.copy(fixtures / "photo.json", tmp_path)
    shutil.copy(fixtures / "photo.dax", tmp_path / "deep")
    packed = gzip.compress((fixtures / "photo_old.json").read_bytes())
    (tmp_path / "deep" / "photo_old.json.gz").write_bytes(packed)
    (tmp_path / "INDEX.csv").write_text("file\n")
    return tmp_path


def names(paths: Iterable[Path]) -> list[str]:
    return [path.name for path in paths]


def test_a_folder_is_searched_in_full_depth(folder: Path) -> None:
    found = find_workflow_files([str(folder)])
    assert names(found) == ALL
    assert [len(read_workflow_file(path).tasks) for path in found] == [4, 3, 4]
    assert [read_workflow_file(path).name for path in found] == ["photo", "photo_old", "photo"]


def test_patterns_and_lists(folder: Path) -> None:
    assert names(find_workflow_files([f"{folder}/*"])) == ALL
    assert names(find_workflow_files([f"{folder}/**/*.gz"])) == ["photo_old.json.gz"]
    twice = [str(folder / "photo.json"), str(folder)]
    assert names(find_workflow_files(twice)) == ["photo.json", "photo.dax", "photo_old.json.gz"]


def test_what_begins_with_a_dot_is_not_searched(folder: Path) -> None:
    for hidden in (".copies/photo.json", "deep/.git/deeper/photo.json", ".photo.json"):
        (folder / hidden).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / "photo.json", folder / hidden)
    for path in (f"{folder}", f"{folder}/*", f"{folder}/**"):
        assert names(find_workflow_files([path])) == ALL
    # Named, it is meant.
    assert names(find_workflow_files([f"{folder}/.copies"])) == ["photo.json"]
    assert names(find_workflow_files([f"{folder}/.photo.json"])) == [".photo.json"]


@pytest.mark.parametrize("path", ["here", "here/*", "h*"])
def test_links_out_of_what_is_searched_are_refused(folder: Path, path: str) -> None:
    where = folder / "in"
    (where / "here").mkdir(parents=True)
    (where / "here" / "link.json").symlink_to(folder / "photo.json")
    (where / "here" / "near.json").symlink_to(where / "here" / "link.json")
    for file, inside in find_workflow_files([str(where / path)]).items():
        with pytest.raises(InputError, match=f"{file}: a link that leads out of"):
            read_workflow_file(file, inside=inside)
    ((link, inside),) = find_workflow_files([str(where / "here" / "link.json")]).items()
    assert len(read_workflow_file(link, inside=inside).tasks) == 4


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nowhere.json", "nowhere.json: no such file or folder"),
        ("INDEX.csv", "INDEX.csv: not a workflow file, allowed suffixes: .json, .json.gz, .dax"),
        ("empty", "empty: no workflow file in it"),
    ],
)
def test_paths_that_name_nothing(folder: Path, path: str, message: str) -> None:
    (folder / "empty").mkdir()
    with refused_in_a_line(f"{folder}/{message}"):
        find_workflow_files([str(folder / path)])


@pytest.mark.realdata
@pytest.mark.parametrize(("folder", "tasks"), [("wfinstances", "tasks"), ("pegasus_dax", "jobs")])
def test_real_samples(data_dir: Path, rules: AnnotationRules, folder: str, tasks: str) -> None:
    with (data_dir / folder / "INDEX.csv").open() as index_file:
        index = {row["file"]: row for row in csv.DictReader(index_file)}
    found = find_workflow_files([str(data_dir / folder)])
    assert set(names(found)) == set(index)
    for path in found:
        graph, row = read_workflow_file(path), index[path.name]
        template, counts = annotate(graph, rules, 1_000_000_000)
        assert template.function_count == int(row[tasks]), path.name
        assert len(template.edges) == int(row["edges"]), path.name
        assert template.memory_req.min() >= rules.min_memory
        assert 1 <= template.parallelism.min() <= template.parallelism.max() <= 16
        if folder == "pegasus_dax":
            conflicting = int(row["files_with_conflicting_sizes"])
            assert counts["files with several sizes, the writer's taken"] == conflicting
        else:
            zero = int(row["tasks_runtime_zero"])
            assert counts["runtime 0 raised to min_runtime"] == zero
            stated = sum(float(task.runtime or 0) for task in graph.tasks)
            assert stated == pytest.approx(float(row["sum_runtime_s"]), abs=0.01)
            assert counts["memory drawn"] >= len(graph.tasks) - int(row["tasks_with_memoryInBytes"])
