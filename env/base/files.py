"""Reading files of others within bounds, and writing files that appear whole or not at all."""

import gzip
import io
import json
import os
import shutil
import stat
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

import yaml

from env.base.errors import InputError
from env.base.schema import as_line, one_line, printable, short

MOST_BYTES = 256_000_000
"""Of a file of others, unpacked, unless its reader says otherwise."""
MOST_VALUES = 5_000_000
"""Values of JSON, elements and attributes of XML. Parsed they take about 1 GB, at most 4 GB.
Workflows of WfInstances and Pegasus have 36 to 83 a task (one has 542), 36,000 in all at most."""
MOST_YAML_BYTES = 1_000_000
"""Of a YAML file."""
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""Beginnings of texts that spreadsheets compute."""


def name_apart(
    parts: tuple[str, ...], others: Collection[tuple[str, ...]], least: int = 1, mark: str = "_"
) -> str:
    """The last parts of a path or key, joined: `least`, or as many as tell it from others."""
    count = next(
        count
        for count in range(least, len(parts) + least)
        if all(other[-count:] != parts[-count:] for other in others)
    )
    return mark.join(parts[-count:])


@contextmanager
def opened(
    path: Path, most: int = MOST_BYTES, inside: Path | None = None
) -> Iterator[io.BufferedReader]:
    """Opens a regular file, unpacking it as it is read where its name ends in `.gz`.

    Args:
        path: of the file.
        most: bytes that may be read from it, unpacked.
        inside: the folder it belongs to; a link that leads out of it is refused.

    Raises:
        InputError: the file cannot be opened, is a device, FIFO, socket or folder, lies outside, or
            is found broken, too long or not UTF-8 in the block.
    """
    where = as_line(str(path))
    try:
        if inside is not None:
            # `Path.resolve` has no `OSError` for a link that points to itself; opening it has.
            real, folder = (Path(os.path.realpath(each)) for each in (path, inside))
            if not real.is_relative_to(folder):
                raise InputError(f"{where}: a link that leads out of '{inside}' is not followed")
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError(f"{where}: not a regular file, which is needed")
        with path.open("rb") as file:
            plain = gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file
            yield io.BufferedReader(_Bounded(cast(IO[bytes], plain), most, where))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{where}: broken or truncated gzip file: {error}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: not UTF-8: {error.reason} at {error.start}") from None
    except FileNotFoundError:
        raise InputError(f"{where}: no such file") from None
    except OSError as error:
        raise InputError(f"{where}: cannot be read: {error.strerror or error}") from None


def read_bytes(path: Path, most: int = MOST_BYTES, inside: Path | None = None) -> bytes:
    """All of a file, see `opened`."""
    with opened(path, most, inside) as file:
        return file.read()


def check_values(content: bytes, marks: bytes, where: str) -> None:
    """Refuses content that would take far more memory parsed than it has bytes.

    Args:
        content: of the file `where`, not parsed yet.
        marks: single bytes; every value begins or ends with one of them. Those in texts count too.
    """
    if sum(map(content.count, marks)) > MOST_VALUES:
        raise InputError(f"{where}: more than {MOST_VALUES:,} values, too many")


def parse_json(content: bytes, where: str) -> Any:
    """JSON of others: no key twice, not too many values.

    Numbers that are not finite pass: the model that the content is checked by names their keys.

    Raises:
        InputError: it is not valid JSON, or has too many values.
    """
    check_values(content, b",:[{", where)

    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) < len(pairs):
            twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
            raise ValueError(f"key {short(twice)} is given twice")
        return values

    try:
        return json.loads(content.decode("utf-8-sig"), object_pairs_hook=mapping)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not valid JSON: {error}") from None


class _NoKeyTwice(yaml.SafeLoader):
    """PyYAML's loader of plain values, which refuses a key that is given twice."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        for name, count in Counter(key.value for key, _ in node.value).items():
            if count > 1:
                raise yaml.YAMLError(f"{short(name)} is given twice")
        return dict(super().construct_mapping(node, deep))


def read_yaml(path: Path, where: str) -> Any:
    """The plain values of a YAML file, which errors call `where`.

    Raises:
        InputError: it cannot be read, is not YAML or has a key twice.
    """
    content = read_bytes(path, MOST_YAML_BYTES)
    try:
        return yaml.load(content.decode("utf-8-sig"), _NoKeyTwice)
    except Exception as error:  # PyYAML lets pass what Python raises, as of too large a number
        raise InputError(f"{where}: not YAML, {one_line(str(error) or repr(error))}") from None


def table_row(cells: Iterable[Any]) -> list[Any]:
    """A row of CSV in which no text is computed by spreadsheets or obeyed by terminals."""

    def harmless(text: str) -> str:
        return printable(f"'{text}" if text.startswith(FORMULA) else text)

    return [harmless(cell) if isinstance(cell, str) else cell for cell in cells]


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A temporary file that takes the name `path` in the end: it appears whole or not at all.

    Raises:
        InputError: a device or socket has the name, or its folder cannot be written to.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise InputError(f"{path}: not a regular file, it stays as it is")
        try:
            yield temporary
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)  # fails, too, where a path goes through a file
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None


@contextmanager
def folder_written_whole(path: Path) -> Iterator[Path]:
    """The same for a folder, which the block makes; one that is there stays until it is whole."""
    fresh, old = (path.with_name(f".{path.name}.{end}") for end in ("part", "old"))
    shutil.rmtree(fresh, ignore_errors=True)  # of a run that was killed
    try:
        yield fresh
        if path.exists():
            shutil.rmtree(old, ignore_errors=True)
            path.rename(old)
        fresh.rename(path)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


class _Bounded(io.RawIOBase):
    """What is read through it comes to an error after `most` bytes."""

    def __init__(self, file: IO[bytes], most: int, where: str) -> None:
        self._file, self._left, self._most, self._where = file, most, most, where

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._file.read(min(len(buffer), self._left + 1))
        if len(content) > self._left:
            raise InputError(f"{self._where}: more than {self._most:,} bytes (unpacked), too many")
        self._left -= len(content)
        buffer[: len(content)] = content
        return len(content)
