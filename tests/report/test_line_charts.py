"""Which swept key is an axis, and what is drawn of a training.

What lies beside a policy as metrics.csv never fails, and never gets into the results unread.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from report.figures import write_figures
from report.line_charts import axes, learning_curve, read_training


def named(*points: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {str(number): point for number, point in enumerate(points)}


@pytest.mark.parametrize(
    ("points", "keys"),
    [
        ([{"a": 1, "b": "x"}, {"a": 2, "b": "y"}], ["a"]),
        ([{"a": 1, "b": 0.5}, {"a": 2, "b": 0.7}], ["a", "b"]),
        ([{"a": "v", "b": "x"}, {"a": "v", "b": "y"}], ["b"]),
        ([{"a": None}, {"a": 60.0}], ["a"]),
        ([{"a": False, "b": 1}, {"a": True, "b": 1}], ["a"]),
    ],
)
def test_numbers_are_axes_and_else_words_are(points: list[dict[str, Any]], keys: list[str]) -> None:
    assert list(axes(named(*points))) == keys


def test_other_keys_are_panels() -> None:
    scenarios = named(
        {"ratio": 0.3, "keep": "lru", "slow": 1},
        {"ratio": 0.7, "keep": "lru", "slow": 1},
        {"ratio": 0.3, "keep": "none", "slow": 1},
    )
    assert axes(scenarios)["ratio"].values.tolist() == [
        ["0", 0.3, "keep=lru"],
        ["1", 0.7, "keep=lru"],
        ["2", 0.3, "keep=none"],
    ]


def test_what_is_no_number_is_written_as_in_a_configuration() -> None:
    scenarios = named({"patience": None}, {"patience": 60.0}, {"patience": "never"})
    (places,) = axes(scenarios).values()
    assert list(places["x"]) == ["null", "60.0", "never"]
    assert set(places["panel"]) == {""}


def test_steps_and_difference_where_policies_were_evaluated(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text("iteration,env_steps,difference\n1,8,\n2,16,5.25\n")
    found = read_training(tmp_path / "metrics.csv")
    assert found is not None and found.values.tolist() == [[16.0, 5.25, ""]]
    assert read_training(tmp_path / "absent.csv") is None


@pytest.mark.parametrize("policies", [[""], ["a", "b"]])
def test_curves_of_one_policy_and_of_several_are_drawn(policies: list[str], tmp_path: Path) -> None:
    points = [(steps, 9.0 - steps, name) for name in policies for steps in (1.0, 2.0)]
    rows = pd.DataFrame(points, columns=["env_steps", "difference", "policy"])
    summary: Any = SimpleNamespace(kinds=dict.fromkeys(policies, "learned"), title="", shown=[])
    write_figures({"learning": (learning_curve(rows), "")}, summary, tmp_path)
    drawn = (tmp_path / "learning.svg").read_text()
    assert ("mark-group role-legend" in drawn) == (len(policies) > 1)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"steps,difference\n1,2\n", "column 'env_steps' is missing"),
        (b"env_steps,difference\n1,much\n", "could not convert"),
        (b"env_steps,difference\n1,inf\n", "not finite"),
        (b"env_steps,difference\n" + b"1,2\n" * 100_000, "more than 100,000 lines"),
    ],
)
def test_a_damaged_file_is_left_out_in_one_line(
    content: bytes, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "metrics.csv"
    file.write_bytes(content)
    assert read_training(file) is None
    told = capsys.readouterr().out
    assert says in told and str(file) in told and told.count("\n") == 1
