"""metrics.csv: a row an iteration of a training, read with bounds since it may be of others."""

import csv
import io
import os
from collections.abc import Collection, Iterator
from pathlib import Path

from env.base.errors import InputError, located
from env.base.files import opened
from env.base.schema import short

METRICS = "metrics.csv"
MOST_LINES = 100_000
"""One an iteration; a long training has some thousand."""
MOST_BYTES = 64_000_000
"""Of the file; a line with one policy has 200 bytes, one with four 400."""


def rows_of(file: Path, needed: Collection[str]) -> Iterator[dict[str, str]]:
    """The rows of such a file by the names of the columns, read one by one.

    Raises:
        InputError: it cannot be read, is no table with the columns `needed`, or has too many lines.
    """
    with opened(file, MOST_BYTES, inside=file.parent) as content:
        reader = csv.DictReader(io.TextIOWrapper(content, "utf-8-sig", newline=""))
        try:
            for name in needed:
                if name not in (reader.fieldnames or ()):
                    raise InputError(f"{file}: column '{name}' is missing")
            for row in reader:
                if None in row or None in row.values():
                    raise InputError(f"{file}: row {reader.line_num} is not as long as the header")
                if reader.line_num > MOST_LINES:
                    raise InputError(f"{file}: more than {MOST_LINES:,} lines, too many")
                yield row
        except csv.Error as error:
            raise InputError(f"{file}: row {reader.line_num}: {error}") from None


def rows_until(folder: Path, iteration: int) -> list[dict[str, str]]:
    """What a run has written up to an iteration; nothing where its folder has no metrics.csv.

    Later iterations will be done again.

    Raises:
        InputError: the file is no regular one of the folder, or no table of iterations.
    """
    file = folder / METRICS
    if not os.path.lexists(file):
        return []
    rows: list[dict[str, str]] = []
    with located("resume"):
        for row in rows_of(file, ("iteration",)):
            rows.append(row)
            if not row["iteration"].isdecimal():
                raise InputError(f"{file}: iteration is {short(row['iteration'])}, not a number")
            if int(row["iteration"]) == iteration:
                break  # a kill may have cut what comes later
    return rows
