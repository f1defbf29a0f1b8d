"""The table fits its terminal by leaving columns out; the picture copes with crowded points."""

import io
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from rich.console import Console

from agents.evaluation import COLUMNS, Interval
from report import table
from report.comparison import draw_comparison
from report.table import PLAIN_WIDTH, summary_table

Summary = list[dict[str, str | Interval]]
WORDS = ("J of the", "slowdown", "p95", "cost", "makespan", "rent", "cold", "decisions/s")
NAMES = ("greedy_objective_tuned", "earliest_finish_stingy", "earliest_finish", "random")


def summary_of(*values: float) -> Summary:
    """A policy for each value, which all its metrics have."""
    return [
        {
            "policy": name,
            "kind": "baseline",
            **dict.fromkeys(COLUMNS, Interval(value, value - 1.5, value + 1.5)),
        }
        for name, value in zip(NAMES, values, strict=False)
    ]


def printed(summary: Summary, width: int) -> str:
    console = Console(width=width, file=io.StringIO())
    console.print(summary_table(summary, "a title", width))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [60, 80, 100, 120, 140, 200])
def test_nothing_is_cut(width: int) -> None:
    text = printed(summary_of(1.0, 12.0, 1234.5), width)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    for row in ("greedy_objective_tuned", "earliest_finish_stingy", "1234.500 ± 1.500"):
        assert row in text
    shown = [word for word in WORDS if word in text]
    assert ("summary.csv" in text) == (len(shown) < len(WORDS))
    if width >= PLAIN_WIDTH:
        assert len(shown) == len(WORDS)


def test_a_reference_is_marked() -> None:
    summary = summary_of(1.0, 2.0)
    summary[0]["kind"] = "reference"
    text = printed(summary, 140)
    assert f"{NAMES[0]} (reference) " in text
    assert text.count("(reference)") == 1


def test_the_ranks_of_the_columns_are_an_order() -> None:
    assert sorted(column.rank for column in table.COLUMNS) == list(range(len(table.COLUMNS)))


def test_makespan_is_shown_in_hours() -> None:
    text = printed([{**summary_of(5.0)[0], "makespan": Interval(5400, 5400, 5400)}], 140)
    assert " 1.50 " in text


@pytest.mark.parametrize(
    "values", [(3.0,), (2.0, 2.0, 2.0, 2.0), (1.0, 1.01, 30.0, 900.0), (0.0, 5.0)]
)
def test_the_names_of_the_points_cover_nothing(
    values: tuple[float, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plt, "close", lambda figure: None)
    file = tmp_path / "comparison.png"
    try:
        draw_comparison(summary_of(*values), "a title", file)
        assert file.stat().st_size > 0
        points = plt.gcf().axes[1]
        extents = [text.get_window_extent() for text in points.texts if text.get_text()]
        assert len(extents) == len(values)
        for index, extent in enumerate(extents):
            assert extent.count_overlaps(extents[:index]) == 0
    finally:
        monkeypatch.undo()
        plt.close("all")
