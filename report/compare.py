"""Compares finished evaluations: `python -m report.compare RUN RUN...`.

A RUN is a folder of evaluate.py. All must have played the same episodes in the same world. Prints
one table of all policies, or of all orders of the queue; bad input gets one line, exit code 2.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from env.base.errors import InputError
from env.base.schema import validated
from evaluation.results import (
    RESULTS,
    RUN,
    check_equal,
    episode_layout,
    read_columns,
    read_run,
    short_names,
)
from evaluation.statistics import StatisticsSettings
from report.queued.compare import compare_queued
from report.queued.summary import queued_table
from report.summary import RANKED_BY, RANKS, Summary, summarise
from report.table import PLAIN_WIDTH, summary_table
from run.command import refuse
from run.effect import by_case

WORLD = ("cluster", "workflow", "workload", "objective", "dispatch", "lease", "keep_alive")
"""Groups of the configuration in which evaluations have to be equal."""


def compare(folders: Sequence[Path]) -> Summary:
    """The summary of all policies of several evaluations.

    A policy that several of them have played with the same J in every episode is there once. Others
    of the same name are told apart by the folder they are from.

    Args:
        folders: of the evaluations, two or more.

    Raises:
        InputError: one is not a finished evaluation, or has other seeds, episodes or another world;
            the key is named.
    """
    runs = [read_run(folder, "compare") for folder in folders]
    for folder, run in zip(folders, runs, strict=True):
        for group in (*WORLD, "statistics"):
            if group not in run["config"]:
                raise InputError(f"{folder / RUN}: config.{group}: missing, required")
            if not isinstance(run["config"][group], dict):
                raise InputError(f"{folder / RUN}: config.{group}: a mapping is needed")
    check_equal(folders, [_must_be_equal(run) for run in runs])
    schema = episode_layout().schema
    tables = [
        _checked(read_columns(folder, schema), folder / RESULTS, run)
        for folder, run in zip(folders, runs, strict=True)
    ]
    joined = pd.concat(_told_apart(tables, short_names(folders)), ignore_index=True)
    where = f"{folders[0] / RUN}: config.statistics"
    statistics = validated(StatisticsSettings, runs[0]["config"]["statistics"], where)
    return summarise(joined, statistics)


def _must_be_equal(run: dict[str, Any]) -> dict[str, Any]:
    world = {group: run["config"][group] for group in WORLD}
    # Evaluations from before there were tenants do not name them.
    world["workload"] = {"tenants": {}, **world["workload"]}
    # Of `dispatch` the rest is about cases.
    world["dispatch"] = {key: world["dispatch"].get(key) for key in ("kind", "patience")}
    keys = ("seeds", "episodes", "workload_sha256")
    return {**{key: run[key] for key in keys[:2]}, **world, keys[2]: run[keys[2]]}


def _checked(table: pd.DataFrame, file: Path, run: dict[str, Any]) -> pd.DataFrame:
    """The table, if all policies have a row with a J for every episode of the run."""
    for kind in set(table["kind"]) - set(RANKS):
        raise InputError(f"{file}: kind: '{kind}' is unknown, allowed: {', '.join(RANKS)}")
    complete = len(table) > 0 and all(
        _every_episode(list(zip(rows["seed"], rows["episode"], strict=True)), run)
        for _, rows in table.groupby("policy")
    )
    if not complete or not np.isfinite(table[RANKED_BY]).all():
        raise InputError(
            f"{file}: damaged, one row with a finite {RANKED_BY} is needed for every policy, seed "
            f"and episode of {RUN}"
        )
    return table


def _every_episode(played: list[tuple[Any, Any]], run: dict[str, Any]) -> bool:
    """Whether each (seed, episode) of a run is there once."""
    seeds, episodes = run["seeds"], range(run["episodes"])
    return len(played) == len(set(played)) == len(seeds) * len(episodes) and all(
        seed in seeds and episode in episodes for seed, episode in played
    )


def _told_apart(tables: Sequence[pd.DataFrame], names: Sequence[str]) -> list[pd.DataFrame]:
    """The rows of every policy, once if all evaluations agree, else renamed by evaluation."""
    told: list[pd.DataFrame] = []
    for policy in dict.fromkeys(policy for table in tables for policy in table["policy"]):
        played = [table[table["policy"] == policy] for table in tables]
        found = {name: each for name, each in zip(names, played, strict=True) if len(each)}
        if len({tuple(each[RANKED_BY]) for each in found.values()}) == 1:
            told.append(next(iter(found.values())))
        else:
            told += [each.assign(policy=f"{policy} ({name})") for name, each in found.items()]
    return told


def compared(folders: Sequence[Path], width: int) -> Table:
    """What is printed of several evaluations, all with the same dispatch.

    Args:
        folders: of the evaluations, two or more.
        width: characters of the terminal.

    Raises:
        InputError: see `compare` and `compare_queued`.
    """
    runs = [read_run(folder, "compare") for folder in folders]
    kinds = [_compared_by(run, folder) for folder, run in zip(folders, runs, strict=True)]
    check_equal(folders, [{"compared": kind} for kind in kinds])
    if kinds[0] == "cases":
        return queued_table(compare_queued(folders))
    return summary_table(compare(folders), width)


def _compared_by(run: dict[str, Any], folder: Path) -> str:
    """What an evaluation compares: `cases`, of orders and keep-alive policies, or `schedulers`."""
    told = run["config"].get("dispatch")
    kind = told.get("kind") if isinstance(told, dict) else None
    if kind not in ("immediate", "queued"):
        raise InputError(
            f"{folder / RUN}: config.dispatch.kind: {kind!r} is found, allowed: immediate, queued"
        )
    return "cases" if by_case(run["config"]) else "schedulers"


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
        console = Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH, markup=False)
        console.print(compared(folders, console.width))
    except InputError as error:
        refuse(error)


if __name__ == "__main__":
    main()
