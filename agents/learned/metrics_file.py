"""metrics.csv: a row an iteration of a training, read with bounds since it may be of others."""

import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from env.base.errors import InputError, located
from env.workloads.table import Row, Table

METRICS = "metrics.csv"
MOST_LINES = 100_000
"""One an iteration; a long training has some thousand."""
MOST_BYTES = 64_000_000
"""Of the file; a line with one policy has 200 bytes, one with four 400."""


def rows_of(file: Path, needed: Sequence[str]) -> Iterator[Row]:
    """The rows of such a file.

    Raises:
        InputError: it cannot be read, is no table with these columns, or has too many lines.
    """
    table = Table(file, MOST_BYTES, inside=file.parent)
    table.require(needed)
    for row in table.rows():
        if row.number > MOST_LINES:
            raise InputError(f"{file}: more than {MOST_LINES:,} lines, too many")
        yield row


def rows_until(folder: Path, iteration: int) -> list[dict[str, str]]:
    """What a run has written up to an iteration; nothing where it has no metrics.csv.

    Args:
        folder: of the run.
        iteration: the last one that counts: later ones will be done again.

    Raises:
        InputError: the file is no regular one of the folder, or no table of iterations.
    """
    file = folder / METRICS
    if not os.path.lexists(file):
        return []
    rows: list[dict[str, str]] = []
    with located("resume"):
        for row in rows_of(file, ("iteration",)):
            rows.append(row.named)
            if row.amount("iteration", math.inf) == iteration:
                break  # a kill may have cut what comes later
    return rows
