"""The files of an evaluation: what was run, what came of every episode; written, continued, read.

`run.json` says what was run. Rows are kept in `unfinished.jsonl` as they come, so that nothing that
was played is lost, and become `results.parquet` when all are there. `episodes/` has the recordings.
"""

import json
import platform
import subprocess
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Self

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field

from agents.scheduler import Kind
from env.base.errors import InputError
from env.base.files import parse_json, read_bytes, written_whole
from env.base.schema import Recorded, one_line, printable, short, validated
from env.score.metrics import Metric
from env.sim.episode.episode_file import EpisodeFile, write_episode
from evaluation.contest import Key, Row
from evaluation.episode_metrics import SHARES
from run.command import PROJECT
from run.run_folder import first_difference

RUN, UNFINISHED, RESULTS, EPISODES = "run.json", "unfinished.jsonl", "results.parquet", "episodes"
FORMAT = 1
"""Of run.json."""
PACKAGES = ("numpy", "numba", "scipy", "ray", "torch")
"""Whose versions run.json names: those that could change a number."""
MOST_ROWS_BYTES = 1_000_000_000
"""Of unfinished.jsonl."""
MOST_VALUES = 50_000_000
"""Of results.parquet: rows times columns, lists by their length."""
LONGEST_NAME = 1_000
"""Characters of what results call a policy, an order or a sample."""
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


class StoredRow(Recorded, allow_inf_nan=True):
    """`Row` as `unfinished.jsonl` holds it."""

    policy: str
    kind: Kind
    scenario: str
    seed: int
    episode: int
    flow_time_quantiles: Annotated[
        list[float], Field(min_length=len(SHARES), max_length=len(SHARES))
    ]
    metrics: dict[str, float]


def schema_of(metrics: Mapping[str, Metric[Any]]) -> pa.Schema:
    """Of results.parquet; metrics are the last columns."""
    fields = [pa.field(name, kind) for name, kind in COLUMNS.items()]
    for name, metric in metrics.items():
        about = {"unit": metric.unit, "better": str(metric.better), "formula": metric.formula}
        fields.append(pa.field(name, pa.float64(), metadata=about))
    return pa.schema(fields)


class RunFile(Recorded):
    """What is read of `run.json`; `describe` writes it."""

    scenarios: dict[str, dict[str, Any]]
    seeds: list[int]
    episodes: int
    commit: str | None
    workload_sha256: str
    players_sha256: dict[str, str] | None = (
        None  # of evaluations before it was written, nothing is known
    )
    config: dict[str, Any]


def describe(
    config: Mapping[str, Any],
    seeds: Sequence[int],
    episodes: int,
    workload_sha256: str,
    command: str,
    players_sha256: Mapping[str, str],
) -> dict[str, Any]:
    """What `run.json` holds.

    Args:
        config: as composed, in plain containers.
        seeds: of the evaluation.
        episodes: of every seed.
        workload_sha256: hash of what arrives.
        command: as it was typed.
        players_sha256: hashes of files of learned policies and of the user's own rules, by name.
    """
    return {
        "format": FORMAT,
        "command": command,
        "commit": _commit(),
        "versions": {
            "python": platform.python_version(),
            **{package: version(package) for package in PACKAGES},
        },
        "seeds": list(seeds),
        "episodes": episodes,
        "workload_sha256": workload_sha256,
        "players_sha256": dict(players_sha256),
        "config": dict(config),
    }


def check_resume(
    folder: Path, run: Mapping[str, Any], metrics: Mapping[str, Metric[Any]], known: Container[Key]
) -> None:
    """Refuses to go on with an evaluation that was not told the same.

    Args:
        folder: of the evaluation.
        run: from `describe`.
        metrics: of the rows, by name.
        known: keys of all rows that it can have.

    Raises:
        InputError: there is no evaluation in the folder, its rows are damaged, or it has another
            configuration, commit or workload; the key is named.
    """
    for path in folder.rglob("*"):
        if path.is_symlink():
            raise InputError(f"resume: '{path}' is a link, files and folders of the run are needed")
    before = read_run(folder, "resume")
    differing = first_difference(_what_counts(before), _what_counts(run))
    if differing is not None:
        key, old, new = differing
        raise InputError(f"resume: {key} is {new}, '{folder}' was made with {old}: give the same")
    for row in read_rows(folder, metrics):
        if row.key not in known:
            raise InputError(f"resume: '{folder}' has a row of {row.key}, which is no part of it")


def _what_counts(run: Mapping[str, Any]) -> dict[str, Any]:
    """What has to be the same for rows to belong together."""
    told = {key: value for key, value in run["config"].items() if key not in HOW}
    return {
        **told,
        **{key: run.get(key) for key in ("commit", "workload_sha256", "players_sha256")},
    }


