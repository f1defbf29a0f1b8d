"""Evaluations under queued dispatch are compared on the same requests, others refused."""

from pathlib import Path

import pandas as pd
import pytest

from report.compare import main
from report.queued.compare import compare_queued
from tests.report.evaluations import Damage, finished, refused, with_rows, with_run
from tests.report.queued import finished_queued

FCFS = (40.0, 20.0)


def test_orders_of_both_are_in_one_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finished_queued(tmp_path / "one", {"fcfs": FCFS, "sjf": (10.0, 10.0)})
    finished_queued(tmp_path / "two", {"fcfs": FCFS, "sjf": (5.0, 5.0), "srf": (20.0, 10.0)})
    summary = compare_queued([tmp_path / "one", tmp_path / "two"])
    found = {case.order: cells for case, cells in summary.cases if case.ratio == 1.0}
    # fcfs is the same in both and there once; sjf is not.
    assert list(found) == ["fcfs", "sjf (one)", "sjf (two)", "srf"]
    assert found["sjf (two)"]["completion"].mean == 5.0
    assert found["srf"]["speedup"].mean == pytest.approx(2.0)  # though fcfs is of the other
    assert [case.ratio for case, _ in summary.cases] == [0.1] * 4 + [1.0] * 4
    main([str(tmp_path / "one"), str(tmp_path / "two")])
    printed = capsys.readouterr().out
    assert "sjf (two)" in printed and "srf" in printed


def test_what_servers_draw_is_not_compared(tmp_path: Path) -> None:
    """Evaluations from before they said it are as good."""
    finished_queued(tmp_path / "one", {"fcfs": FCFS})
    finished_queued(tmp_path / "two", {"sjf": FCFS})
    with_run(lambda run: run["config"]["cluster"].pop("power"))(tmp_path / "two")
    summary = compare_queued([tmp_path / "one", tmp_path / "two"])
    assert {case.order for case, _ in summary.cases} == {"fcfs", "sjf"}


def test_two_policies_are_two_orders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Even where they met under no keep-alive policy; and names are shown as they are."""
    folders = [tmp_path / "one", tmp_path / "orders=[sjf]"]
    for folder, policy in zip(folders, ("p", "q"), strict=True):
        finished_queued(folder, {"fcfs": FCFS, "sjf": FCFS})
        with_rows(lambda rows: rows.replace({"order": {"sjf": "learned"}}))(folder)
        with_run(lambda run, policy=policy: run.update(policy_sha256=policy))(folder)
    with_rows(lambda rows: rows.assign(keep_alive="faascache"))(folders[1])
    main([str(folder) for folder in folders])
    printed = capsys.readouterr().out
    assert "learned (one)" in printed and "learned (orders=[sjf])" in printed
    assert "fcfs (" not in printed


def test_speedups_are_over_the_first_of_the_first(tmp_path: Path) -> None:
    finished_queued(tmp_path / "one", {"fcfs": (40.0, 40.0)})
    finished_queued(tmp_path / "two", {"fcfs": (20.0, 20.0)})
    summary = compare_queued([tmp_path / "one", tmp_path / "two"])
    speedups = {case.order: cells["speedup"].mean for case, cells in summary.cases}
    assert speedups == pytest.approx({"fcfs (one)": 1.0, "fcfs (two)": 2.0})


def test_without_the_first_order_there_is_no_speedup(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finished_queued(tmp_path / "one", {"fcfs": FCFS})
    finished_queued(tmp_path / "two", {"srf": FCFS})
    rows = pd.read_parquet(tmp_path / "two" / "results.parquet")
    rows.assign(keep_alive="none").to_parquet(tmp_path / "two" / "results.parquet")
    main([str(tmp_path / "one"), str(tmp_path / "two")])
    (line, _) = [line for line in capsys.readouterr().out.splitlines() if " srf " in line]
    assert line.split()[:5] == ["representative", "0.1", "none", "srf", "-"]


REFUSED = {
    "seeds": ("dispatch.seeds=[1,3]", "seeds is [1, 2]"),
    "samples": (
        "dispatch.samples.representative.start=90",
        "dispatch.samples.representative.start",
    ),
    "deadlines": ("dispatch.slo=[3]", "dispatch.slo is [2, 5, 10, 20]"),
    "trace": ("trace.source.seed=7", "trace.source.seed is "),
    "cluster": ("cluster.server_types.worker.server_count=3", "worker.server_count is 2"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_requests_are_refused(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    override, says = REFUSED[case]
    finished_queued(tmp_path / "one", {"fcfs": FCFS})
    finished_queued(tmp_path / "two", {"fcfs": FCFS}, override)
    refused([tmp_path / "one", tmp_path / "two"], says, capsys)


def test_requests_and_workflows_are_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finished_queued(tmp_path / "one", {"fcfs": FCFS})
    finished_queued(tmp_path / "two", {"fcfs": FCFS})
    with_run(lambda run: run["config"].pop("trace"))(tmp_path / "two")
    refused([tmp_path / "one", tmp_path / "two"], "trace.source.kind is azure_like in ", capsys)


def test_queued_and_immediate_are_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finished(tmp_path / "one", {"a": [1.0, 2.0, 3.0]})
    finished_queued(tmp_path / "two", {"fcfs": FCFS})
    refused([tmp_path / "one", tmp_path / "two"], "compared is schedulers in ", capsys)


DAMAGED: dict[str, tuple[Damage, str]] = {
    "no cluster": (with_run(lambda run: run["config"].pop("cluster")), "config.cluster: missing"),
    "no source": (
        with_run(lambda run: run["config"]["trace"].pop("source")),
        "config.trace: source: missing",
    ),
    "an order too few": (
        with_run(lambda run: run["config"]["dispatch"].update(orders=[])),
        "config.dispatch: orders: at least 1",
    ),
    "other requests": (
        with_run(lambda run: run.update(workload_sha256="x")),
        "workload_sha256 is w",
    ),
    "not finished": (
        lambda folder: (folder / "results.parquet").unlink(),
        "go on with resume=",
    ),
    "no completion": (
        with_rows(lambda rows: rows.drop(columns="completion")),
        "column 'completion' is missing",
    ),
    "a row less": (with_rows(lambda rows: rows.iloc[:-1]), "one row with a finite completion"),
    "no time": (with_rows(lambda rows: rows.assign(completion=0.0)), "completion time above 0"),
    "no name": (
        with_rows(lambda rows: rows.assign(keep_alive=1)),
        "column 'keep_alive': string is needed, found int64",
    ),
    "no group": (
        with_run(lambda run: run["config"].update(dispatch="queued")),
        "config.dispatch.kind: None is found, allowed: immediate, queued",
    ),
    "words": (
        with_rows(lambda rows: rows.assign(completion="x")),
        "'completion': double is needed",
    ),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_evaluations_are_refused(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage, says = DAMAGED[case]
    for name in ("one", "two"):
        finished_queued(tmp_path / name, {"fcfs": FCFS})
    damage(tmp_path / "two")
    refused([tmp_path / "one", tmp_path / "two"], says, capsys)
