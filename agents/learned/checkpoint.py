"""Checkpoints of a run: RLlib's, with the run's own counters beside them; whole or not there."""

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from ray.rllib.algorithms.algorithm import Algorithm

from env.base.errors import InputError, located
from env.base.files import folder_written_whole, opened, parse_json, read_bytes
from env.base.schema import Strict, validated

FOLDER = "checkpoints"
STATE = "run.json"
PREFIX = "iteration_"
MOST_FILE_BYTES = 64_000_000_000
"""Of a file of a checkpoint, which may hold a replay memory."""


class _StoredState(Strict):
    """`RunState` as `run.json` holds it."""

    iteration: Annotated[int, Field(ge=0)]
    env_steps: Annotated[int, Field(ge=0)]
    seconds: Annotated[float, Field(ge=0)]
    recent: list[float]
    best: float | None


class _Stored(Strict):
    """`run.json`.

    Attributes:
        state: counters.
        config: of the run.
        environment: name and version of what it was trained in; older checkpoints do not know it.
        files: SHA-256 of every other file, by path.
    """

    state: _StoredState
    config: dict[str, Any]
    environment: str = "of an earlier version"
    files: Annotated[dict[str, str], Field(min_length=1)]


@dataclass
class RunState:
    """What a run has done so far, over all its parts.

    Attributes:
        iteration: iterations done.
        env_steps: environment steps sampled.
        seconds: spent training.
        recent: J of the last episodes.
        best: lowest mean of a full `recent`; None before there is one.
    """

    iteration: int = 0
    env_steps: int = 0
    seconds: float = 0.0
    recent: list[float] = field(default_factory=list)
    best: float | None = None

    @property
    def J(self) -> float | None:
        """Mean J of the last episodes."""
        return sum(self.recent) / len(self.recent) if self.recent else None

    def add_episodes(self, metrics: Mapping[str, list[float]], window: int) -> bool:
        """Adds finished episodes; True when the last `window` of them are the best so far."""
        found = metrics.get("J", [])
        self.recent = (self.recent + found)[-window:]
        mean = self.J
        full = len(found) > 0 and len(self.recent) == window
        if mean is None or not full or (self.best is not None and self.best <= mean):
            return False
        self.best = mean
        return True


def save_checkpoint(
    algorithm: Algorithm, run_folder: Path, state: RunState, config: dict[str, Any], keep: int
) -> Path:
    """Writes `checkpoints/iteration_<n>`, and removes what is older than the `keep` newest.

    The one with the lowest J of all stays, however old.
    """
    folder = run_folder / FOLDER
    target = folder / f"{PREFIX}{state.iteration:06}"
    with folder_written_whole(target) as fresh:
        write_checkpoint(algorithm, fresh, state, config)
    saved = _checkpoints(folder)
    best = min(saved, key=lambda path: _rank(_counters(_stored(path))))
    for old in saved[:-keep]:
        if old != best:
            shutil.rmtree(old)
    return target


def write_checkpoint(
    algorithm: Algorithm, folder: Path, state: RunState, config: dict[str, Any]
) -> None:
    """Writes a checkpoint into a folder; it is whole when `run.json` is there."""
    algorithm.save_to_path(str(folder.absolute()))
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    names = [path.relative_to(folder).as_posix() for path in paths]
    stored = {
        "state": asdict(state),
        "config": config,
        "environment": algorithm.config.env,
        "files": {name: _digest(folder, name) for name in names},
    }
    (folder / STATE).write_text(json.dumps(stored, indent=2) + "\n")


def find_checkpoint(path: str | Path) -> Path:
    """The checkpoint that a path means: itself, or the newest of a run folder.

    Raises:
        InputError: there is none.
    """
    path = Path(path).absolute()
    if (path / STATE).is_file():
        return path
    saved = _checkpoints(path / FOLDER) or _checkpoints(path)
    if not saved:
        raise InputError(f"resume: '{path}' is neither a checkpoint nor a run folder with one")
    return saved[-1]


def load_checkpoint(path: Path) -> tuple[RunState, dict[str, Any]]:
    """A checkpoint's counters and the configuration it was made with.

    Raises:
        InputError: the file that holds them is damaged, or another is not as it was written.
    """
    stored = _stored(path)
    for name, digest in stored.files.items():
        with located("resume"):
            same = _digest(path, name) == digest
        if not same:
            raise InputError(
                f"resume: '{path / name}' is damaged, its SHA-256 is not that in {STATE}"
            )
    return _counters(stored), stored.config


def environment_of(path: Path) -> str:
    """Name and version of the environment that a checkpoint was trained in.

    Raises:
        InputError: the file that holds it is damaged.
    """
    return _stored(path).environment


def _counters(stored: _Stored) -> RunState:
    return RunState(**stored.state.model_dump())


def _stored(path: Path) -> _Stored:
    where = f"resume: '{path / STATE}'"
    content = read_bytes(path / STATE, inside=path)
    return validated(_Stored, parse_json(content, where), where)


def _digest(folder: Path, name: str) -> str:
    with opened(folder / name, MOST_FILE_BYTES, inside=folder) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checkpoints(folder: Path) -> list[Path]:
    """Complete checkpoints, oldest first."""
    return sorted(path for path in folder.glob(f"{PREFIX}*") if (path / STATE).is_file())


def _rank(state: RunState) -> float:
    return float("inf") if state.J is None else state.J
