"""Evaluations of the same episodes are compared, others refused by the key that differs."""

from pathlib import Path
from typing import Any

import pytest

from report.compare import compare, main
from tests.report.evaluations import finished, run_of

RULE = [4.0, 5.0, 6.0]


def test_a_policy_that_both_have_is_there_once(tmp_path: Path) -> None:
    finished(tmp_path / "one", {"learned": [1, 2, 3], "rule": RULE}, {"learned": "learned"})
    finished(tmp_path / "two", {"learned": [2, 2, 2.5], "rule": RULE}, {"learned": "learned"})
    summary = compare([tmp_path / "one", tmp_path / "two"])
    means = {each.policy: each.metrics["J"].mean.value for each in summary.policies}
    assert means == {
        "learned (one)": 2.0,
        "learned (two)": pytest.approx(6.5 / 3),
        "rule": 5.0,
    }
    assert summary.measure == "rule"
    by_name = {each.policy: each.against for each in summary.policies}
    assert by_name["learned (one)"].difference.value == pytest.approx(-3)


def test_folders_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    for day, value in (("mon", 1.0), ("tue", 2.0)):
        finished(tmp_path / day / "noon", {"a": [value] * 3})
    summary = compare([tmp_path / "mon" / "noon", tmp_path / "tue" / "noon"])
    assert [each.policy for each in summary.policies] == ["a (mon/noon)", "a (tue/noon)"]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "seeds": ({"seeds": [1]}, "seeds is [0]"),
    "episodes": ({"episodes": 4}, "episodes is 3"),
    "arrivals": ({"workload": {"arrivals": {"mean_gap": 6}}}, "workload.arrivals.mean_gap is 5"),
    "objective": (
        {"objective": {"time_weight": 2.0, "cost_weight": 1.0}},
        "objective.time_weight is 1.0",
    ),
    "files": ({"workload_sha256": "x"}, "workload_sha256 is w"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_episodes_are_refused(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes, says = REFUSED[case]
    finished(tmp_path / "one", {"a": RULE})
    finished(tmp_path / "two", {"a": RULE}, run=run_of(**changes))
    with pytest.raises(SystemExit) as left:
        main([str(tmp_path / "one"), str(tmp_path / "two")])
    said = capsys.readouterr()
    assert (left.value.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert says in said.err and str(tmp_path / "two") in said.err


def test_one_is_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([str(tmp_path)])
    assert left.value.code == 2
    assert "two or more" in capsys.readouterr().err


def test_the_same_folder_twice_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finished(tmp_path, {"a": RULE})
    with pytest.raises(SystemExit) as left:
        main([str(tmp_path), str(tmp_path)])
    assert left.value.code == 2
    assert "given twice" in capsys.readouterr().err
