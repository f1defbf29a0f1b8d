"""Commands as tests run them; the fixture `in_process` of conftest.py makes them."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from omegaconf import DictConfig

from env.learn.multi_agent import ENV_NAME
from run.command import Job, Prepare


class Done(NamedTuple):
    """A finished command."""

    code: int
    out: str
    err: str


class NoWeights:
    """In place of an algorithm: a checkpoint of which only what the project adds is read."""

    def __init__(self, environment: str = ENV_NAME) -> None:
        self.config = SimpleNamespace(env=environment)

    def save_to_path(self, path: str) -> None:
        """RLlib's part: a file that nobody opens."""
        Path(path).mkdir(parents=True)
        (Path(path) / "metadata.json").write_text("{}")


Command = Callable[..., Done]
"""Takes overrides."""
InProcess = Callable[..., Command]
"""Takes the name of the command, what prepares its program, and whether figures are drawn."""
Main = Callable[[DictConfig, Path], object]


def doing(main: Main, check: Callable[[DictConfig], object] = lambda config: None) -> Prepare:
    """Prepares a program that calls `main`, once `check` has let pass its configuration."""

    def prepare(job: Job) -> Callable[[Path], object]:
        check(job.composed)
        return lambda folder: main(job.composed, folder)

    return prepare


def never(config: DictConfig, folder: Path) -> None:
    """The program of a command that is to be refused."""
    pytest.fail("it ran")


def refused(done: Done, says: str) -> None:
    """One line, exit code 2, no outputs folder where the command ran."""
    assert done.code == 2, done
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert says in done.err
    assert done.out == ""
    assert not Path("outputs").exists()
