"""Compares finished evaluations: `python -m report.compare RUN RUN...`.

A RUN is a folder of evaluate.py. All must have played the same episodes in the same world. Prints
one table of all policies; bad input gets one line, exit code 2.
"""

import argparse
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from env.base.errors import InputError
from env.base.files import name_apart
from env.base.pipes import until_reader_leaves
from evaluation.results import RESULTS, RUN, RunConfig, metrics_of, read_results, read_run
from report.summary import RANKED_BY, Summary, summarise
from report.table import console, summary_table
from report.world import with_weights
from run.command import refuse
from run.run_folder import first_difference

WORLD = [key for key in RunConfig.model_fields if key != "statistics"]
"""Keys of the configuration in which evaluations have to be equal."""
PLAYED = ("scenarios", "seeds", "episodes", "workload_sha256")
"""Keys of run.json likewise; the hash, which says least of what differs, comes last."""
EPISODE = ["scenario", "seed", "episode"]
"""Columns that say what was played."""


def compare(folders: Sequence[Path]) -> Summary:
    """The summary of all policies of several evaluations, two or more.

    A policy that several of them have played with the same files and the same J in every episode is
    there once. Others of the same name are told apart by the folder they are from.

    Raises:
        InputError: one is not a finished evaluation, or has other scenarios, seeds, episodes or
            another world; the key is named.
    """
    runs = [read_run(folder, "compare") for folder in folders]
    paths = [folder.resolve().parts for folder in folders]
    if len(set(paths)) < len(paths):
        raise InputError("compare: the same folder is given twice")
    names = [name_apart(path, [other for other in paths if other != path]) for path in paths]
    played = [
        {key: run["config"].get(key) for key in WORLD} | {key: run[key] for key in PLAYED}
        for run in runs
    ]
    for folder, other in zip(folders[1:], played[1:], strict=True):
        if (differing := first_difference(played[0], other)) is not None:
            key, one, two = differing
            raise InputError(f"compare: {key} is {one} in '{folders[0]}', {two} in '{folder}'")
    tables = []
    for folder, run, name in zip(folders, runs, names, strict=True):
        table = _complete_table(folder, run).assign(folder=name)
        table["sha256"] = table["policy"].map(run.get("players_sha256") or {})
        tables.append(table)
    metrics = with_weights(metrics_of(runs[0]), runs[0])
    confidence = runs[0]["config"]["statistics"]["confidence"]
    return summarise(_told_apart(pd.concat(tables)), metrics, confidence)


def _complete_table(folder: Path, run: dict[str, Any]) -> pd.DataFrame:
    """The results, if all policies have a row with a J for every episode of the run."""
    table = read_results(folder, metrics_of(run))
    rows = product(table["policy"].unique(), run["scenarios"], run["seeds"], range(run["episodes"]))
    played = table[["policy", *EPISODE]].itertuples(index=False, name=None)
    if sorted(played) != sorted(rows) or not np.isfinite(table[RANKED_BY]).all():
        raise InputError(
            f"{folder / RESULTS}: damaged, one row with a finite J is needed for every policy, "
            f"scenario, seed and episode of {RUN}"
        )
    return table


def _told_apart(results: pd.DataFrame) -> pd.DataFrame:
    """The rows of every policy, once if all evaluations agree, else renamed by evaluation."""
    policies = []
    for policy, rows in results.groupby("policy", sort=False):
        tables = [table for _, table in rows.groupby("folder", sort=False)]
        J = {tuple(table.sort_values(EPISODE)[RANKED_BY]) for table in tables}
        if len(J) == rows["sha256"].nunique(dropna=False) == 1:
            policies.append(tables[0])
        else:
            policies.append(rows.assign(policy=f"{policy} (" + rows["folder"] + ")"))
    return pd.concat(policies, ignore_index=True)


@until_reader_leaves()
def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        usage=argparse.SUPPRESS, prog="python -m report.compare", description=__doc__
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of evaluate.py")
    parser.add_argument("others", nargs="+", type=Path, metavar="OTHER", help="others, to compare")
    folders = parser.parse_args(arguments)
    try:
        printed = console()
        printed.print(summary_table(compare([folders.run, *folders.others]), printed.width))
    except InputError as error:
        refuse(error)


if __name__ == "__main__":
    main()
