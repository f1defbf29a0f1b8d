"""metrics.csv of a run that goes on: read whole, or refused in one line before anything starts."""

from pathlib import Path

import pytest

from agents.learned.metrics_file import rows_until
from tests.documents import refused_in_a_line

GOOD = "iteration,env_steps,J\n1,8,\n2,16,5.25\n3,24,5.0\n4,32,4.5\n"


def test_iterations_after_the_checkpoint_are_left_out(tmp_path: Path) -> None:
    assert rows_until(tmp_path, 3) == []  # there is none
    (tmp_path / "metrics.csv").write_text(GOOD)
    assert [row["iteration"] for row in rows_until(tmp_path, 3)] == ["1", "2", "3"]
    assert rows_until(tmp_path, 2)[-1] == {"iteration": "2", "env_steps": "16", "J": "5.25"}
    # A kill cut the last line.
    (tmp_path / "metrics.csv").write_text(GOOD + "5,4")
    assert len(rows_until(tmp_path, 4)) == 4
    # A run that began with the checkpoint of another one.
    (tmp_path / "metrics.csv").write_text("iteration,J\n7,1\n8,2\n")
    assert [row["J"] for row in rows_until(tmp_path, 8)] == ["1", "2"]


@pytest.mark.parametrize(
    "content",
    [
        "",
        GOOD.replace("2,16,5.25", "2,16"),
        GOOD.replace("iteration", "J", 1),
        GOOD.replace("2,16", "x,16"),
    ],
)
def test_a_damaged_file_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text(content)
    with refused_in_a_line("resume: ", "metrics.csv: "):
        rows_until(tmp_path, 3)
