"""Reads the traces of Azure Functions, 2019 and 2021: https://github.com/Azure/AzurePublicDataset.

A damaged file is refused with one line; sound rows that cannot be used are passed over and counted.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from env.files import user_path
from env.schema import Strict, given
from env.sim.errors import InputError
from env.workloads.recording import (
    QUANTILES,
    SECONDS_PER_MINUTE,
    MinuteCounts,
    Recording,
    SingleInvocations,
)
from env.workloads.table import Row, Table
from env.workloads.trace import REQUEST

MS_PER_SECOND = 1_000
MINUTE = re.compile(r"(?:minute_)?(\d+)")
"""A minute's column: 1 to 1440 in the original; excerpts begin elsewhere, or write minute_1."""
MOST_A_MINUTE = 10_000_000
"""Invocations of one function in a minute: what is above is taken for damage."""

PERCENTILES_MS = tuple(f"percentile_Average_{round(100 * point)}" for point in QUANTILES)
AVERAGE_MB = "AverageAllocatedMb"
PERCENTILES_MB = tuple(f"{AVERAGE_MB}_pct{percent}" for percent in (1, 5, 25, 50, 75, 95, 99, 100))
MOST_FUNCTIONS = 1_000
"""Functions of an application, up to which a figure of memory is taken for a share."""

FileName = Annotated[str, Field(min_length=1)]


class Azure2019(Strict):
    """A day of the trace of 2019, or an excerpt: invocations a minute and percentiles.

    Attributes:
        path: folder of the three files; each may also be there gzipped, as `<name>.gz`.
        invocations: name of the file of invocations a minute.
        durations: name of the file of duration percentiles.
        memory: name of the file of memory percentiles.
    """

    kind: Literal["azure2019"]
    path: Annotated[str, given("the folder of its three files")]
    invocations: FileName
    durations: FileName
    memory: FileName

    def read(self, min_duration: float) -> Recording:
        """The functions that have both invocations and durations. Nothing is drawn.

        - Functions are told by `HashFunction`, which differs between applications.
        - Durations are the percentiles, which the source takes of averages over 30 s; single
          requests varied more. They leave out cold starts. Below `min_duration`, that is taken.
        - Memory is the average of the application, which is what a container of Azure holds. Where
          an excerpt has rows of functions, the application's figures may be divided evenly over
          its functions; they are put together again. The original states whole MB, so the smallest
          number of functions that makes all figures of a row whole is theirs.
        - Passed over: repeated rows (the first one counts), functions that are never invoked,
          functions without durations or with blank ones, and rows whose function (in the file of
          memory: function or application) has no row of invocations.

        Args:
            min_duration: seconds, shorter durations are raised to it.

        Raises:
            InputError: a file cannot be read, has no rows or lacks a column or a minute; a cell is
                negative or no number; percentiles descend; or no function is left.
        """
        counts, skipped = self._counts()
        durations = self._durations(counts, skipped)
        memory, shares = self._memory(counts, skipped)
        names = [name for name in counts if name in durations]
        skipped["functions without durations"] += len(counts) - len(names)
        if not names:
            raise InputError(
                f"{self.path}: no function of {self.invocations} has durations in "
                f"{self.durations}, at least 1 is needed"
            )
        stated = np.array([durations[name] for name in names]) / MS_PER_SECOND
        assumptions = {
            "mean durations of 0 raised to min_duration": int((stated[:, 0] == 0).sum()),
            "memory shares put together to the application's": shares,
        }
        return Recording(
            source=self.path,
            names=tuple(names),
            memory=np.array([memory.get(name, math.nan) for name in names]),
            invocations=MinuteCounts(
                counts=np.stack([counts[name].minutes for name in names], axis=1),
                durations=np.maximum(stated[:, 1:], min_duration),
            ),
            skipped=+skipped,
            assumptions=+Counter(assumptions),
            stated_duration=np.maximum(stated[:, 0], min_duration),
        )

    def _counts(self) -> tuple[dict[str, "_Function"], Counter[str]]:
        """Functions that are invoked, by name, and what was passed over."""
        table = self._table(self.invocations)
        table.require(("HashApp", "HashFunction"))
        begin, end = _minute_columns(table)
        skipped: Counter[str] = Counter()
        found: dict[str, _Function] = {}
        for row in table.rows():
            name = row.text("HashFunction")
            minutes = _whole(row, begin, end)
            if name in found:
                skipped["repeated rows"] += 1
            elif not minutes.any():
                skipped["functions never invoked"] += 1
            else:
                found[name] = _Function(row.text("HashApp"), minutes)
        if not found:
            raise InputError(f"{table.path}: no function is ever invoked, at least 1 is needed")
        return found, skipped

    def _durations(
        self, counts: Mapping[str, "_Function"], skipped: Counter[str]
    ) -> dict[str, list[float]]:
        """Milliseconds by name: the average, then the percentiles."""
        table = self._table(self.durations)
        table.require(("HashFunction", "Average", "Minimum", "Maximum", *PERCENTILES_MS))
        found: dict[str, list[float]] = {}
        for row in table.rows():
            name = row.text("HashFunction")
            figures = [row.amount("Average"), *row.ascending(PERCENTILES_MS)]
            # Not used, but a negative one tells that the file is damaged.
            row.amount("Minimum"), row.amount("Maximum")
            if name not in counts:
                skipped["durations of functions without invocations"] += 1
            elif name in found:
                skipped["repeated rows"] += 1
            elif not any(map(math.isnan, figures)):
                found[name] = figures
        return found

    def _memory(
        self, counts: Mapping[str, "_Function"], skipped: Counter[str]
    ) -> tuple[dict[str, float], int]:
        """MB by name, and how many of them were shares."""
        table = self._table(self.memory)
        # The original has one row an application, some excerpts one a function.
        of_functions = "HashFunction" in table.columns
        key = "HashFunction" if of_functions else "HashApp"
        table.require((key, AVERAGE_MB, *PERCENTILES_MB))
        figures: dict[str, list[float]] = {}
        for row in table.rows():
            name = row.text(key)
            if name in figures:
                skipped["repeated rows"] += 1
            figures.setdefault(name, [row.amount(AVERAGE_MB), *row.ascending(PERCENTILES_MB)])
        keys = {name: name if of_functions else counts[name].app for name in counts}
        skipped["memory of functions without invocations"] += len(
            figures.keys() - set(keys.values())
        )
        found, shares = {}, 0
        for name, known in keys.items():
            if known in figures and figures[known][0] > 0:
                functions = _functions_of_shares(figures[known]) if of_functions else 1
                found[name] = figures[known][0] * functions
                shares += functions > 1
        return found, shares

    def _table(self, name: str) -> Table:
        plain = user_path(self.path) / name
        packed = plain.with_name(f"{plain.name}.gz")
        return Table(packed if packed.exists() and not plain.exists() else plain)


