"""CSV files with a header, plain or gzipped: columns of texts and of numbers."""

import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from env.base.errors import InputError
from env.base.files import MOST_BYTES, opened
from env.base.schema import nearest, one_line, short

COLUMN = re.compile(r"(?<=^In CSV column )#(\d+)")
"""How pyarrow calls a column."""


@dataclass(frozen=True)
class CsvFile:
    """A CSV file, UTF-8, of at most so many bytes when unpacked.

    Raises:
        InputError: from its methods, where the file cannot be read or is no such table.
    """

    path: Path
    max_bytes: int

    @cached_property
    def header(self) -> list[str]:
        """Names of the columns."""
        with opened(self.path, self.max_bytes) as file:
            try:
                names = next(csv.reader(io.TextIOWrapper(file, "utf-8-sig", newline="")), None)
            except csv.Error as error:
                raise InputError(f"{self.path}: header: {error}") from None
        if names is None:
            raise InputError(f"{self.path}: empty, a header and at least 1 row are needed")
        if repeated := [name for name, count in Counter(names).items() if count > 1]:
            raise InputError(f"{self.path}: column {short(repeated[0])} is there twice")
        return names

    def read(
        self,
        texts: Iterable[str],
        numbers: Mapping[str, float],
        whole: bool = False,
        blanks: bool = False,
        blank_texts: Collection[str] = (),
    ) -> dict[str, np.ndarray]:
        """Columns by name, R rows each.

        Args:
            texts: columns of names, none of them blank.
            numbers: column to the largest number that is allowed; the smallest is 0.
            whole: whether numbers are read as int32, in place of float64.
            blanks: whether numbers may be blank, which is not a number then.
            blank_texts: columns of `texts` that may be blank, which is an empty text then.
        """
        # Imported when needed: it takes some 0.3 s.
        import pyarrow as pa
        from pyarrow.csv import ConvertOptions, ReadOptions, read_csv

        kinds = dict.fromkeys(texts, pa.string())
        kinds |= dict.fromkeys(numbers, pa.int32() if whole else pa.float64())
        for name in kinds:
            if name not in self.header:
                near = nearest(name, self.header[:20])
                raise InputError(f"{self.path}: column '{name}' is missing ({near})")
        convert = ConvertOptions(
            column_types=kinds,
            include_columns=list(kinds),
            null_values=[""],
            strings_can_be_null=True,
        )
        with opened(self.path, self.max_bytes) as file:
            try:  # without threads it says the row
                table = read_csv(file, ReadOptions(use_threads=False), convert_options=convert)
            except pa.ArrowInvalid as error:
                fault = COLUMN.sub(lambda match: self.header[int(match[1])], str(error))
                raise InputError(f"{self.path}: {one_line(fault)}") from None
        if len(table) == 0:
            raise InputError(f"{self.path}: no rows under the header, at least 1 is needed")
        columns: dict[str, np.ndarray] = {}
        for name in texts:
            cells = table[name].combine_chunks()
            cells = cells.fill_null("") if name in blank_texts else cells
            cells = cells.dictionary_encode()  # equal texts take room once
            if cells.null_count:
                row = cells.is_null().index(True).as_py()
                raise self.error(row, name, "blank", "a name is needed")
            columns[name] = np.array(cells.dictionary, object)[cells.indices]
        for name, most in numbers.items():
            columns[name] = table[name].to_numpy()
            allowed = (columns[name] >= 0) & (columns[name] <= most)
            if blanks:
                allowed |= np.isnan(columns[name])
            if not allowed.all():
                row = int(np.argmin(allowed))
                needed = f"a number of at least 0 and at most {most:g} is needed"
                raise self.error(row, name, f"{columns[name][row]:g}", needed)
        return columns

    def error(self, row: int, column: str, value: str, allowed: str) -> InputError:
        """One line on a cell; `row` counts from 0."""
        return InputError(f"{self.path}: row {row + 2}: {column} is {value}, {allowed}")


class CsvTable(dict[tuple[str, ...], float]):
    """The numbers of a column by the texts of others; they may be as large as bits per second.

    Raises:
        InputError: it cannot be read, or has no number that is asked for.
    """

    def __init__(self, path: Path, number: str, *texts: str) -> None:
        columns = CsvFile(path, MOST_BYTES).read(texts, {number: 1e15}, blank_texts=texts)
        keys = zip(*(columns[name] for name in texts), strict=True)
        super().__init__(zip(keys, columns[number].tolist(), strict=True))
        self._what = f"{path}: no {number}"

    def __missing__(self, key: tuple[str, ...]) -> float:
        raise InputError(f"{self._what} of {' '.join(key)}, which is needed")
