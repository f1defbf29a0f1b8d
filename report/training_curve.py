"""metrics.csv of the training of a policy, for the learning curve in the report."""

import csv
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pandas as pd

from env.base.errors import InputError
from env.base.files import opened
from env.base.schema import one_line, printable

TRAINING = "metrics.csv"
SHOWN = ("env_steps", "J")
POLICY = "policy"
"""Column of the file of an evaluation, which has the curves of all its policies."""
LONGEST_LINE = 65_536
"""Bytes; a training with many policies has some thousand."""
MOST_LINES = 100_000
"""One an iteration; a long training has some thousand."""
MOST_BYTES = 64_000_000
"""Of the file; a line with one policy has 200 bytes, one with four 400."""


def read_training(file: Path) -> pd.DataFrame | None:
    """Environment steps and J of the iterations in which an episode ended, and of whom if it says.

    None where there is no such file, or one that is damaged: that is said in a line, as no
    evaluation may fail because of what lies beside its policy.
    """
    if not os.path.lexists(file):
        return None
    try:
        with opened(file, MOST_BYTES, inside=file.parent) as content:
            rows = list(_rows(content))
            return pd.DataFrame(rows) if rows else pd.DataFrame(columns=SHOWN, dtype=float)
    except (InputError, ValueError, csv.Error) as error:
        print(one_line(f"note: no learning curve, {file} is left out: {error}"), flush=True)
        return None


def _rows(content: IO[bytes]) -> Iterator[dict[str, float | str]]:
    lines = csv.reader(_lines(content))
    header = next(lines, [])
    missing = [name for name in SHOWN if name not in header]
    if missing:
        raise InputError(f"no column '{missing[0]}'")
    at = {name: header.index(name) for name in SHOWN}
    whose = {POLICY: header.index(POLICY)} if POLICY in header else {}
    for cells in lines:
        if lines.line_num > MOST_LINES:
            raise InputError(f"more than {MOST_LINES:,} lines, too many")
        if len(cells) != len(header):
            raise InputError(
                f"line {lines.line_num}: {len(cells)} cells, the header has {len(header)}"
            )
        # Of an iteration in which no episode ended the cell is empty.
        row = {name: float(cells[index] or "nan") for name, index in at.items()}
        if any(map(math.isinf, row.values())):
            raise InputError(f"line {lines.line_num}: a number that is not finite")
        if not any(map(math.isnan, row.values())):
            yield {**row, **{name: printable(cells[index]) for name, index in whose.items()}}


def _lines(content: IO[bytes]) -> Iterator[str]:
    """Its lines; a reader of CSV would keep one without end in memory."""
    while line := content.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise InputError(f"a line of more than {LONGEST_LINE:,} bytes")
        yield line.decode("utf-8-sig")
