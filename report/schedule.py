"""The schedule of an episode as a table: `python -m report.schedule EPISODE [-o FILE]`.

CSV, or Parquet if FILE ends in `.parquet`: a row a function that finished, by workflow and
function. The others are listed under `unfinished` in the episode file. Columns are
called as in episode files (docs/episodes.md) and keep their units: s, MB, operations.
"""

import csv
import sys
from pathlib import Path
from typing import TextIO

import pandas as pd

from env.base.errors import located
from env.base.files import table_row, written_whole
from env.sim.episode.episode_file import read_episode
from env.sim.episode.replay import played
from env.sim.state.records import FINISHED
from report.episode_command import STANDARD_OUTPUT, command
from report.timeline import PHASES, containers_of

PARTS = (
    "queueing_time",
    "server_start_time",
    "container_cold_start_time",
    "data_transfer_time",
    "memory_wait_time",
    "execution_time",
)
"""Seconds in each of `PHASES`, summed over the runs of a function."""
TEXTS = ("workflow_name", "tenant", "function_name")
"""Columns that a file may leave empty."""


def read_schedule(path: str) -> pd.DataFrame:
    """The table of an episode file, which is played again.

    A function that was preempted or killed has several runs: it starts with its first one and
    completes with its last one, of which the table has the place. `response_time`, from submission
    to completion, is the sum of `PARTS` and of waits before it is submitted again.
    `execution_time` is `full_speed_time`, which the function takes alone on its node and with all
    the memory it needs, times `stretch`, by shared cores and less memory.

    Raises:
        InputError: one line with the file and what is wrong with it.
    """
    episode = read_episode(path)
    with located(path):
        env = played(episode)
    containers = containers_of(env)
    for part, phase in zip(PARTS, PHASES, strict=True):
        containers[part] = containers[phase.end] - containers[phase.begin]
    runs = containers.groupby(["wf_id", "fn_id"])
    first, last = runs.first().to_dict("index"), runs.last().to_dict("index")
    seconds, count = runs[list(PARTS)].sum().to_dict("index"), runs.size()
    rows = []
    functions = ((each, function) for each in episode.workflows for function in each.functions)
    for workflow, function in functions:
        key = workflow.workflow_id, function.function_id
        if env.state.functions[env.function_index(*key)]["state"] != FINISHED:
            continue
        begin, end, parts = first[key], last[key], seconds[key]
        server_type, server, numa_node = env.place_of(end["node"])
        node = env.state.nodes[end["node"]]
        speed = min(function.parallelism, int(node["cpu"])) * int(node["single_core_speed"])
        operations = workflow.work or function.computation
        rows.append(
            {
                "workflow_id": workflow.workflow_id,
                "workflow_name": workflow.name,
                "tenant": workflow.tenant,
                "function_id": function.function_id,
                "function_name": function.name,
                "computation": function.computation,
                "parallelism": function.parallelism,
                "memory_required_mb": function.memory_required_mb,
                "memory_allocated_mb": end["memory_alloc"],
                "server_type": server_type,
                "server_index": server,
                "numa_node_index": numa_node,
                "arrival_time": workflow.arrival_time,
                "submission_time": begin["submission_time"],
                "dispatch_time": begin["dispatch_time"],
                "start_time": begin["start_time"],
                "completion_time": end["completion_time"],
                "response_time": end["completion_time"] - begin["submission_time"],
                **parts,
                "full_speed_time": operations / speed,
                "stretch": parts["execution_time"] * speed / operations,
                "runs": count[key],
            }
        )
    table = pd.DataFrame(rows)
    return table.astype(dict.fromkeys(TEXTS, "string")) if rows else table


def write_schedule(table: pd.DataFrame, path: Path) -> None:
    """Writes it as Parquet if the file ends in .parquet, else as CSV; or to standard output."""
    if path == STANDARD_OUTPUT:
        _write_csv(table, sys.stdout)
        return
    with written_whole(path) as temporary:
        if path.suffix == ".parquet":
            table.to_parquet(temporary, index=False)
        else:
            with temporary.open("w", encoding="utf-8", newline="") as file:
                _write_csv(table, file)


def _write_csv(table: pd.DataFrame, file: TextIO) -> None:
    # What is unknown, such as a name, is an empty cell.
    cells = table.astype(object).where(table.notna(), None).itertuples(index=False, name=None)
    csv.writer(file, lineterminator="\n").writerows([table.columns, *map(table_row, cells)])


main = command(
    "schedule",
    read_schedule,
    write_schedule,
    STANDARD_OUTPUT,
    "Print when and where every function ran, as CSV; or write it to a .csv or .parquet file.",
)

if __name__ == "__main__":
    main()
