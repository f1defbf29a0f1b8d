"""metrics.csv of the training of a policy, for the learning curve in the report."""

import math
import os
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from agents.learned.metrics_file import rows_of
from env.base.errors import InputError
from env.base.schema import one_line, printable

SHOWN = ("env_steps", "difference")
POLICY = "policy"
"""Column of the file of an evaluation, which has the curves of all its policies."""


def read_training(file: Path) -> pd.DataFrame | None:
    """Environment steps and difference to the baseline where policies were evaluated, and whose.

    None where there is no such file, or one that is damaged: that is said in a line, as no
    evaluation may fail because of what lies beside its policy.
    """
    if not os.path.lexists(file):
        return None
    try:
        rows = list(_rows(file))
        return pd.DataFrame(rows) if rows else pd.DataFrame(columns=SHOWN, dtype=float)
    except (InputError, ValueError) as error:
        print(one_line(f"note: no learning curve, {file} is left out: {error}"), flush=True)
        return None


def _rows(file: Path) -> Iterator[dict[str, float | str]]:
    for cells in rows_of(file, SHOWN):
        # Where they were not evaluated the cell is empty.
        row = {name: float(cells[name] or "nan") for name in SHOWN}
        if any(map(math.isinf, row.values())):
            raise InputError("a number that is not finite")
        if not any(map(math.isnan, row.values())):
            yield {**row, **{name: printable(cells[name]) for name in (POLICY,) if name in cells}}
