"""The files of an evaluation: what was run, what came of every episode; written, continued, read.

`run.json` says what was run. Rows are kept in `unfinished.jsonl` as they come, so that nothing that
was played is lost, and become `results.parquet` when all are there. `episodes/` has the recordings.
"""

import hashlib
import json
import math
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import field_validator

from agents.command import PROJECT
from agents.evaluation import Played, Row, all_metrics, recording_name
from agents.scheduler import Kind
from env.files import written_whole
from env.schema import Recorded, validated
from env.sim.episode_file import write_episode
from env.sim.errors import InputError
from env.workloads.generator import EpisodeWorkload

RUN, UNFINISHED, RESULTS, EPISODES = "run.json", "unfinished.jsonl", "results.parquet", "episodes"
FORMAT = 1
"""Of run.json."""
PACKAGES = ("numpy", "numba", "scipy", "ray", "torch")
"""Whose versions run.json names: those that could change a number."""
HOW = ("resume", "workers", "ray", "statistics", "report")
"""Settings that change no row: a resumed evaluation may have others."""
WHERE_ROWS_ARE = ("policy", "kind", "seed", "episode")
"""First columns of results.parquet; metrics follow."""


class RunFile(Recorded):
    """What is read of `run.json`; `describe` writes it."""

    seeds: list[int]
    episodes: int
    commit: str | None
    workload_sha256: str
    policy_sha256: str | None = None  # of evaluations before it was written, nothing is known
    config: dict[str, Any]


def describe(
    config: Mapping[str, Any],
    workloads: Iterable[EpisodeWorkload],
    command: str,
    policy_sha256: str | None,
) -> dict[str, Any]:
    """What `run.json` holds.

    Args:
        config: as composed, in plain containers.
        workloads: of all episodes of all seeds, in order.
        command: as it was typed.
        policy_sha256: hash of the learned policy's files, if there is one.
    """
    return {
        "format": FORMAT,
        "command": command,
        "commit": _commit(),
        "versions": {
            "python": platform.python_version(),
            **{package: version(package) for package in PACKAGES},
        },
        "seeds": [config["seed"]] if isinstance(config["seed"], int) else list(config["seed"]),
        "episodes": config["episodes"],
        "workload_sha256": fingerprint(workloads),
        "policy_sha256": policy_sha256,
        "config": dict(config),
    }


def fingerprint(workloads: Iterable[EpisodeWorkload]) -> str:
    """A hash of everything that arrives: equal only for the same workflows at the same times."""
    digest = hashlib.sha256()
    for workload in workloads:
        digest.update(repr(workload.arrival_times).encode())
        for template in workload.templates:
            for array in (
                template.computation,
                template.memory_req,
                template.parallelism,
                template.edges,
                template.data_bytes,
            ):
                digest.update(array.tobytes())
    return digest.hexdigest()


def check_resume(folder: Path, run: Mapping[str, Any]) -> None:
    """Refuses to go on with an evaluation that was not told the same.

    Raises:
        InputError: there is no evaluation in the folder, its rows are damaged, or it has another
            configuration, commit or workload; the key is named.
    """
    before = read_run(folder, "resume")
    read_rows(folder)
    differing = first_difference(_what_counts(before), _what_counts(run))
    if differing is not None:
        key, old, new = differing
        raise InputError(f"resume: {key} is {new}, '{folder}' was made with {old}: give the same")


def _what_counts(run: Mapping[str, Any]) -> dict[str, Any]:
    """What has to be the same for rows to belong together."""
    told = {key: value for key, value in run["config"].items() if key not in HOW}
    return {**told, **{key: run.get(key) for key in ("commit", "workload_sha256", "policy_sha256")}}


def first_difference(
    one: Mapping[str, Any], other: Mapping[str, Any], prefix: str = ""
) -> tuple[str, Any, Any] | None:
    """The first key, dotted, at which two trees differ, and both values; None if they are equal."""
    for key in dict.fromkeys((*one, *other)):
        mine, theirs = one.get(key), other.get(key)
        if isinstance(mine, Mapping) and isinstance(theirs, Mapping):
            inner = first_difference(mine, theirs, f"{prefix}{key}.")
            if inner is not None:
                return inner
        elif mine != theirs:
            return f"{prefix}{key}", mine, theirs
    return None


def read_run(folder: Path, argument: str) -> dict[str, Any]:
    """`run.json` of an evaluation.

    Args:
        folder: of the evaluation.
        argument: what an error calls the folder.

    Raises:
        InputError: there is none, or it is damaged.
    """
    try:
        run = json.loads((folder / RUN).read_text())
    except FileNotFoundError:
        raise InputError(f"{argument}: no {RUN} in '{folder}', so no evaluation") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{folder / RUN}: {error}") from None
    if not isinstance(run, dict) or run.get("format") != FORMAT:
        raise InputError(f"{folder / RUN}: format: {FORMAT} is needed")
    validated(RunFile, run, str(folder / RUN))
    return run


