"""The comparison as a table in the terminal."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from agents.evaluation import Interval

PLAIN_WIDTH = 140
"""Characters in which all columns fit; what is printed into files and pipes has this width."""


class Column(NamedTuple):
    """A metric in the table.

    Attributes:
        key: of the summary.
        heading: lines.
        form: format of the mean and, where it is shown, of half the interval.
        rank: narrow terminals leave out those with the highest.
        scale: what the metric is divided by.
        half: whether half the width of the interval is shown.
    """

    key: str
    heading: str
    form: str
    rank: int
    scale: float = 1.0
    half: bool = False


COLUMNS = (
    Column("J", "J", ".3f", 0, half=True),
    Column("J_over_best_baseline", "J - J of the\nbest baseline", "+.3f", 1, half=True),
    Column("slowdown", "slowdown", ".2f", 2),
    Column("slowdown_p95", "slowdown\np95", ".2f", 4),
    Column("cost_ratio", "cost\nratio", ".2f", 3),
    Column("makespan", "makespan\n(h)", ".2f", 5, scale=3600.0),
    Column("rent", "rent\n(USD)", ".2f", 6),
    Column("cold_starts", "cold\nstarts", ".1f", 7),
    Column("decisions_per_s", "decisions/s", ",.0f", 8),
)


def summary_table(
    summary: Sequence[dict[str, str | Interval]], title: str, width: int = PLAIN_WIDTH
) -> Table:
    """A row a policy: means, and half the width of the 95% interval where it is compared.

    Args:
        summary: rows of `summarise`.
        title: what was evaluated.
        width: characters of the terminal; columns are left out until the table fits.
    """
    ruler = Console(width=10_000)  # so wide that nothing is cut when measured
    for shown in range(len(COLUMNS), 0, -1):
        table = _table(summary, title, [column for column in COLUMNS if column.rank < shown])
        if ruler.measure(table).maximum <= width:
            break
    return table


def _table(
    summary: Sequence[dict[str, str | Interval]], title: str, columns: Sequence[Column]
) -> Table:
    hidden = "" if len(columns) == len(COLUMNS) else "; more columns in summary.csv"
    table = Table(
        title=title,
        title_justify="left",
        caption=f"mean ± half of the 95% interval over episodes{hidden}",
        caption_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    table.add_column("policy", no_wrap=True)
    for column in columns:
        table.add_column(column.heading, justify="right", no_wrap=True)
    for row in summary:
        cells = [_cell(row[column.key], column) for column in columns]
        table.add_row(label(row), *cells)
    return table


def label(row: Mapping[str, str | Interval]) -> str:
    """What tables and pictures call a policy: its name, and whether it is a reference."""
    return f"{row['policy']} (reference)" if row["kind"] == "reference" else str(row["policy"])


def _cell(found: str | Interval, column: Column) -> str:
    assert isinstance(found, Interval)
    shown = format(found.mean / column.scale, column.form)
    if not column.half:
        return shown
    half = found.half_width / column.scale
    return f"{shown} ± {format(half, column.form.removeprefix('+'))}"
