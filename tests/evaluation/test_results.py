"""An evaluation that is killed at any moment loses nothing that was played, and goes on."""

from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from env.base.errors import InputError
from env.sim.workflow_template import WorkflowTemplate
from env.workloads.generator import EpisodeWorkload
from evaluation.contest import all_metrics
from evaluation.fingerprint import fingerprint
from evaluation.results import (
    ResultsWriter,
    check_resume,
    episode_layout,
    first_difference,
    read_results,
    read_run,
)
from tests.report.evaluations import finished, row_of, run_of

KNOWN = {("a", 0, 0)}
"""Keys of rows that a resumed evaluation can have."""


def test_rows_and_their_units(tmp_path: Path) -> None:
    finished(tmp_path, {"b": [3, 5], "a": [1, 2]})
    table = pd.read_parquet(tmp_path / "results.parquet")
    assert list(table.columns) == ["policy", "kind", "seed", "episode", *all_metrics()]
    rows = list(zip(table["policy"], table["seed"], table["episode"], table["J"], strict=True))
    assert rows == [("b", 0, 0, 3.0), ("b", 0, 1, 5.0), ("a", 0, 0, 1.0), ("a", 0, 1, 2.0)]
    rent = pq.read_schema(tmp_path / "results.parquet").field("rent").metadata
    assert (rent[b"unit"], rent[b"better"]) == (b"USD", b"lower")
    assert not (tmp_path / "unfinished.jsonl").exists()


@pytest.mark.parametrize("name", ["unfinished.jsonl", "run.json", "figures"])
def test_links_in_a_folder_to_go_on_with_are_refused(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    with ResultsWriter(folder, run_of(), ["a"], episode_layout()) as writer:
        writer.add([(row_of("a", 0, 3.0), None)])
    check_resume(folder, run_of(), episode_layout(), KNOWN)
    if (folder / name).exists():
        (folder / name).rename(tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=f"{name}' is a link, files and folders of the run are"):
        check_resume(folder, run_of(), episode_layout(), KNOWN)


def test_a_killed_evaluation_keeps_what_was_played(tmp_path: Path) -> None:
    with ResultsWriter(tmp_path, run_of(), ["a", "b"], episode_layout()) as writer:
        writer.add([(row_of("b", 0, 2.0), None)])
        writer.add([(row_of("a", 0, float("nan")), None)])
    # The kill came in the middle of a line.
    file = tmp_path / "unfinished.jsonl"
    file.write_bytes(file.read_bytes() + b'{"policy": "a", "ki')
    with pytest.raises(InputError, match="has not finished: go on with resume="):
        read_results(tmp_path)
    with ResultsWriter(tmp_path, run_of(), ["a", "b"], episode_layout()) as writer:
        assert set(writer.done) == {("b", 0, 0), ("a", 0, 0)}
        writer.add([(row_of("a", 1, 1.0), None)])
        writer.add([(row_of("b", 1, 4.0), None)])
        table = writer.finish()
    assert list(table["policy"]) == ["a", "a", "b", "b"]
    assert list(table["J"])[1:] == [1.0, 2.0, 4.0]


def test_a_finished_evaluation_has_nothing_left_to_play(tmp_path: Path) -> None:
    before = finished(tmp_path, {"a": [1, 2]})
    with ResultsWriter(tmp_path, run_of(), ["a"], episode_layout()) as writer:
        assert set(writer.done) == {("a", 0, 0), ("a", 0, 1)}
        pd.testing.assert_frame_equal(writer.finish(), before)


def test_resuming_with_something_else_is_refused(tmp_path: Path) -> None:
    finished(tmp_path, {"a": [1]})
    check_resume(tmp_path, run_of(workers=7), episode_layout(), KNOWN)
    with pytest.raises(InputError, match=r"has a row of \('a', 0, 0\), which is no part of it"):
        check_resume(tmp_path, run_of(), episode_layout(), {("b", 0, 0)})
    other = {"arrivals": {"mean_gap": 6}}
    with pytest.raises(InputError, match=r"workload\.arrivals\.mean_gap is 6.* with 5: give"):
        check_resume(tmp_path, run_of(workload=other), episode_layout(), KNOWN)
    with pytest.raises(InputError, match="commit is d, .* was made with c"):
        check_resume(tmp_path, run_of(commit="d"), episode_layout(), KNOWN)
    with pytest.raises(InputError, match="workload_sha256"):
        check_resume(tmp_path, run_of(workload_sha256="other files"), episode_layout(), KNOWN)
    with pytest.raises(InputError, match=r"resume: no run\.json in"):
        check_resume(tmp_path / "nowhere", run_of(), episode_layout(), KNOWN)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "not valid JSON"),
        ("[]", "a mapping is needed"),
        ('{"metrics": {}, "policy": 1}', "policy"),
        ('{"policy": "a", "kind": "baseline", "seed": 0, "episode": 0, "metrics": {}}', "'J'"),
    ],
)
def test_damaged_rows_are_refused(line: str, says: str, tmp_path: Path) -> None:
    with ResultsWriter(tmp_path, run_of(), ["a"], episode_layout()) as writer:
        writer.add([(row_of("a", 0, 2.0), None)])
    with (tmp_path / "unfinished.jsonl").open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(InputError, match=rf"unfinished\.jsonl: line 2: .*{says}"):
        check_resume(tmp_path, run_of(), episode_layout(), KNOWN)


def test_a_table_without_its_columns_is_not_resumed(tmp_path: Path) -> None:
    finished(tmp_path, {"a": [1]}).drop(columns="seed").to_parquet(tmp_path / "results.parquet")
    with pytest.raises(InputError, match=r"results\.parquet: column 'seed' is missing"):
        check_resume(tmp_path, run_of(), episode_layout(), KNOWN)


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 2}'])
def test_a_damaged_run_file_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(InputError, match=r"run\.json"):
        read_run(tmp_path, "compare")


def test_a_damaged_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "results.parquet").write_bytes(b"PAR1 no table")
    with pytest.raises(InputError, match=r"results\.parquet"):
        read_results(tmp_path)


def test_the_first_difference_of_two_trees() -> None:
    one = {"a": 1, "b": {"c": [1], "d": None}}
    assert first_difference(one, {"b": {"d": None, "c": [1]}, "a": 1}) is None
    assert first_difference(one, {"a": 1, "b": {"c": [2], "d": None}}) == ("b.c", [1], [2])
    assert first_difference(one, {**one, "e": 5}) == ("e", None, 5)


def test_a_fingerprint_sees_every_number_that_arrives() -> None:
    def workload(
        time: float = 0.0, memory: int = 1, data: int = 5, tenants: tuple[str, ...] = ()
    ) -> EpisodeWorkload:
        template = WorkflowTemplate("w", [9, 9], [memory, 1], [1, 1], [(0, 1)], [data])
        return EpisodeWorkload((time,), (template,), tenants)

    base = fingerprint([workload()])
    assert base == fingerprint([workload()])
    others = [[workload(1.0)], [workload(memory=2)], [workload(data=6)], [workload()] * 2]
    others += [[workload(tenants=("a",))], [workload(tenants=("b",))]]
    assert len({base, *map(fingerprint, others)}) == 7
