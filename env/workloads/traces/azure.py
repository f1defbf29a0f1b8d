"""Reads the traces of Azure Functions, 2019 and 2021: https://github.com/Azure/AzurePublicDataset.

A damaged file is refused with one line; sound rows that cannot be used are passed over and counted.
Several rows of one function are put together, which is counted too.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from env.base.errors import InputError
from env.base.schema import Strict, short
from env.sim.declared.bounds import LARGEST_MEMORY, LARGEST_WHOLE, LONGEST
from env.workloads.table import Row, Table
from env.workloads.traces.trace import REQUEST
from env.workloads.traces.trace_recording import (
    QUANTILES,
    SECONDS_PER_MINUTE,
    MinuteCounts,
    Recording,
    SingleInvocations,
)

MS_PER_SECOND = 1_000
MINUTE = re.compile(r"(?:minute_)?(\d{1,7})")
"""A minute's column: 1 to 1440 in the original; excerpts begin elsewhere, or write minute_1."""
MOST_A_MINUTE = 10_000_000
"""Invocations of one function in a minute: what is above is taken for damage."""

APPLICATION = ("HashOwner", "HashApp")
FUNCTION = (*APPLICATION, "HashFunction")
LONGEST_MS = LONGEST * MS_PER_SECOND
PERCENTILES_MS = tuple(f"percentile_Average_{round(100 * point)}" for point in QUANTILES)
AVERAGE_MB = "AverageAllocatedMb"
PERCENTILES_MB = tuple(f"{AVERAGE_MB}_pct{percent}" for percent in (1, 5, 25, 50, 75, 95, 99, 100))
MOST_FUNCTIONS = 1_000
"""Functions of an application, up to which a figure of memory is taken for a share."""

MOST_TRACE_BYTES = 1_000_000_000
"""Of a file, unpacked, unless told: those of 2019 have 140 MB, that of 2021 330 MB."""

FileName = Annotated[str, Field(min_length=1)]
FileBytes = Annotated[int, Field(ge=1, le=1_000_000_000_000)]
Weighted = tuple[float, list[float]]
"""How much a row weighs beside other rows of its function, and its figures."""
Key = tuple[str, ...]
"""Owner and application, and the function where a row is of one."""


