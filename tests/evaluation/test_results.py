"""An evaluation that is killed at any moment loses nothing that was played, and goes on."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pyarrow.parquet as pq
import pytest

from env.base.errors import InputError
from env.sim.declared.episode import EpisodeWorkload
from env.sim.declared.hardware import cluster_from_config
from env.sim.declared.workflow_template import WorkflowTemplate
from env.workloads.generator import WorkloadGenerator
from env.workloads.source import workload_source
from evaluation.contest import Row
from evaluation.evaluation_run import fingerprint
from evaluation.results import COLUMNS, ResultsWriter, check_resume, read_results
from tests.env.worlds import world
from tests.report.evaluations import metrics_of_rows, result, run_of, workload_of

MADE = metrics_of_rows()
KNOWN = {("a", "", 0, 0)}
"""Keys of rows that a resumed evaluation can have."""


def row_of(policy: str, episode: int, value: float, scenario: str = "") -> Row:
    """A row whose metrics all have one value."""
    columns = result(policy, episode, value, scenario=scenario)
    return Row(metrics={name: columns.pop(name) for name in MADE}, **columns)


def keys(*policies: str, episodes: int = 3) -> list[tuple[str, str, int, int]]:
    """Of the rows of an evaluation without a sweep."""
    return [(policy, "", 0, episode) for episode in range(episodes) for policy in policies]


def finished(folder: Path, values: Mapping[str, Sequence[float]]) -> pd.DataFrame:
    """A finished evaluation: per policy the value of all its metrics in every episode."""
    with ResultsWriter(folder, run_of(), keys(*values), MADE) as writer:
        for policy, found in values.items():
            writer.add([(row_of(policy, episode, one), None) for episode, one in enumerate(found)])
        return writer.finish()


def test_rows_and_their_units(tmp_path: Path) -> None:
    finished(tmp_path, {"b": [3, 5], "a": [1, 2]})
    table = pd.read_parquet(tmp_path / "results.parquet")
    assert list(table.columns) == [*COLUMNS, *MADE]
    rows = list(zip(table["policy"], table["seed"], table["episode"], table["J"], strict=True))
    # In the order in which they were asked for, whoever came first.
    assert rows == [("b", 0, 0, 3.0), ("a", 0, 0, 1.0), ("b", 0, 1, 5.0), ("a", 0, 1, 2.0)]
    assert table["flow_time_quantiles"].map(list).tolist()[0] == [1.5] * 100 + [4.5] * 100
    rent = pq.read_schema(tmp_path / "results.parquet").field("rent").metadata
    assert (rent[b"unit"], rent[b"better"]) == (b"USD", b"lower")
    assert not (tmp_path / "unfinished.jsonl").exists()


@pytest.mark.parametrize("name", ["unfinished.jsonl", "figures"])
def test_links_in_a_folder_to_go_on_with_are_refused(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    with ResultsWriter(folder, run_of(), keys("a"), MADE) as writer:
        writer.add([(row_of("a", 0, 3.0), None)])
    check_resume(folder, run_of(), MADE, KNOWN)
    if (folder / name).exists():
        (folder / name).rename(tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=f"{name}' is a link, files and folders of the run are"):
        check_resume(folder, run_of(), MADE, KNOWN)


def test_a_killed_evaluation_keeps_what_was_played(tmp_path: Path) -> None:
    """Rows of scenarios stand apart."""
    known = [("a", "x=1", 0, 0), ("b", "x=1", 0, 0), ("a", "x=2", 0, 0), ("b", "x=2", 0, 0)]
    with ResultsWriter(tmp_path, run_of(), known, MADE) as writer:
        writer.add([(row_of("b", 0, 2.0, "x=1"), None)])
        writer.add([(row_of("a", 0, float("nan"), "x=1"), None)])
    # The kill came in the middle of a line.
    file = tmp_path / "unfinished.jsonl"
    file.write_bytes(file.read_bytes() + b'{"policy": "a", "ki')
    with pytest.raises(InputError, match="has not finished: go on with resume="):
        read_results(tmp_path)
    with ResultsWriter(tmp_path, run_of(), known, MADE) as writer:
        assert set(writer.done) == {*known[:2]}
        writer.add([(row_of("b", 0, 4.0, "x=2"), None)])
        writer.add([(row_of("a", 0, 1.0, "x=2"), None)])
        table = writer.finish()
    found = zip(table["policy"], table["scenario"], table["seed"], table["episode"], strict=True)
    assert list(found) == known
    assert list(table["J"])[1:] == [2.0, 1.0, 4.0]


def test_a_finished_evaluation_has_nothing_left_to_play(tmp_path: Path) -> None:
    before = finished(tmp_path, {"a": [1, 2]})
    with ResultsWriter(tmp_path, run_of(), keys("a"), MADE) as writer:
        assert set(writer.done) == {("a", "", 0, 0), ("a", "", 0, 1)}
        pd.testing.assert_frame_equal(writer.finish(), before)


def test_resuming_with_something_else_is_refused(tmp_path: Path) -> None:
    finished(tmp_path, {"a": [1]})
    check_resume(tmp_path, run_of(workers=7), MADE, KNOWN)
    with pytest.raises(InputError, match=r"has a row of \('a', '', 0, 0\), which is no part of it"):
        check_resume(tmp_path, run_of(), MADE, {("b", "", 0, 0)})
    with pytest.raises(InputError, match=r"workload\.arrivals\.mean_gap is 6.* with 5: give"):
        check_resume(tmp_path, run_of(workload=workload_of(6)), MADE, KNOWN)
    swept = {"lease.step": [60, 120]}
    with pytest.raises(InputError, match="resume: sweep.* is .* was made with None: give the same"):
        check_resume(tmp_path, run_of(sweep=swept), MADE, KNOWN)
    with pytest.raises(InputError, match="commit is d, .* was made with c"):
        check_resume(tmp_path, run_of(commit="d"), MADE, KNOWN)
    with pytest.raises(InputError, match="workload_sha256"):
        check_resume(tmp_path, run_of(workload_sha256="other files"), MADE, KNOWN)
    with pytest.raises(InputError, match=r"resume: no run\.json in"):
        check_resume(tmp_path / "nowhere", run_of(), MADE, KNOWN)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"policy": 1}, "policy: .*found 1"),
        ({"flow_time_quantiles": [1.0]}, "flow_time_quantiles: List should have at least 200"),
        ({"metrics": {}}, "metrics: 'J' is missing, required"),
    ],
)
def test_damaged_rows_are_refused(changed: dict[str, Any], says: str, tmp_path: Path) -> None:
    with ResultsWriter(tmp_path, run_of(), keys("a"), MADE) as writer:
        writer.add([(row_of("a", 0, 2.0), None)])
    file = tmp_path / "unfinished.jsonl"
    row = json.loads(file.read_text())
    file.write_text(file.read_text() + json.dumps({**row, **changed}) + "\n")
    with pytest.raises(InputError, match=rf"unfinished\.jsonl: line 2: .*{says}"):
        check_resume(tmp_path, run_of(), MADE, KNOWN)


def test_a_table_without_its_columns_is_not_resumed(tmp_path: Path) -> None:
    finished(tmp_path, {"a": [1]}).drop(columns="seed").to_parquet(tmp_path / "results.parquet")
    with pytest.raises(InputError, match=r"results\.parquet: column 'seed' is missing"):
        check_resume(tmp_path, run_of(), MADE, KNOWN)


def test_a_fingerprint_sees_every_number_that_arrives() -> None:
    def workload(
        time: float = 0.0,
        memory: int = 1,
        data: int = 5,
        tenants: tuple[str, ...] = (),
        probability: float = 1.0,
    ) -> EpisodeWorkload:
        template = WorkflowTemplate(
            "w", [9, 9], [memory, 1], [1, 1], [(0, 1)], [data], probability=[probability]
        )
        return EpisodeWorkload((time,), (template,), tenants)

    def hashed(*episodes: EpisodeWorkload) -> str:
        source = SimpleNamespace(evaluation_episode=episodes.__getitem__)
        return fingerprint([cast(WorkloadGenerator, source)], len(episodes))

    base = hashed(workload())
    assert base == hashed(workload())
    others = [[workload(1.0)], [workload(memory=2)], [workload(data=6)], [workload()] * 2]
    others += [[workload(tenants=("a",))], [workload(tenants=("b",))]]
    others += [[workload(probability=0.5)], [workload(probability=0.25)]]
    assert len({base, *(hashed(*other) for other in others)}) == 9


def test_a_fingerprint_of_a_trace_is_of_its_functions_and_requests() -> None:
    def hashed(*overrides: str, seed: int = 0, episodes: int = 1) -> str:
        told = world("workload=azure_like", "workload.source.functions=30", *overrides)
        cluster = cluster_from_config(told["cluster"], "cluster")
        source = workload_source({}, told["workload"], cluster, seed)
        return fingerprint([source], episodes)

    base = hashed()
    assert base == hashed()
    others = [
        *(hashed(seed=1), hashed(episodes=2), hashed("workload.source.seed=2")),
        *(hashed("workload.sampling.functions=10"), hashed("workload/annotation=reserved")),
    ]
    assert len({base, *others}) == 6
