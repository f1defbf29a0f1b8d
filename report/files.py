"""Files of an evaluation's folder: which there are, and how one is written."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from env.sim.errors import InputError


def episode_files(folder: Path) -> list[Path]:
    """The recorded episodes of an evaluation, by name."""
    return sorted(path for path in (folder / "episodes").glob("*.json*") if path.is_file())


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A temporary file that takes the name `path` in the end: it appears whole or not at all.

    Raises:
        InputError: the folder of `path` cannot be written to.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        temporary.unlink(missing_ok=True)