class Azure2019(Strict):
    """A day of the trace of 2019, or an excerpt: invocations a minute and percentiles.

    Attributes:
        path: folder of the three files; each may also be there gzipped, as `<name>.gz`.
        invocations: name of the file of invocations a minute.
        durations: name of the file of duration percentiles.
        memory: name of the file of memory percentiles; null where a day has none: it is drawn.
        max_bytes: of a file, unpacked; a larger one is refused.
    """

    kind: Literal["azure2019"]
    path: str
    invocations: FileName
    durations: FileName
    memory: FileName | None
    max_bytes: FileBytes = MOST_TRACE_BYTES

    def read(self, min_duration: float) -> Recording:
        """The functions that have both invocations and durations. Nothing is drawn.

        - Functions are told by `HashOwner`, `HashApp` and `HashFunction`.
        - Rows of one function are put together. Invocations are summed by minute, whatever the
          trigger. Durations, average and percentiles alike, are means weighted by `Count`, memory
          is one weighted by `SampleCount`. A blank count weighs nothing; without any, rows weigh
          the same.
        - Durations are the percentiles, which the source takes of averages over 30 s; single
          requests varied more. They leave out cold starts. Below `min_duration`, that is taken.
        - Memory is the average of the application, which is what a container of Azure holds. Where
          an excerpt has rows of functions, the application's figures may be divided evenly over
          its functions; they are put together again. The original states whole MB, so the smallest
          number of functions that makes all figures of a row whole is theirs.
        - Passed over: functions that are never invoked, functions without durations or with blank
          ones, rows that are blank (of memory: or 0) where others of the same function are not, and
          rows whose function (in the file of memory: function or application) has no row of
          invocations.

        Args:
            min_duration: seconds, shorter durations are raised to it.

        Raises:
            InputError: a file cannot be read, has no rows or lacks a column or a minute; a cell is
                negative, too large or no number; percentiles descend; or no function is left.
        """
        skipped: Counter[str] = Counter()
        assumed: Counter[str] = Counter()
        counts = self._counts(skipped, assumed)
        durations = self._durations(counts, skipped, assumed)
        memory = self._memory(counts, skipped, assumed)
        keys = [key for key in counts if key in durations]
        skipped["functions without durations"] += len(counts) - len(keys)
        if not keys:
            raise InputError(
                f"{self.path}: no function of {self.invocations} has durations in "
                f"{self.durations}, at least 1 is needed"
            )
        stated = np.array([durations[key] for key in keys]) / MS_PER_SECOND
        raised = (stated[:, 1:] < min_duration).any(axis=1)
        assumed["mean durations of 0 raised to min_duration"] = int((stated[:, 0] == 0).sum())
        assumed["functions with percentiles raised to min_duration"] = int(raised.sum())
        return Recording(
            source=self.path,
            names=_names(keys),
            memory=np.array([memory.get(key, math.nan) for key in keys]),
            invocations=MinuteCounts(
                counts=np.stack([counts[key] for key in keys], axis=1),
                durations=np.maximum(stated[:, 1:], min_duration),
            ),
            skipped=+skipped,
            assumptions=+assumed,
            stated_duration=np.maximum(stated[:, 0], min_duration),
            groups=dict(zip(("owner", "app"), zip(*keys, strict=True), strict=False)),
        )

    def _counts(self, skipped: Counter[str], assumed: Counter[str]) -> dict[Key, np.ndarray]:
        """Invocations a minute, int32 (M,), of the functions that are invoked."""
        table = self._table(self.invocations)
        table.require(FUNCTION)
        begin, end = _minute_columns(table)
        found: dict[Key, np.ndarray] = {}
        for row in table.rows():
            key = _key(row, FUNCTION)
            minutes = _whole(row, begin, end)
            if key in found:
                minutes += found[key]
                assumed["repeated rows of invocations summed by minute"] += 1
            found[key] = minutes
        invoked = {key: minutes for key, minutes in found.items() if minutes.any()}
        skipped["functions never invoked"] += len(found) - len(invoked)
        if not invoked:
            raise InputError(f"{table.path}: no function is ever invoked, at least 1 is needed")
        return invoked

    def _durations(
        self, counts: Mapping[Key, np.ndarray], skipped: Counter[str], assumed: Counter[str]
    ) -> dict[Key, list[float]]:
        """Milliseconds by function: the average, then the percentiles."""
        table = self._table(self.durations)
        table.require((*FUNCTION, "Average", *PERCENTILES_MS))
        rows: dict[Key, list[Weighted]] = {}
        blank: Counter[Key] = Counter()
        for row in table.rows():
            key = _key(row, FUNCTION)
            figures = [
                row.amount("Average", LONGEST_MS),
                *row.ascending(PERCENTILES_MS, LONGEST_MS),
            ]
            if key not in counts:
                skipped["durations of functions without invocations"] += 1
            elif any(map(math.isnan, figures)):
                blank[key] += 1
            else:
                rows.setdefault(key, []).append((_weight(row, "Count"), figures))
        skipped["blank rows of durations beside others"] += sum(blank[key] for key in rows)
        assumed["repeated rows of durations put together by Count"] += _repeated(rows)
        return {key: _mean(several) for key, several in rows.items()}

    def _memory(
        self, counts: Mapping[Key, np.ndarray], skipped: Counter[str], assumed: Counter[str]
    ) -> dict[Key, float]:
        """MB by function; those without are left out."""
        if self.memory is None:
            return {}
        table = self._table(self.memory)
        if not table.path.exists():
            raise InputError(
                f"{table.path}: no such file; workload.source.memory=null draws memory"
            )
        # The original has one row an application, some excerpts one a function.
        of_functions = "HashFunction" in table.columns
        columns = FUNCTION if of_functions else APPLICATION
        table.require((*columns, AVERAGE_MB, *PERCENTILES_MB))
        rows: dict[Key, list[Weighted]] = {}
        blank: Counter[Key] = Counter()
        shared: set[Key] = set()
        for row in table.rows():
            key = _key(row, columns)
            figures = [
                row.amount(AVERAGE_MB, LARGEST_MEMORY),
                *row.ascending(PERCENTILES_MB, LARGEST_MEMORY),
            ]
            known = rows.setdefault(key, [])
            if figures[0] > 0:
                functions = _functions_of_shares(figures) if of_functions else 1
                if functions > 1:
                    shared.add(key)
                weight = _weight(row, "SampleCount")
                known.append((weight, [figures[0] * functions]))
            else:
                blank[key] += 1
        keys = {key: key[: len(columns)] for key in counts}
        skipped["memory of functions without invocations"] += len(rows.keys() - keys.values())
        used = {key: rows[of] for key, of in keys.items() if rows.get(of)}
        beside = {keys[key] for key in used}
        skipped["blank rows of memory, or of 0, beside others"] += sum(blank[of] for of in beside)
        assumed["repeated rows of memory put together by SampleCount"] += _repeated(
            {keys[key]: several for key, several in used.items()}
        )
        assumed["memory shares put together to the application's"] += len(shared & used.keys())
        return {key: _mean(several)[0] for key, several in used.items()}

    def _table(self, name: str) -> Table:
        plain = Path(self.path).expanduser() / name
        packed = plain.with_name(f"{plain.name}.gz")
        path = packed if packed.exists() and not plain.exists() else plain
        return Table(path, self.max_bytes)


