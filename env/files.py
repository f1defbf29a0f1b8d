"""How files are written, so that none is ever there by half."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from env.sim.errors import InputError


def user_path(text: str) -> Path:
    """The path that a user means: `~` and `~name` are home folders.

    Raises:
        InputError: nobody has that name.
    """
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise InputError(f"'{text}': {error}") from None


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A temporary file that takes the name `path` in the end: it appears whole or not at all.

    Raises:
        InputError: `path` names no file, or its folder cannot be written to.
    """
    if not path.name:
        raise InputError(f"'{path}': no name of a file, which is needed")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        try:
            yield temporary
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)  # fails, too, where a path goes through a file
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None
