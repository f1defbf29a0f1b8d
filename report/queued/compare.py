"""Finished evaluations under queued dispatch, compared; `report.compare` is the command."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from env.base.errors import InputError
from env.base.schema import validated
from env.workloads.traces.trace_samples import TraceConfig
from evaluation.queued_evaluation import LEARNED
from evaluation.queued_metrics import queued_metrics
from evaluation.queued_rows import CASE, queued_layout
from evaluation.results import RESULTS, RUN, check_equal, read_columns, read_run, short_names
from report.queued.files import title, trace_kind
from report.queued.summary import Summary, summarise
from run.dispatch_settings import Queued

KEY = [*CASE, "seed"]
PLAYED = ("samples", "slo", "late")
"""Keys of the group `dispatch` that say what is played and counted; others say by whom."""


def compare_queued(folders: Sequence[Path]) -> Summary:
    """The summary of all cases of several evaluations.

    An order that several of them have played with the same completion times is there once. Others
    of the same name are told apart by the folder they are from. Speedups are over the first order
    of the first evaluation.

    Args:
        folders: of the evaluations, two or more.

    Raises:
        InputError: one is not a finished evaluation, or has other seeds or requests; the key is
            named.
    """
    runs = [read_run(folder, "compare") for folder in folders]
    played = [_played(run, folder) for folder, run in zip(folders, runs, strict=True)]
    check_equal(folders, played)
    settings = Queued(**runs[0]["config"]["dispatch"])
    metrics = queued_metrics(settings, of_requests=trace_kind(runs[0]) is not None)
    schema = queued_layout(metrics).schema
    tables = [
        _checked(read_columns(folder, schema), folder / RESULTS, run["seeds"])
        for folder, run in zip(folders, runs, strict=True)
    ]
    names = short_names(folders)
    policies = [run.get("policy_sha256") for run in runs]
    joined = pd.concat(_told_apart(tables, names, policies), ignore_index=True)
    # Orders of a load below one another, and no longer by the evaluation they are from.
    load = joined.groupby(["sample", "ratio", "keep_alive"], sort=False).ngroup()
    joined = joined.loc[load.sort_values(kind="stable").index]
    first = settings.orders[0]
    if first not in set(joined["order"]):
        first = f"{first} ({names[0]})"
    return summarise(joined, metrics, first, title(runs[0]))


def _played(run: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What has to be equal, by the key of run.json."""
    config = run["config"]
    arrives = ("trace",) if config.get("trace") is not None else ("workflow", "workload")
    groups = ("cluster", "dispatch", *arrives)
    for group in groups:
        if group not in config:
            raise InputError(f"{folder / RUN}: config.{group}: missing, required")
    validated(Queued, config["dispatch"], f"{folder / RUN}: config.dispatch")
    if "trace" in groups:
        validated(TraceConfig, config["trace"], f"{folder / RUN}: config.trace")
    world = {group: config[group] for group in groups}
    # What servers draw changes no number here, and older evaluations do not say it.
    world["cluster"] = {key: value for key, value in config["cluster"].items() if key != "power"}
    world["dispatch"] = {key: config["dispatch"][key] for key in PLAYED}
    keys = ("seeds", "episodes", "workload_sha256")
    return {
        "trace.source.kind": trace_kind(run),
        **{key: run[key] for key in keys[:2]},
        **world,
        keys[2]: run[keys[2]],
    }


def _checked(table: pd.DataFrame, file: Path, seeds: Sequence[int]) -> pd.DataFrame:
    """The table, if every case has a row with a completion time for every seed of the run."""
    complete = len(table) > 0 and all(
        sorted(rows["seed"]) == sorted(seeds) for _, rows in table.groupby(list(CASE), dropna=False)
    )
    if not complete or not (np.isfinite(table["completion"]) & (table["completion"] > 0)).all():
        raise InputError(
            f"{file}: damaged, one row with a finite completion time above 0 is needed for every "
            f"case and seed of {RUN}"
        )
    return table


def _told_apart(
    tables: Sequence[pd.DataFrame], names: Sequence[str], policies: Sequence[str | None]
) -> list[pd.DataFrame]:
    """The rows of every order, once if all evaluations agree, else renamed by evaluation.

    `learned` is as many orders as there are `policies`, hashes of those of each evaluation.
    """
    told: list[pd.DataFrame] = []
    for order in dict.fromkeys(order for table in tables for order in table["order"]):
        own = [table[table["order"] == order] for table in tables]
        found = {name: each for name, each in zip(names, own, strict=True) if len(each)}
        joined = pd.concat(found.values()).drop_duplicates([*KEY, "completion"])
        played = {policy for policy, each in zip(policies, own, strict=True) if len(each)}
        if joined.duplicated(KEY).any() or (order == LEARNED and len(played) > 1):
            told += [each.assign(order=f"{order} ({name})") for name, each in found.items()]
        else:
            told.append(joined)
    return told