class Azure2021(Strict):
    """The trace of 2021: one row an invocation, with its duration.

    Attributes:
        path: the file, plain or gzipped.
        max_bytes: of the file, unpacked; a larger one is refused.
    """

    kind: Literal["azure2021"]
    path: str
    max_bytes: FileBytes = MOST_TRACE_BYTES

    def read(self, min_duration: float) -> Recording:
        """All functions, in the order of their first row. Nothing is drawn.

        A request arrives its duration before the end that is stated: the trace has no waiting. It
        has no memory. Passed over: invocations that began before the trace.

        Args:
            min_duration: seconds, shorter durations are raised to it.

        Raises:
            InputError: the file cannot be read, lacks a column or has no usable row; a cell is
                blank, negative, too large or no number.
        """
        table = Table(Path(self.path).expanduser(), self.max_bytes)
        table.require(("app", "func", "end_timestamp", "duration"))
        index: dict[tuple[str, str], int] = {}
        rows: list[tuple[float, int, float]] = []
        skipped: Counter[str] = Counter()
        for row in table.rows():
            key = row.text("app"), row.text("func")
            end, duration = row.amount("end_timestamp", LONGEST), row.amount("duration", LONGEST)
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
            names=_names(index),
            memory=np.full(len(index), math.nan),
            invocations=SingleInvocations(
                requests,
                functions=len(index),
                minutes=int(requests["time"][-1] // SECONDS_PER_MINUTE) + 1,
            ),
            skipped=skipped,
            assumptions=+Counter({"durations raised to min_duration": int(raised.sum())}),
            groups={"app": tuple(app for app, _ in index)},
        )


def _key(row: Row, columns: Sequence[str]) -> Key:
    return tuple(row.text(column) for column in columns)


def _names(keys: Collection[Key]) -> tuple[str, ...]:
    """Of functions: their own, and where several have that, owner and application before it."""
    count = Counter(key[-1] for key in keys)
    return tuple(key[-1] if count[key[-1]] == 1 else "-".join(key) for key in keys)


def _weight(row: Row, column: str) -> float:
    """The count in a column; 0 where it is blank, or not there as in some excerpts."""
    count = row.amount(column, LARGEST_WHOLE) if column in row.table.columns else 0.0
    return 0.0 if math.isnan(count) else count


def _repeated(rows: Mapping[Key, Sequence[Weighted]]) -> int:
    return sum(len(several) - 1 for several in rows.values())


def _mean(rows: Sequence[Weighted]) -> list[float]:
    """Each figure's weighted mean. Ascending figures stay so: all are summed in one order."""
    weights, figures = zip(*rows, strict=True)
    if len(rows) == 1:  # as it is stated, to the last digit
        return list(figures[0])
    if not any(weights):
        weights = (1.0,) * len(rows)
    return [
        sum(weight * figure for weight, figure in zip(weights, column, strict=True)) / sum(weights)
        for column in zip(*figures, strict=True)
    ]


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
    try:
        counts = np.array(row.cells[begin:end]).astype(np.float64)
    except ValueError:
        counts = np.array([row.amount(column, MOST_A_MINUTE) for column in columns])
    sound = (counts >= 0) & (counts <= MOST_A_MINUTE) & (counts == np.floor(counts))
    if not sound.all():
        bad = int(np.argmin(sound))
        allowed = f"a whole number from 0 to {MOST_A_MINUTE} is needed"
        raise row.error(columns[bad], short(row.cells[begin + bad].strip()), allowed)
    return counts.astype(np.int32)
