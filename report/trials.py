"""The trials of a search as a table in the terminal, best first."""

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from agents.learned.tuning import Outcome
from report.table import plain_table

SHOWN = 10
"""Trials in the table; all are in trials.csv."""


def trials_table(outcomes: Sequence[Outcome], title: str) -> Table:
    """The best trials.

    Args:
        outcomes: of all trials, best first.
        title: what was searched.
    """
    left = len(outcomes) - SHOWN
    more = f"; {left} more trials in trials.csv" if left > 0 else ""
    caption = f"J: difference to the rule in held-out episodes{more}"
    table = plain_table(title=title, caption=caption)
    searched = list(outcomes[0].values)
    table.add_column("trial", no_wrap=True)
    for heading in ("J", "budget used", *searched):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True, max_width=40)
    for each in outcomes[:SHOWN]:
        cells = [_shown(each.values.get(key, "-")) for key in searched]
        error = "" if each.error is None else f"failed: {each.error}"
        table.add_row(each.name, f"{each.difference:+.1f}%", f"{each.used:.0f}%", *cells, error)
    return table


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
