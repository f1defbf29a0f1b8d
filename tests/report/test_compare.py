"""Evaluations of the same episodes are compared, others refused by the key that differs."""

import math
from pathlib import Path
from typing import Any

import pytest

from report.compare import compare, main
from tests.report.evaluations import (
    Damage,
    finished,
    refused,
    run_of,
    with_rows,
    with_run,
    workload_of,
)

RULE = [4.0, 5.0, 6.0]


def test_a_policy_that_both_have_is_there_once(tmp_path: Path) -> None:
    finished(tmp_path / "one", {"learned": [1, 2, 3], "rule": RULE}, {"learned": "learned"})
    finished(tmp_path / "two", {"learned": [2, 2, 2.5], "rule": RULE}, {"learned": "learned"})
    summary = compare([tmp_path / "one", tmp_path / "two"])
    means = {each.policy: each.metrics["J"].mean.value for each in summary.policies}
    assert means == {"learned (one)": 2.0, "learned (two)": pytest.approx(6.5 / 3), "rule": 5.0}
    assert summary.measure == "rule"
    by_name = {each.policy: each.against for each in summary.policies}
    assert by_name["learned (one)"].difference.value == pytest.approx(-3)


def test_folders_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    for day, value in (("mon", 1.0), ("tue", 2.0)):
        finished(tmp_path / day / "noon", {"a": [value] * 3})
    summary = compare([tmp_path / "mon" / "noon", tmp_path / "tue" / "noon"])
    assert [each.policy for each in summary.policies] == ["a (mon_noon)", "a (tue_noon)"]


def test_a_pipe_has_80_columns_unless_it_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        finished(tmp_path / name, {"a": [1.0] * 3, "rule": RULE})
    folders = [str(tmp_path / "one"), str(tmp_path / "two")]
    for columns, least, most in (("", 0, 80), ("200", 81, 200)):
        monkeypatch.setenv("COLUMNS", columns)
        main(folders)
        assert least <= max(map(len, capsys.readouterr().out.splitlines())) <= most


SWEPT = {f"lease.step={step}": {"lease.step": step} for step in (60, 3600)}


def test_scenarios_are_compared_one_by_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(scenarios=SWEPT)
    finished(tmp_path / "one", {"a": [1.0] * 3, "rule": RULE}, run=run)
    finished(tmp_path / "two", {"a": [2.0] * 3, "rule": RULE}, run=run)
    main([str(tmp_path / "one"), str(tmp_path / "two")])
    block = ["a (one)", "a (two)", "rule"]
    lines = capsys.readouterr().out.splitlines()
    shown = [name for line in lines for name in block if line.lstrip().startswith(f"{name}  ")]
    assert shown == block * 2
    found = {
        (each.scenario, each.policy): each.metrics["J"].mean.value
        for each in compare([tmp_path / "one", tmp_path / "two"]).policies
    }
    assert found["lease.step=3600", "a (two)"] == 4.0 and len(found) == 6


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "seeds": ({"seeds": [1]}, "seeds is [0]"),
    "scenarios": ({"scenarios": {"x=1": {"x": 1}}}, "scenarios.x=1"),
    "arrivals": ({"workload": workload_of(6)}, "workload.arrivals.mean_gap is 5"),
    "lease": ({"lease": {"kind": "hourly", "step": 60.0}}, "lease.step is 3600.0"),
    "files": ({"workload_sha256": "x"}, "workload_sha256 is w"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_episodes_are_refused(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes, says = REFUSED[case]
    finished(tmp_path / "one", {"a": RULE})
    finished(tmp_path / "two", {"a": RULE}, run=run_of(**changes))
    refused([tmp_path / "one", tmp_path / "two"], says, capsys)


DAMAGED: dict[str, tuple[Damage, str]] = {
    "another format": (with_run(lambda run: run.update(format=2)), "run.json: format: "),
    "no cluster": (
        with_run(lambda run: run["config"].pop("cluster")),
        "run.json: config.cluster: missing",
    ),
    "words": (
        with_rows(lambda rows: rows.assign(J="x")),
        "Failed to parse string: 'x' as a scalar of type double",
    ),
    "another scenario": (
        with_rows(lambda rows: rows.assign(scenario="x=1")),
        "policy, scenario, seed and episode of run.json",
    ),
    "NaN": (with_rows(lambda rows: rows.assign(J=math.nan)), "one row with a finite J"),
    "a row less": (with_rows(lambda rows: rows.iloc[:-1]), "one row with a finite J"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_evaluations_are_refused(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage, says = DAMAGED[case]
    for name in ("one", "two"):
        finished(tmp_path / name, {"a": RULE, "b": RULE})
    damage(tmp_path / "two")
    refused([tmp_path / "one", tmp_path / "two"], says, capsys)


def test_the_same_folder_twice_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finished(tmp_path, {"a": RULE})
    with pytest.raises(SystemExit, match="2"):
        main([str(tmp_path), str(tmp_path)])
    assert "given twice" in capsys.readouterr().err
