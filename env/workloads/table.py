"""CSV files with a header, plain or gzipped: rows read one by one, damage told in one line."""

import csv
import io
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from env.base.errors import InputError
from env.base.files import opened
from env.base.schema import nearest, short


@dataclass(frozen=True)
class Table:
    """A CSV file; every pass over its rows reads it anew.

    Attributes:
        path: of the file, UTF-8.
        max_bytes: of the file, unpacked; a larger one is refused.
        inside: the folder that it must not lead out of.

    Raises:
        InputError: from its methods, where the file cannot be read or is no such table.
    """

    path: Path
    max_bytes: int
    inside: Path | None = None

    @cached_property
    def columns(self) -> dict[str, int]:
        """Name of a column to its position."""
        header = next(self._lines(), None)
        if header is None:
            raise InputError(f"{self.path}: empty, a header and at least 1 row are needed")
        names = [name.strip() for name in header[1]]
        repeated = next((name for name, count in Counter(names).items() if count > 1), None)
        if repeated is not None:
            raise InputError(f"{self.path}: column {short(repeated)} is there twice")
        return {name: position for position, name in enumerate(names)}

    def require(self, names: Iterable[str]) -> None:
        """Refuses a table that lacks a column."""
        for name in names:
            if name not in self.columns:
                near = nearest(name, list(self.columns)[:20])
                raise InputError(f"{self.path}: column '{name}' is missing ({near})")

    def rows(self) -> Iterator["Row"]:
        """The rows under the header; blank lines are no rows."""
        width, row = len(self.columns), None
        lines = self._lines()
        next(lines)
        for number, cells in lines:
            if len(cells) != width:
                raise InputError(
                    f"{self.path}: row {number}: {len(cells)} cells, the header has {width}"
                )
            row = Row(self, number, cells)
            yield row
        if row is None:
            raise InputError(f"{self.path}: no rows under the header, at least 1 is needed")

    def _lines(self) -> Iterator[tuple[int, list[str]]]:
        with opened(self.path, self.max_bytes, self.inside) as file:
            reader = csv.reader(io.TextIOWrapper(file, "utf-8-sig", newline=""))
            try:
                for cells in reader:
                    if cells:
                        yield reader.line_num, cells
            except csv.Error as error:
                raise InputError(f"{self.path}: row {reader.line_num}: {error}") from None


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table.

    Attributes:
        table: it is of.
        number: its line in the file, from 1.
        cells: its text, one a column.
    """

    table: Table
    number: int
    cells: Sequence[str]

    @property
    def named(self) -> dict[str, str]:
        """Its cells by the names of their columns."""
        return dict(zip(self.table.columns, self.cells, strict=True))

    def text(self, column: str) -> str:
        """What stands in a column, which may not be blank."""
        text = self.cells[self.table.columns[column]].strip()
        if not text:
            raise self.error(column, "blank", "a name is needed")
        return text

    def amount(self, column: str, most: float) -> float:
        """The number in a column, from 0 to `most`; not a number where the cell is blank."""
        text = self.cells[self.table.columns[column]].strip()
        if not text:
            return math.nan
        try:
            amount = float(text)
        except ValueError:
            amount = math.nan
        if not 0 <= amount <= most:
            allowed = f"a number of at least 0 and at most {most:g} is needed"
            raise self.error(column, short(text), allowed)
        return amount

    def ascending(self, columns: Sequence[str], most: float) -> list[float]:
        """The numbers in some columns, up to `most`; none may be below the one before."""
        amounts = [self.amount(column, most) for column in columns]
        for (low, before), (high, after) in pairwise(zip(columns, amounts, strict=True)):
            if before > after:
                raise self.error(
                    high, f"{after:g}, below {low}, {before:g}", "percentiles must ascend"
                )
        return amounts

    def error(self, column: str, found: str, allowed: str) -> InputError:
        """One line on a cell of this row."""
        return InputError(f"{self.table.path}: row {self.number}: {column} is {found}, {allowed}")
