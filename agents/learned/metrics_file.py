"""metrics.csv: a row an iteration of a training, read with bounds since it may be of others."""

import csv
import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from env.base.errors import InputError
from env.base.files import opened
from env.base.schema import one_line

METRICS = "metrics.csv"
MOST_LINES = 100_000
"""One an iteration; a long training has some thousand."""
MOST_BYTES = 64_000_000
"""Of the file; a line with one policy has 200 bytes, one with four 400."""


def rows_of(content: IO[bytes], needed: Sequence[str]) -> Iterator[dict[str, str]]:
    """The rows of a table of comma-separated values: cells by the names of their columns.

    Raises:
        InputError: a column is missing, a line has another number of cells than the header, or
            there are too many.
    """
    rows = csv.DictReader(io.TextIOWrapper(content, "utf-8-sig", newline=""), strict=True)
    for name in needed:
        if name not in (rows.fieldnames or ()):
            raise InputError(f"no column '{name}'")
    for row in rows:
        if rows.line_num > MOST_LINES:
            raise InputError(f"more than {MOST_LINES:,} lines, too many")
        if None in row or None in row.values():
            raise InputError(f"line {rows.line_num}: not as many cells as the header has")
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
    try:
        with opened(file, MOST_BYTES, inside=folder) as content:
            for row in rows_of(content, ("iteration",)):
                rows.append(row)
                if int(row["iteration"]) == iteration:
                    break  # a kill may have cut what comes later
    except (InputError, ValueError, csv.Error) as error:
        raise InputError(f"resume: '{file}' is damaged: {one_line(str(error))}") from None
    return rows
