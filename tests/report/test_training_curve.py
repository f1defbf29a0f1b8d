"""What lies beside a policy as metrics.csv never fails, and never gets into the results unread."""

from pathlib import Path

import pytest

from report.line_charts import read_training


def test_steps_and_difference_where_policies_were_evaluated(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text("iteration,env_steps,difference\n1,8,\n2,16,5.25\n")
    found = read_training(tmp_path / "metrics.csv")
    assert found is not None and found.values.tolist() == [[16.0, 5.25, ""]]
    assert read_training(tmp_path / "absent.csv") is None


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
