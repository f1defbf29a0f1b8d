"""`python evaluate.py` in tests: brief commands and what they leave."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from evaluation.contest import Contest, Played, Task
from evaluation.results import read_results
from run.command import PROJECT
from tests.env.worlds import CROWDED, TINY

EVALUATE = [sys.executable, str(PROJECT / "evaluate.py")]
RULES = ["random", "earliest_finish", "cheapest"]
BRIEF = [*TINY, f"baselines=[{','.join(RULES)}]", "episodes=3"]
FILES = {
    *("run.json", "results.parquet", "summary.csv", "summary.json", "summary.md"),
    *("figures", "episodes", "traces", "report.html"),
}
# 100 minutes of some 30 functions in one, on two servers: more than they can hold.
TRACE = [
    *("cluster=funcsched", "workload=azure_like_week", "workload/annotation=reserved"),
    *CROWDED,
]
FREE = ["dispatch=queued", "lease=always", "keep_alive=lru"]

Rows = list[dict[str, Any]]


def ended(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """A command that has run in a folder, as a process of its own."""
    return subprocess.run(
        words, cwd=folder, text=True, capture_output=True, timeout=600, check=False
    )


def run_in(folder: Path) -> Path:
    """The folder of the only evaluation in a folder."""
    (file,) = folder.glob("outputs/*/*/results.parquet")
    return file.parent


def told_in(folder: Path) -> dict[str, Any]:
    """run.json of the only evaluation in a folder."""
    found: dict[str, Any] = json.loads((run_in(folder) / "run.json").read_text())
    return found


def results_of(run: Path) -> pd.DataFrame:
    """The rows of an evaluation, without what a clock measured."""
    return read_results(run).drop(columns="decisions_per_s")


def results_in(folder: Path) -> pd.DataFrame:
    """The same of the only evaluation in a folder."""
    return results_of(run_in(folder))


def rows_in(folder: Path) -> Rows:
    """What the summary of the only evaluation in a folder says of every policy."""
    rows: Rows = json.loads((run_in(folder) / "summary.json").read_text())["policies"]
    return rows


def interrupted(play: Callable[[Contest, Task], Played]) -> Callable[[Contest, Task], Played]:
    """`Contest.play`, which Ctrl-C stops at the second episode."""

    def stopped(contest: Contest, task: Task) -> Played:
        if task.episode == 1:
            raise KeyboardInterrupt
        return play(contest, task)

    return stopped
