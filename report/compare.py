"""Compares finished evaluations: `python -m report.compare RUN RUN...`.

A RUN is a folder of evaluate.py. All must have played the same episodes in the same world. Prints
one table of all policies; bad input gets one line, exit code 2.
"""

import argparse
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from env.base.errors import InputError
from env.base.pipes import until_reader_leaves
from evaluation.results import RESULTS, RUN, metrics_of, read_results, read_run
from report.summary import RANKED_BY, Summary, summarise
from report.table import console, summary_table
from report.world import with_weights
from run.command import refuse
from run.run_folder import first_difference

WORLD = (
    *("cluster", "workflow", "workload", "objective", "dispatch", "lease", "keep_alive"),
    *("slo", "late"),  # they say what metrics are
)
"""Keys of the configuration in which evaluations have to be equal."""
PLAYED = ("scenarios", "seeds", "episodes", "workload_sha256")
"""Keys of run.json likewise; the hash, which says least of what differs, comes last."""
EPISODE = ["scenario", "seed", "episode"]
"""Columns that say what was played."""


def compare(folders: Sequence[Path]) -> Summary:
    """The summary of all policies of several evaluations.

    A policy that several of them have played with the same files and the same J in every episode is
    there once. Others of the same name are told apart by the folder they are from.

    Args:
        folders: of the evaluations, two or more.

    Raises:
        InputError: one is not a finished evaluation, or has other scenarios, seeds, episodes or
            another world; the key is named.
    """
    runs = [read_run(folder, "compare") for folder in folders]
    played = [
        {key: run["config"][key] for key in WORLD} | {key: run[key] for key in PLAYED}
        for run in runs
    ]
    for folder, other in zip(folders[1:], played[1:], strict=True):
        if (differing := first_difference(played[0], other)) is not None:
            key, one, two = differing
            raise InputError(f"compare: {key} is {one} in '{folders[0]}', {two} in '{folder}'")
    metrics = metrics_of(runs[0])
    tables = [_complete_table(folder, run) for folder, run in zip(folders, runs, strict=True)]
    hashes = [run.get("players_sha256") or {} for run in runs]
    joined = pd.concat(_told_apart(tables, hashes, _short_names(folders)), ignore_index=True)
    weighted = with_weights(metrics, runs[0], str(folders[0] / RUN))
    return summarise(joined, weighted, runs[0]["config"]["statistics"]["confidence"])


def _complete_table(folder: Path, run: dict[str, Any]) -> pd.DataFrame:
    """The results, if all policies have a row with a J for every episode of the run."""
    table = read_results(folder, metrics_of(run))
    episodes = set(product(run["scenarios"], run["seeds"], range(run["episodes"])))
    for _, rows in table.groupby("policy"):
        found = list(rows[EPISODE].itertuples(index=False, name=None))
        if (
            len(found) != len(episodes)
            or set(found) != episodes
            or not np.isfinite(rows["J"]).all()
        ):
            raise InputError(
                f"{folder / RESULTS}: damaged, one row with a finite J is needed for every policy, "
                f"scenario, seed and episode of {RUN}"
            )
    return table


def _short_names(folders: Sequence[Path]) -> list[str]:
    """The last parts of the paths, as many as it takes to tell them apart."""
    paths = [folder.resolve().parts for folder in folders]
    for count in range(1, max(map(len, paths)) + 1):
        names = ["/".join(path[-count:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    raise InputError("compare: the same folder is given twice")


def _told_apart(
    tables: Sequence[pd.DataFrame], hashes: Sequence[Mapping[str, str]], names: Sequence[str]
) -> list[pd.DataFrame]:
    """The rows of every policy, once if all evaluations agree, else renamed by evaluation."""
    told: list[pd.DataFrame] = []
    for policy in dict.fromkeys(policy for table in tables for policy in table["policy"]):
        played = [table[table["policy"] == policy] for table in tables]
        found = {name: each for name, each in zip(names, played, strict=True) if len(each)}
        files = {own.get(policy) for own, each in zip(hashes, played, strict=True) if len(each)}
        played_alike = {tuple(each.sort_values(EPISODE)[RANKED_BY]) for each in found.values()}
        if len(files) == len(played_alike) == 1:
            told.append(next(iter(found.values())))
        else:
            told += [each.assign(policy=f"{policy} ({name})") for name, each in found.items()]
    return told


@until_reader_leaves()
def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        usage=argparse.SUPPRESS, prog="python -m report.compare", description=__doc__
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="folder of evaluate.py")
    folders = parser.parse_args(arguments).runs
    try:
        if len(folders) < 2:
            raise InputError("compare: one evaluation is given, two or more are needed")
        printed = console()
        printed.print(summary_table(compare(folders), printed.width))
    except InputError as error:
        refuse(error)


if __name__ == "__main__":
    main()