def read_results(folder: Path) -> pd.DataFrame:
    """`results.parquet` of a finished evaluation: a row a policy, seed and episode.

    Raises:
        InputError: the evaluation has not finished, or the file is damaged.
    """
    try:
        return pd.read_parquet(folder / RESULTS)
    except FileNotFoundError:
        raise InputError(
            f"'{folder}': no {RESULTS}, the evaluation has not finished: go on with resume={folder}"
        ) from None
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{folder / RESULTS}: {error}") from None


class ResultsWriter:
    """Writes an evaluation into its folder as it goes; a context manager.

    What another evaluation has left there is kept: `done` has its rows.

    Args:
        folder: of the evaluation.
        run: from `describe`.
        policies: names, in the order in which rows shall be.

    Attributes:
        done: rows, by (policy, seed, episode).
    """

    def __init__(self, folder: Path, run: Mapping[str, Any], policies: Sequence[str]) -> None:
        self._folder = folder
        self._policies = policies
        self._rows_file = folder / UNFINISHED
        self.done = {(row.policy, row.seed, row.episode): row for row in read_rows(folder)}
        (folder / EPISODES).mkdir(exist_ok=True)
        with written_whole(folder / RUN) as temporary:
            temporary.write_text(json.dumps(run, indent=2) + "\n")
        # Without the line that a kill may have cut.
        with written_whole(self._rows_file) as temporary:
            temporary.write_bytes(b"".join(map(_line, self.done.values())))

    def __enter__(self) -> Self:
        self._file = self._rows_file.open("ab")
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def add(self, played: Played) -> None:
        """Writes what was played: on disk when this returns."""
        for row, recording in played:
            if recording is not None:
                name = f"{recording_name(row.policy, row.seed, row.episode)}.json"
                write_episode(self._folder / EPISODES / name, recording)
            self._file.write(_line(row))
            self.done[(row.policy, row.seed, row.episode)] = row
        self._file.flush()

    def finish(self) -> pd.DataFrame:
        """Makes `results.parquet` of all rows and returns what is in it."""
        position = {policy: index for index, policy in enumerate(self._policies)}
        rows = sorted(
            self.done.values(), key=lambda row: (position[row.policy], row.seed, row.episode)
        )
        columns = {name: [getattr(row, name) for row in rows] for name in WHERE_ROWS_ARE}
        fields = [
            pa.field(name, pa.int64() if name in ("seed", "episode") else pa.string())
            for name in WHERE_ROWS_ARE
        ]
        for name, metric in all_metrics().items():
            columns[name] = [row.metrics[name] for row in rows]
            about = {"unit": metric.unit, "better": str(metric.better), "formula": metric.formula}
            fields.append(pa.field(name, pa.float64(), metadata=about))
        with written_whole(self._folder / RESULTS) as temporary:
            pq.write_table(pa.table(columns, schema=pa.schema(fields)), temporary)
        self._rows_file.unlink()
        return read_results(self._folder)


class _StoredRow(Recorded, allow_inf_nan=True):
    """`Row` as `unfinished.jsonl` holds it."""

    policy: str
    kind: Kind
    seed: int
    episode: int
    metrics: dict[str, float]

    @field_validator("metrics")
    @classmethod
    def _all(cls, metrics: dict[str, float]) -> dict[str, float]:
        for name in all_metrics():
            if name not in metrics:
                raise ValueError(f"'{name}' is missing, required")
        return metrics


def read_rows(folder: Path) -> list[Row]:
    """What has been played of an evaluation, finished or not.

    Raises:
        InputError: a file that holds it is damaged.
    """
    return [*_finished_rows(folder), *_unfinished_rows(folder / UNFINISHED)]


def _line(row: Row) -> bytes:
    return (json.dumps(asdict(row)) + "\n").encode()


def _unfinished_rows(file: Path) -> list[Row]:
    if not file.exists():
        return []
    # What follows the last line break was cut by a kill.
    whole = file.read_bytes().split(b"\n")[:-1]
    return [_row(line, f"{file}: line {number}") for number, line in enumerate(whole, 1)]


def _row(line: bytes, where: str) -> Row:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not JSON, {error}") from None
    return Row(**validated(_StoredRow, found, where).model_dump())


def _finished_rows(folder: Path) -> list[Row]:
    if not (folder / RESULTS).exists():
        return []
    table = read_results(folder)
    for column in WHERE_ROWS_ARE:
        if column not in table:
            raise InputError(f"{folder / RESULTS}: column '{column}' is missing, required")
    rows = table.to_dict("records")
    names = list(all_metrics())
    return [
        Row(
            **{key: row[key] for key in WHERE_ROWS_ARE},
            metrics={name: row.get(name, math.nan) for name in names},
        )
        for row in rows
    ]


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
