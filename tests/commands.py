"""Commands as tests run them; the fixture `in_process` of conftest.py makes them."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

from env.learn.multi_agent import ENV_NAME


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
"""Takes the name of the command, its program, its check, and whether figures are drawn."""


def refused(done: Done, says: str) -> None:
    """One line, exit code 2, no outputs folder where the command ran."""
    assert done.code == 2, done
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert says in done.err
    assert done.out == ""
    assert not Path("outputs").exists()
