"""What lies beside a policy as metrics.csv never fails, and never gets into the results unread."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from report.figures import write_figures
from report.line_charts import learning_curve, read_training


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
