"""`python evaluate.py` in tests: brief commands and what they leave."""

import json
import sys
from pathlib import Path
from typing import Any

from run.command import PROJECT
from tests.env.worlds import TINY

EVALUATE = [sys.executable, str(PROJECT / "evaluate.py")]
RULES = ["random", "earliest_finish", "cheapest"]
BRIEF = [*TINY, f"baselines=[{','.join(RULES)}]", "episodes=3"]
FILES = {
    *("run.json", "results.parquet", "summary.csv", "summary.json", "summary.md"),
    *("figures", "episodes", "traces", "report.html"),
}

Rows = list[dict[str, Any]]


def run_in(folder: Path) -> Path:
    """The folder of the only evaluation in a folder."""
    (file,) = folder.glob("outputs/*/*/summary.json")
    return file.parent


def rows_in(folder: Path) -> Rows:
    """What the summary of the only evaluation in a folder says of every policy."""
    rows: Rows = json.loads((run_in(folder) / "summary.json").read_text())["policies"]
    return rows


def without_speed(rows: Rows) -> Rows:
    for row in rows:
        del row["metrics"]["decisions_per_s"]
    return rows
