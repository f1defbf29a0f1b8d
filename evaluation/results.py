"""The files of an evaluation: what was run, what came of every episode; written, continued, read.

`run.json` says what was run. Rows are kept in `unfinished.jsonl` as they come, so that nothing that
was played is lost, and become `results.parquet` when all are there. `episodes/` has the recordings.
"""

import json
import platform
import shutil
import subprocess
from collections.abc import Container, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, Self

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from env.base.errors import InputError
from env.base.files import parse_json, read_bytes, written_whole
from env.base.schema import Recorded, one_line, printable, short, validated
from env.score.metrics import Metric
from env.score.reward import Objective
from env.sim.episode.episode_file import EpisodeFile, write_episode
from evaluation.contest import Key, Row
from evaluation.episode_metrics import all_metrics
from evaluation.statistics import StatisticsSettings
from run.command import PROJECT
from run.run_folder import first_difference

RUN, UNFINISHED, RESULTS, EPISODES = "run.json", "unfinished.jsonl", "results.parquet", "episodes"
PACKAGES = ("numpy", "numba", "scipy", "ray", "torch")
"""Whose versions run.json names: those that could change a number."""
MOST_ROWS_BYTES = 1_000_000_000
"""Of unfinished.jsonl."""
MOST_VALUES = 50_000_000
"""Of results.parquet: rows times columns, lists by their length."""
HOW = ("name", "resume", "workers", "ray", "statistics", "report", "keep", "minimise")
"""Settings that change no row: a resumed evaluation may have others."""
COLUMNS: Mapping[str, pa.DataType] = {
    "policy": pa.string(),
    "kind": pa.string(),
    "scenario": pa.string(),
    "seed": pa.int64(),
    "episode": pa.int64(),
    "flow_time_quantiles": pa.list_(pa.float64()),
}
"""First columns of results.parquet and their types; metrics follow."""


def schema_of(metrics: Mapping[str, Metric]) -> pa.Schema:
    """Of results.parquet; metrics are the last columns."""
    fields = [pa.field(name, kind) for name, kind in COLUMNS.items()]
    for name, metric in metrics.items():
        about = {"unit": metric.unit, "better": str(metric.better), "formula": metric.formula}
        fields.append(pa.field(name, pa.float64(), metadata=about))
    return pa.schema(fields)


class RunConfig(Recorded):
    """What is read of the configuration in `run.json`."""

    cluster: dict[str, Any]
    workflow: dict[str, Any]
    workload: dict[str, Any]
    objective: Objective
    dispatch: dict[str, Any]
    lease: dict[str, Any]
    keep_alive: dict[str, Any]
    changes: dict[str, Any] | None = None  # older evaluations have none
    recovery: dict[str, Any] | None = None
    slo: list[float]
    late: float
    statistics: StatisticsSettings


class RunFile(Recorded):
    """What is read of `run.json`."""

    format: Literal[1]
    scenarios: dict[str, dict[str, Any]]
    seeds: list[int]
    episodes: int
    commit: str | None
    workload_sha256: str
    players_sha256: dict[str, str] | None = None  # older evaluations have none
    config: RunConfig


def program() -> dict[str, Any]:
    """The program that makes the numbers, as `run.json` names it."""
    versions = {package: version(package) for package in PACKAGES}
    return {"commit": _commit(), "versions": {"python": platform.python_version(), **versions}}


def check_resume(
    folder: Path, run: Mapping[str, Any], metrics: Mapping[str, Metric], keys: Container[Key]
) -> None:
    """Refuses to go on with an evaluation if run.json would be another one now.

    Raises:
        InputError: there is no evaluation in the folder, its rows are damaged, or it has another
            configuration, commit or workload; the key is named.
    """
    for path in folder.rglob("*"):
        if path.is_symlink():
            raise InputError(f"resume: '{path}' is a link, files and folders of the run are needed")
    before, now = (
        {key: value for key, value in each["config"].items() if key not in HOW}
        | {key: each.get(key) for key in ("commit", "workload_sha256", "players_sha256")}
        for each in (read_run(folder, "resume"), run)
    )
    if (differing := first_difference(before, now)) is not None:
        key, old, new = differing
        raise InputError(f"resume: {key} is {new}, '{folder}' was made with {old}: give the same")
    for row in read_rows(folder, metrics):
        if row.key not in keys:
            raise InputError(f"resume: '{folder}' has a row of {row.key}, which is no part of it")


def read_run(folder: Path, argument: str) -> dict[str, Any]:
    """`run.json` of an evaluation, whose folder was given as an argument.

    Raises:
        InputError: there is none, or it is damaged.
    """
    file = folder / RUN
    if not file.exists():
        raise InputError(f"{argument}: no {RUN} in '{folder}', so no evaluation")
    run: dict[str, Any] = parse_json(read_bytes(file, inside=folder), str(file))
    validated(RunFile, run, str(file))
    return run


def metrics_of(run: Mapping[str, Any]) -> Mapping[str, Metric]:
    """Every metric of an evaluation, by name, from its run.json."""
    return all_metrics(run["config"]["slo"], run["config"]["late"])


