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
from env.base.schema import validated
from evaluation.episode_metrics import metrics_of
from evaluation.results import (
    RESULTS,
    RUN,
    check_equal,
    read_columns,
    read_run,
    schema_of,
    short_names,
)
from evaluation.statistics import StatisticsSettings
from report.summary import RANKED_BY, RANKS, Summary, summarise
from report.table import console, summary_table
from report.world import with_weights
from run.command import refuse

WORLD = ("cluster", "workflow", "workload", "objective", "dispatch", "lease", "keep_alive")
"""Groups of the configuration in which evaluations have to be equal."""
COUNTED = ("slo", "late")
"""Keys of the configuration likewise, for they say what metrics are."""
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
    for folder, run in zip(folders, runs, strict=True):
        for key in (*WORLD, *COUNTED, "statistics"):
            if key not in run["config"]:
                raise InputError(f"{folder / RUN}: config.{key}: missing, required")
            if key not in COUNTED and not isinstance(run["config"][key], dict):
                raise InputError(f"{folder / RUN}: config.{key}: a mapping is needed")
        metrics_of(run, str(folder / RUN))
    equal = (*WORLD, *COUNTED)
    played = [
        {key: run["config"][key] for key in equal} | {key: run[key] for key in PLAYED}
        for run in runs
    ]
    check_equal(folders, played)
    metrics = metrics_of(runs[0], str(folders[0] / RUN))
    tables = [
        _checked(read_columns(folder, schema_of(metrics)), folder / RESULTS, run)
        for folder, run in zip(folders, runs, strict=True)
    ]
    hashes = [run.get("players_sha256") or {} for run in runs]
    joined = pd.concat(_told_apart(tables, hashes, short_names(folders)), ignore_index=True)
    where = f"{folders[0] / RUN}: config.statistics"
    statistics = validated(StatisticsSettings, runs[0]["config"]["statistics"], where)
    weighted = with_weights(metrics, runs[0], str(folders[0] / RUN))
    return summarise(joined, weighted, statistics)


def _checked(table: pd.DataFrame, file: Path, run: dict[str, Any]) -> pd.DataFrame:
    """The table, if all policies have a row with a J for every episode of the run."""
    for kind in set(table["kind"]) - set(RANKS):
        raise InputError(f"{file}: kind: '{kind}' is unknown, allowed: {', '.join(RANKS)}")
    scenarios, seeds, episodes = run["scenarios"], run["seeds"], run["episodes"]
    count = len(scenarios) * len(seeds) * episodes
    complete = len(table) > 0 and all(
        len(rows) == count
        and set(rows[EPISODE].itertuples(index=False, name=None))
        == set(product(scenarios, seeds, range(episodes)))
        for _, rows in table.groupby("policy")
    )
    if not complete or not np.isfinite(table[RANKED_BY]).all():
        raise InputError(
            f"{file}: damaged, one row with a finite {RANKED_BY} is needed for every policy, "
            f"scenario, seed and episode of {RUN}"
        )
    return table


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
