"""A CSV file as a table of numbers by the texts beside them."""

from pathlib import Path
from typing import Final

from env.base.errors import InputError
from env.base.files import MOST_BYTES
from env.workloads.traces.csv_file import CsvFile

MOST: Final = 1e15
"""The largest numbers are bits per second."""


class CsvTable(dict[tuple[str, ...], float]):
    """The numbers of a column by the texts of others.

    Raises:
        InputError: it cannot be read, or has no number that is asked for.
    """

    def __init__(self, path: Path, number: str, *texts: str) -> None:
        columns = CsvFile(path, MOST_BYTES).read(texts, {number: MOST}, blank_texts=texts)
        keys = zip(*(columns[name] for name in texts), strict=True)
        super().__init__(zip(keys, columns[number].tolist(), strict=True))
        self._what = f"{path}: no {number}"

    def __missing__(self, key: tuple[str, ...]) -> float:
        raise InputError(f"{self._what} of {' '.join(key)}, which is needed")