def read_results(folder: Path, metrics: Mapping[str, Metric] | None = None) -> pd.DataFrame:
    """`results.parquet` of a finished evaluation: `COLUMNS`, then these metrics, or what there is.

    Raises:
        InputError: the evaluation has not finished, or the file is damaged or lacks a column.
    """
    path = folder / RESULTS
    if not path.exists():
        raise InputError(
            f"'{folder}': no {RESULTS}, the evaluation has not finished: go on with resume={folder}"
        )
    content = read_bytes(path, inside=folder)
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        groups = [file.metadata.row_group(index) for index in range(file.num_row_groups)]
        values = sum(g.column(i).num_values for g in groups for i in range(g.num_columns))
        if values > MOST_VALUES:
            raise InputError(f"{path}: {values:,} values, at most {MOST_VALUES:,} are allowed")
        table = file.read()
        table.validate(full=True)  # else damaged text shows where it is used
        if metrics is not None:
            schema = schema_of(metrics)
            for name in set(schema.names).difference(table.column_names):
                raise InputError(f"{path}: column '{name}' is missing, evaluate with this version")
            table = table.select(schema.names).cast(schema)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path}: {one_line(str(error))}") from None
    results: pd.DataFrame = table.to_pandas()
    for name in {*results["policy"], *results["scenario"]}:
        if name != printable(name):
            raise InputError(f"{path}: {short(name)} is a name that cannot be printed")
    return results


class ResultsWriter:
    """Writes an evaluation into its folder as it goes; a context manager.

    What another evaluation has left there is kept: `done` has its rows. Where there was none, bad
    input within it has everything removed again that it wrote.

    Args:
        folder, run: of the evaluation, and what is in its run.json.
        keys: of all rows that it will have, in their order.
        metrics: of the rows, by name.
    """

    def __init__(
        self,
        folder: Path,
        run: Mapping[str, Any],
        keys: Iterable[Key],
        metrics: Mapping[str, Metric],
    ) -> None:
        self._folder = folder
        self._position = {key: position for position, key in enumerate(keys)}
        self._metrics = metrics
        self._rows_file = folder / UNFINISHED
        self._goes_on = (folder / RUN).exists()
        self.done = {row.key: row for row in read_rows(folder, metrics)}  # all there are, by key
        with written_whole(folder / RUN) as temporary:
            temporary.write_text(json.dumps(run, indent=2) + "\n")
        # Without the line that a kill may have cut.
        with written_whole(self._rows_file) as temporary:
            temporary.write_bytes(b"".join(map(_line, self.done.values())))

    def __enter__(self) -> Self:
        self._file = self._rows_file.open("ab")
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self._file.close()
        # A rule that is mended has another hash, so nobody could go on with this.
        if isinstance(error, InputError) and not self._goes_on:
            self._rows_file.unlink()
            (self._folder / RUN).unlink()
            shutil.rmtree(self._folder / EPISODES, ignore_errors=True)

    def add(self, played: Sequence[tuple[Row, EpisodeFile | None]]) -> None:
        """Writes rows, and recordings where there are: on disk when this returns."""
        for row, recording in played:
            if recording is not None:
                folder = self._folder / EPISODES
                folder.mkdir(exist_ok=True)
                write_episode(folder / f"{recording.name}.json", recording)
            self._file.write(_line(row))
            self.done[row.key] = row
        self._file.flush()

    def finish(self) -> pd.DataFrame:
        """Makes `results.parquet` of all rows and returns what is in it."""
        rows = sorted(self.done.values(), key=lambda row: self._position[row.key])
        flat = [row.model_dump(exclude={"metrics"}) | row.metrics for row in rows]
        with written_whole(self._folder / RESULTS) as temporary:
            pq.write_table(pa.Table.from_pylist(flat, schema=schema_of(self._metrics)), temporary)
        self._rows_file.unlink()
        return read_results(self._folder)


def read_rows(folder: Path, metrics: Mapping[str, Metric]) -> list[Row]:
    """What has been played of an evaluation, finished or not.

    Raises:
        InputError: a file that holds it is damaged.
    """
    rows = []
    if (folder / RESULTS).exists():
        results = read_results(folder, metrics)
        times = results["flow_time_quantiles"]
        results["flow_time_quantiles"] = times.map(list, na_action="ignore")
        for number, columns in enumerate(results.to_dict("records"), 1):
            columns["metrics"] = {name: columns[name] for name in metrics}
            rows.append(validated(Row, columns, f"{folder / RESULTS}: row {number}"))
    file = folder / UNFINISHED
    if file.exists():
        # What follows the last line break was cut by a kill.
        lines = read_bytes(file, MOST_ROWS_BYTES, inside=folder).split(b"\n")[:-1]
        for number, line in enumerate(lines, 1):
            where = f"{file}: line {number}"
            row = validated(Row, parse_json(line, where), where)
            for name in metrics:
                if name not in row.metrics:
                    raise InputError(f"{where}: metrics: '{name}' is missing, required")
            rows.append(row)
    return rows


def _line(row: Row) -> bytes:
    return (json.dumps(row.model_dump()) + "\n").encode()


def _commit() -> str | None:
    """The project's commit, with `+` where files have been changed; None outside a git checkout."""
    command = ["git", "-C", str(PROJECT), "describe", "--always", "--exclude=*"]
    command += ["--abbrev=12", "--dirty=+"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