class Azure2021(Strict):
    """The trace of 2021: one row an invocation, with its duration.

    Attributes:
        path: the file, plain or gzipped.
    """

    kind: Literal["azure2021"]
    path: Annotated[str, given("its file, plain or gzipped,")]

    def read(self, min_duration: float) -> Recording:
        """All functions, in the order of their first row. Nothing is drawn.

        A request arrives its duration before the end that is stated: the trace has no waiting. It
        has no memory. Passed over: invocations that began before the trace.

        Args:
            min_duration: seconds, shorter durations are raised to it.

        Raises:
            InputError: the file cannot be read, lacks a column or has no usable row; a cell is
                blank, negative or no number.
        """
        table = Table(user_path(self.path))
        table.require(("app", "func", "end_timestamp", "duration"))
        index: dict[tuple[str, str], int] = {}
        rows: list[tuple[float, int, float]] = []
        skipped: Counter[str] = Counter()
        for row in table.rows():
            key = row.text("app"), row.text("func")
            end, duration = row.amount("end_timestamp"), row.amount("duration")
            for column, value in (("end_timestamp", end), ("duration", duration)):
                if math.isnan(value):
                    raise row.error(column, "blank", "a number of at least 0 is needed")
            if end < duration:
                skipped["invocations that began before the trace"] += 1
            else:
                rows.append((end - duration, index.setdefault(key, len(index)), duration))
        if not rows:
            raise InputError(f"{table.path}: every invocation began before the trace")
        requests = np.array(rows, REQUEST)
        requests = requests[np.argsort(requests["time"], kind="stable")]
        raised = requests["duration"] < min_duration
        requests["duration"][raised] = min_duration
        return Recording(
            source=self.path,
            names=tuple(function for _, function in index),
            memory=np.full(len(index), math.nan),
            invocations=SingleInvocations(
                requests,
                functions=len(index),
                minutes=int(requests["time"][-1] // SECONDS_PER_MINUTE) + 1,
            ),
            skipped=skipped,
            assumptions=+Counter({"durations raised to min_duration": int(raised.sum())}),
        )


@dataclass(frozen=True)
class _Function:
    """A function of 2019: its application and its invocations, int32 (M,)."""

    app: str
    minutes: np.ndarray


def _functions_of_shares(figures: list[float]) -> int:
    """The smallest number of functions that makes all figures of a row whole; 1 if none does."""
    known = [Fraction(figure) for figure in figures if not math.isnan(figure)]
    functions = math.lcm(*(share.limit_denominator(MOST_FUNCTIONS).denominator for share in known))
    return functions if functions <= MOST_FUNCTIONS else 1


def _minute_columns(table: Table) -> tuple[int, int]:
    """Positions of the first minute and behind the last, which follow each other by one."""
    minutes = [
        (position, int(match[1]), name)
        for name, position in table.columns.items()
        if (match := MINUTE.fullmatch(name))
    ]
    if not minutes:
        raise InputError(f"{table.path}: no column of a minute, 1 or minute_1 and so on are needed")
    for (left, before, name), (right, after, _) in pairwise(minutes):
        if (right, after) != (left + 1, before + 1):
            raise InputError(
                f"{table.path}: minute {before + 1} does not follow '{name}', "
                "one column for every minute is needed"
            )
    return minutes[0][0], minutes[-1][0] + 1


def _whole(row: Row, begin: int, end: int) -> np.ndarray:
    """Invocations in the columns from `begin` up to `end`, int32."""
    columns = list(row.table.columns)[begin:end]
    allowed = f"a whole number from 0 to {MOST_A_MINUTE} is needed"
    try:
        counts = np.array(row.cells[begin:end]).astype(np.float64)
    except ValueError:
        counts = np.array([row.amount(column) for column in columns])
    sound = (counts >= 0) & (counts <= MOST_A_MINUTE) & (counts == np.floor(counts))
    if not sound.all():
        position = int(np.argmin(sound))
        found = row.cells[begin + position].strip()
        raise row.error(columns[position], f"'{found}'", allowed)
    return counts.astype(np.int32)
