"""Files that may be gzipped: opening one, and what a broken one gets."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from env.sim.errors import InputError


@contextmanager
def open_packed(path: Path) -> Iterator[IO[bytes]]:
    """Opens a file, unpacking it where its name ends in `.gz`.

    Raises:
        InputError: the file cannot be opened, or what is read in the block is broken.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            yield cast(IO[bytes], file)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{path}: broken or truncated gzip file: {error}") from None
    except UnicodeDecodeError as error:
        found = error.object[error.start]
        raise InputError(f"{path}: byte 0x{found:02x} is not UTF-8, which is needed") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