def check_equal(folders: Sequence[Path], played: Sequence[Mapping[str, Any]]) -> None:
    """Refuses to compare evaluations of different things.

    Args:
        folders: of the evaluations.
        played: what has to be equal, of each of them.

    Raises:
        InputError: something is not; the first such key is named, with what it is in both.
    """
    for folder, own in zip(folders[1:], played[1:], strict=True):
        differing = first_difference(played[0], own)
        if differing is not None:
            key, one, other = differing
            raise InputError(f"compare: {key} is {one} in '{folders[0]}', {other} in '{folder}'")


def short_names(folders: Sequence[Path]) -> list[str]:
    """The last parts of the paths, as many as it takes to tell them apart."""
    paths = [folder.resolve().parts for folder in folders]
    for count in range(1, max(map(len, paths)) + 1):
        names = ["/".join(path[-count:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    raise InputError("compare: the same folder is given twice")


def read_run(folder: Path, argument: str) -> dict[str, Any]:
    """`run.json` of an evaluation.

    Args:
        folder: of the evaluation.
        argument: what an error calls the folder.

    Raises:
        InputError: there is none, or it is damaged.
    """
    file = folder / RUN
    if not file.exists():
        raise InputError(f"{argument}: no {RUN} in '{folder}', so no evaluation")
    run = parse_json(read_bytes(file, inside=folder), str(file))
    if not isinstance(run, dict) or run.get("format") != FORMAT:
        raise InputError(f"{folder / RUN}: format: {FORMAT} is needed")
    validated(RunFile, run, str(folder / RUN))
    return run


def read_results(folder: Path) -> pd.DataFrame:
    """`results.parquet` of a finished evaluation: `COLUMNS`, then metrics.

    Raises:
        InputError: the evaluation has not finished, or the file is damaged.
    """
    found: pd.DataFrame = _read_table(folder).to_pandas()
    return found


def read_columns(folder: Path, schema: pa.Schema) -> pd.DataFrame:
    """The same, refused if its columns are not those of `schema`.

    Raises:
        InputError: see `read_results`; or a column is missing or holds something else.
    """
    found: pd.DataFrame = _read_checked(folder, schema).to_pandas()
    return found


def _read_checked(folder: Path, schema: pa.Schema) -> Any:
    table = _read_table(folder)
    for field in schema:
        where = f"{folder / RESULTS}: column '{field.name}'"
        if field.name not in table.column_names:
            raise InputError(f"{where} is missing, evaluate with this version")
        column = table.column(field.name)
        # A number that is missing is NaN; which of them may be is for the reader to say.
        gaps = column.null_count > 0 and not pa.types.is_floating(field.type)
        if gaps or not _alike(column.type, field.type):
            found = f"{column.type} with gaps" if gaps else column.type
            raise InputError(f"{where}: {field.type} is needed, found {found}")
    return table


def _alike(found: pa.DataType, needed: pa.DataType) -> bool:
    """Whether a column is read as one of the type that is needed; others may write fewer bits."""
    if pa.types.is_string(needed):
        return bool(pa.types.is_string(found) or pa.types.is_large_string(found))
    if pa.types.is_list(needed):
        return bool(pa.types.is_list(found) and _alike(found.value_type, needed.value_type))
    whole = bool(pa.types.is_integer(found))
    return whole or bool(pa.types.is_floating(needed) and pa.types.is_floating(found))


def _read_table(folder: Path) -> Any:
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
        # Read as numbers of a dictionary, a name that is repeated takes no memory again.
        texts = [field.name for field in file.schema_arrow if pa.types.is_string(field.type)]
        table = pq.read_table(pa.BufferReader(content), read_dictionary=texts)
        table.validate(full=True)  # else damaged text shows where it is used
        return _with_names(table, texts, path)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path}: {one_line(str(error))}") from None


def _with_names(table: pa.Table, columns: Sequence[str], path: Path) -> pa.Table:
    """The table with columns of names as text, if these are such as people read."""
    for column in columns:
        coded = table.column(column).combine_chunks()
        for name in coded.unique().dictionary.to_pylist():
            if len(name) > LONGEST_NAME or name != printable(name):
                raise InputError(
                    f"{path}: column '{column}': {short(name)}, a name of at most {LONGEST_NAME} "
                    "printable characters is needed"
                )
        at = table.column_names.index(column)
        table = table.set_column(at, column, coded.cast(pa.string()))
    return table


class ResultsWriter:
    """Writes an evaluation into its folder as it goes; a context manager.

    What another evaluation has left there is kept: `done` has its rows. Where there was none, bad
    input within it has everything removed again that it wrote.

    Args:
        folder: of the evaluation.
        run: from `describe`.
        known: keys of all rows that it will have, in their order.
        metrics: of the rows, by name.

    Attributes:
        done: rows, by their keys.
    """

    def __init__(
        self,
        folder: Path,
        run: Mapping[str, Any],
        known: Iterable[Key],
        metrics: Mapping[str, Metric[Any]],
    ) -> None:
        self._folder = folder
        self._position = {key: position for position, key in enumerate(known)}
        self._metrics = metrics
        self._rows_file = folder / UNFINISHED
        self._recordings: list[Path] = []
        self._goes_on = (folder / RUN).exists()
        self.done = {row.key: row for row in read_rows(folder, metrics)}
        with written_whole(folder / RUN) as temporary:
            temporary.write_text(json.dumps(run, indent=2) + "\n")
        # Without the line that a kill may have cut.
        with written_whole(self._rows_file) as temporary:
            temporary.write_bytes(b"".join(map(_line, self.done.values())))

    def __enter__(self) -> Self:
        self._file = self._rows_file.open("ab")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
        # A rule that is mended has another hash, so nobody could go on with this.
        if isinstance(error, InputError) and not self._goes_on:
            for path in (*self._recordings, self._rows_file, self._folder / RUN):
                path.unlink()
            with suppress(OSError):  # of others
                (self._folder / EPISODES).rmdir()

    def add(self, played: Sequence[tuple[Row, EpisodeFile | None]]) -> None:
        """Writes rows, and recordings where there are: on disk when this returns."""
        for row, recording in played:
            if recording is not None:
                folder = self._folder / EPISODES
                folder.mkdir(exist_ok=True)
                self._recordings.append(folder / f"{recording.name}.json")
                write_episode(self._recordings[-1], recording)
            self._file.write(_line(row))
            self.done[row.key] = row
        self._file.flush()

    def finish(self) -> pd.DataFrame:
        """Makes `results.parquet` of all rows and returns what is in it."""
        rows = sorted(self.done.values(), key=lambda row: self._position[row.key])
        columns = {name: [getattr(row, name) for row in rows] for name in COLUMNS}
        columns |= {name: [row.metrics[name] for row in rows] for name in self._metrics}
        with written_whole(self._folder / RESULTS) as temporary:
            pq.write_table(pa.table(columns, schema=schema_of(self._metrics)), temporary)
        self._rows_file.unlink()
        return read_results(self._folder)


def read_rows(folder: Path, metrics: Mapping[str, Metric[Any]]) -> list[Row]:
    """What has been played of an evaluation, finished or not.

    Raises:
        InputError: a file that holds it is damaged.
    """
    return [*_finished_rows(folder, metrics), *_unfinished_rows(folder / UNFINISHED, metrics)]


def _line(row: Row) -> bytes:
    return (json.dumps(asdict(row)) + "\n").encode()


def _unfinished_rows(file: Path, metrics: Mapping[str, Metric[Any]]) -> list[Row]:
    if not file.exists():
        return []
    # What follows the last line break was cut by a kill.
    whole = read_bytes(file, MOST_ROWS_BYTES, inside=file.parent).split(b"\n")[:-1]
    return [_row(line, metrics, f"{file}: line {number}") for number, line in enumerate(whole, 1)]


def _row(line: bytes, metrics: Mapping[str, Metric[Any]], where: str) -> Row:
    stored = validated(StoredRow, parse_json(line, where), where)
    for name in metrics:
        if name not in stored.metrics:
            raise InputError(f"{where}: metrics: '{name}' is missing, required")
    return Row(**stored.model_dump())


def _finished_rows(folder: Path, metrics: Mapping[str, Metric[Any]]) -> list[Row]:
    if not (folder / RESULTS).exists():
        return []
    table = _read_checked(folder, schema_of(metrics))
    rows = []
    for number, found in enumerate(table.to_pylist(), 1):
        told = {name: found[name] for name in COLUMNS}
        told["metrics"] = {name: found[name] for name in metrics}
        stored = validated(StoredRow, told, f"{folder / RESULTS}: row {number}")
        rows.append(Row(**stored.model_dump()))
    return rows


def _commit() -> str | None:
    """The project's commit, with `+` where files have been changed; None outside a git checkout."""
    try:
        commit = _git("rev-parse", "--short=12", "HEAD")
        changed = _git("status", "--porcelain", "-uno")
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{commit}+" if changed else commit


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(PROJECT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
