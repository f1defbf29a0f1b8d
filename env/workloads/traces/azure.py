"""Reads the traces of Azure Functions, 2019 and 2021: https://github.com/Azure/AzurePublicDataset.

A damaged file is refused with one line; valid rows that cannot be used are left out and counted.
Several rows of one function are merged, which is counted too.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from env.base.csv_file import CsvFile
from env.base.errors import InputError
from env.base.schema import ASCENDING, Strict, short
from env.sim.declared.bounds import LARGEST_MEMORY, LARGEST_WHOLE, LONGEST
from env.workloads.traces.profiles import LogNormal
from env.workloads.traces.trace import (
    QUANTILES,
    REQUEST,
    SECONDS_PER_MINUTE,
    MinuteCounts,
    Recording,
    SingleInvocations,
)

MS_PER_SECOND = 1_000
MINUTES_PER_DAY = 1_440
MINUTE = re.compile(r"(minute_)?\d{1,7}")
"""A minute's column: 1 to 1440 in the original; excerpts begin elsewhere, or write minute_1."""
MOST_A_MINUTE = 10_000_000
"""Invocations of one function in a minute: what is above is taken for damage."""

APPLICATION = ("HashOwner", "HashApp")
FUNCTION = (*APPLICATION, "HashFunction")
LONGEST_MS = LONGEST * MS_PER_SECOND
DURATIONS_MS = [f"percentile_Average_{round(100 * point)}" for point in QUANTILES]
PERCENTS_MB = (1, 5, 25, 50, 75, 95, 99, 100)
MEMORY_MB = ["AverageAllocatedMb", *map("AverageAllocatedMb_pct{}".format, PERCENTS_MB)]
MOST_FUNCTIONS = 1_000
"""Functions of an application, up to which a figure of memory is taken for a share."""

FileName = Annotated[str, Field(min_length=1)]
Ratio = Annotated[float, Field(ge=0, le=1e6)]
FileBytes = Annotated[int, Field(ge=1, le=1_000_000_000_000)]
MOST_TRACE_BYTES = 1_000_000_000
"""Of a file, unpacked, by default: those of 2019 have 140 MB, that of 2021 330 MB."""

Key = tuple[str, ...]
"""Owner and application, and the function where a row is of one."""


class Azure2019(Strict):
    """A day of the trace of 2019, or an excerpt; conf/workload/azure2019.yaml explains each key."""

    kind: Literal["azure2019"]
    path: str
    invocations: FileName
    durations: FileName
    memory: FileName | None
    max_bytes: FileBytes = MOST_TRACE_BYTES

    def read(self, min_duration: float) -> Recording:
        """The functions that have both invocations and durations. Nothing is drawn.

        - A function is identified by `HashOwner`, `HashApp` and `HashFunction`.
        - Rows of one function are merged. Invocations are summed by minute, whatever the trigger.
          Durations are means weighted by `Count`, memory is one weighted by `SampleCount`. A blank
          count weighs nothing; without any, rows weigh the same.
        - The percentiles of durations are of averages over 30 s, without cold starts.
        - Memory is the average of the application, which is what a container of Azure holds. An
          excerpt with rows of functions may have divided it evenly over them: it is multiplied
          by the smallest number of functions that makes all figures of a row whole MB.
        - Left out: functions that are never invoked or have no durations, rows with a blank
          (of memory: or an average of 0), and rows of functions that are never invoked.

        Args:
            min_duration: seconds, shorter durations are raised to it.

        Raises:
            InputError: a file cannot be read, has no rows or lacks a column or a minute; a cell is
                negative, too large or no number; percentiles descend; or no function is left.
        """
        counts: Counter[str] = Counter()
        invocations = self._invocations(counts)
        durations = self._durations(invocations, counts)
        memory = self._memory(invocations, counts)
        keys = [key for key in invocations if key in durations]
        counts["functions without durations, left out"] = len(invocations) - len(keys)
        if not keys:
            raise InputError(
                f"{self.path}: no function that is invoked in {self.invocations} has durations in "
                f"{self.durations}, at least 1 is needed"
            )
        seconds = np.array([durations[key] for key in keys]) / MS_PER_SECOND
        raised = (seconds < min_duration).any(axis=1)
        counts["functions with percentiles raised to min_duration"] = int(raised.sum())
        return Recording(
            source=self.path,
            names=_names(keys),
            memory=np.array([memory.get(key, math.nan) for key in keys]),
            invocations=MinuteCounts(
                counts=np.stack([invocations[key] for key in keys], axis=1),
                durations=np.maximum(seconds, min_duration),
            ),
            counts=+counts,
            groups=dict(zip(("owner", "app"), zip(*keys, strict=True), strict=False)),
        )

    def _invocations(self, counts: Counter[str]) -> dict[Key, np.ndarray]:
        """Invocations a minute, int32 (M,), of the functions that are invoked."""
        file = self._file(self.invocations)
        minutes = _minutes(file)
        columns = file.read(FUNCTION, dict.fromkeys(minutes, MOST_A_MINUTE), whole=True)
        rows = np.stack([columns[minute] for minute in minutes], axis=1)
        functions: dict[Key, np.ndarray] = {}
        for key, row in zip(_keys(columns, FUNCTION), rows, strict=True):
            if key in functions:
                row += functions[key]
                counts["repeated rows of invocations, summed by minute"] += 1
            functions[key] = row
        invoked = {key: row for key, row in functions.items() if row.any()}
        counts["functions never invoked, left out"] = len(functions) - len(invoked)
        return invoked

    def _durations(self, functions: Collection[Key], counts: Counter[str]) -> dict[Key, np.ndarray]:
        """Milliseconds at `QUANTILES`, by function."""
        file = self._file(self.durations)
        keys, figures, weights = _figures(file, FUNCTION, DURATIONS_MS, "Count", LONGEST_MS)
        descends = (np.diff(figures) < 0).any(axis=1)
        if descends.any():
            row = int(np.argmax(descends))
            values = ", ".join(f"{figure:g}" for figure in figures[row])
            raise file.error(row, "percentile_Average", values, "percentiles must ascend")
        return _means(keys, figures, weights, functions, "durations", counts)

    def _memory(self, functions: Collection[Key], counts: Counter[str]) -> dict[Key, float]:
        """MB by function; functions without memory are left out."""
        if self.memory is None:
            return {}
        file = self._file(self.memory)
        if not file.path.exists():
            raise InputError(f"{file.path}: no such file; workload.source.memory=null draws memory")
        # The original has one row an application, some excerpts one a function.
        parts = FUNCTION if "HashFunction" in file.header else APPLICATION
        keys, figures, weights = _figures(file, parts, MEMORY_MB, "SampleCount", LARGEST_MEMORY)
        shares = [_functions_of_shares(row) if parts == FUNCTION else 1 for row in figures]
        averages = figures[:, :1] * np.reshape(shares, (-1, 1))
        averages[averages == 0] = math.nan
        owners = {function: function[: len(parts)] for function in functions}
        means = _means(keys, averages, weights, owners.values(), "memory", counts)
        shared = {key for key, share in zip(keys, shares, strict=True) if share > 1}
        counts["memory shares, multiplied to the application's"] = len(shared & means.keys())
        return {function: means[key][0] for function, key in owners.items() if key in means}

    def _file(self, name: str) -> CsvFile:
        plain = Path(self.path).expanduser() / name
        packed = plain.with_name(f"{plain.name}.gz")
        return CsvFile(packed if packed.exists() and not plain.exists() else plain, self.max_bytes)


class Azure2021(Strict):
    """The trace of 2021: one row an invocation, with its duration."""

    kind: Literal["azure2021"]
    path: str
    max_bytes: FileBytes = MOST_TRACE_BYTES

    def read(self, min_duration: float) -> Recording:
        """All functions, in the order of their first row. Nothing is drawn.

        A request arrives its duration before the end that is stated: the trace has no waiting. It
        has no memory. Left out: invocations that began before the trace.

        Args:
            min_duration: seconds, shorter durations are raised to it.

        Raises:
            InputError: the file cannot be read, lacks a column or has no usable row; a cell is
                blank, negative, too large or no number.
        """
        file = CsvFile(Path(self.path).expanduser(), self.max_bytes)
        columns = file.read(("app", "func"), {"end_timestamp": LONGEST, "duration": LONGEST})
        usable = columns["end_timestamp"] >= columns["duration"]
        if not usable.any():
            raise InputError(f"{file.path}: every invocation began before the trace")
        columns = {name: cells[usable] for name, cells in columns.items()}
        index: dict[Key, int] = {}
        requests = np.empty(int(usable.sum()), REQUEST)
        requests["time"] = columns["end_timestamp"] - columns["duration"]
        requests["function"] = [
            index.setdefault(key, len(index)) for key in _keys(columns, ("app", "func"))
        ]
        raised = columns["duration"] < min_duration
        requests["duration"] = np.where(raised, min_duration, columns["duration"])
        requests = requests[np.argsort(requests["time"], kind="stable")]
        return Recording(
            source=self.path,
            names=_names(index),
            memory=np.full(len(index), math.nan),
            invocations=SingleInvocations(
                requests,
                functions=len(index),
                minutes=int(requests["time"][-1] // SECONDS_PER_MINUTE) + 1,
            ),
            counts=+Counter(
                {
                    "invocations that began before the trace, left out": int((~usable).sum()),
                    "durations raised to min_duration": int(raised.sum()),
                }
            ),
            groups={"app": tuple(app for app, _ in index)},
        )


class AzureLike(Strict):
    """A made-up trace with the marginals of Azure's, for machines that do not have the data.

    Rates, durations and the share of timers follow a sampled day of 2019;
    conf/workload/azure_like.yaml has the numbers and where they are from.

    A timer is invoked at even intervals; the invocations of other functions are a Poisson process.
    """

    kind: Literal["azure_like"]
    seed: int = Field(ge=0)
    functions: int = Field(ge=1, le=1_000_000)
    minutes: int = Field(ge=1, le=1_000_000)
    daily_invocations: LogNormal
    most_daily_invocations: float = Field(gt=0, le=1e10)
    timers: float = Field(ge=0, le=1)
    median_duration: LogNormal
    duration_spread: Annotated[tuple[Ratio, Ratio, Ratio, Ratio, Ratio, Ratio, Ratio], ASCENDING]
    longest_duration: float = Field(gt=0, le=1e6)

    @model_validator(mode="after")
    def _drawable(self) -> Self:
        if self.most_daily_invocations < self.daily_invocations.median:
            raise ValueError(
                f"most_daily_invocations is {self.most_daily_invocations}, at least the median of "
                f"daily_invocations, {self.daily_invocations.median}, is needed"
            )
        return self

    def read(self, min_duration: float) -> Recording:
        """The functions that are invoked at all.

        A timer goes off every whole number of minutes, or several times each minute, whichever is
        nearest to its rate. Memory is left open.

        Args:
            min_duration: seconds, shorter durations are raised to it.
        """
        counts = np.zeros((self.minutes, self.functions), np.int64)
        medians = np.empty(self.functions)
        for function in range(self.functions):
            rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(function,)))
            rate = self.daily_invocations.draw(rng)
            while rate > self.most_daily_invocations:
                rate = self.daily_invocations.draw(rng)
            rate /= MINUTES_PER_DAY
            if rng.random() < self.timers:
                period = max(1, round(1 / rate))
                counts[rng.integers(period) :: period, function] = max(1, round(rate))
            else:
                counts[:, function] = rng.poisson(rate, self.minutes)
            medians[function] = self.median_duration.draw(rng)
        durations = np.outer(medians, self.duration_spread)
        invoked = np.flatnonzero(counts.sum(axis=0))
        return Recording(
            source="azure_like",
            names=tuple(f"function_{number}" for number in invoked),
            memory=np.full(len(invoked), np.nan),
            invocations=MinuteCounts(
                counts=counts[:, invoked],
                durations=np.clip(durations[invoked], min_duration, self.longest_duration),
            ),
            counts={"functions never invoked, left out": self.functions - len(invoked)},
        )


def _figures(
    file: CsvFile, texts: Sequence[str], names: Sequence[str], weight: str, most: float
) -> tuple[list[Key], np.ndarray, np.ndarray]:
    """Keys of the rows, figures (R, K), nan where blank, and weights (R,).

    A weight is 0 where it is blank, or not there as in some excerpts.
    """
    weighted = {weight: LARGEST_WHOLE} if weight in file.header else {}
    columns = file.read(texts, dict.fromkeys(names, most) | weighted, blanks=True)
    figures = np.stack([columns[name] for name in names], axis=1)
    weights = columns.get(weight, np.zeros(len(figures)))
    return _keys(columns, texts), figures, np.nan_to_num(weights)


def _means(
    keys: Sequence[Key],
    figures: np.ndarray,
    weights: np.ndarray,
    wanted: Collection[Key],
    kind: str,
    counts: Counter[str],
) -> dict[Key, np.ndarray]:
    """Weighted means (K,) of the rows of each wanted key that has rows without a blank.

    Ascending figures stay so: all are summed in one order. Keys, figures and weights are as
    `_figures` gives them; `counts` is added to, under the name `kind`.
    """
    rows: dict[Key, list[int]] = defaultdict(list)
    blank = np.isnan(figures).any(axis=1)
    counts[f"rows of {kind} with a blank, left out"] = int(blank.sum())
    for row in np.flatnonzero(~blank).tolist():
        rows[keys[row]].append(row)
    counts[f"{kind} of functions without invocations, left out"] = len(rows.keys() - set(wanted))
    means = {}
    for key in rows.keys() & set(wanted):
        counts[f"repeated rows of {kind}, merged"] += len(rows[key]) - 1
        several, weight = figures[rows[key]], weights[rows[key]]
        # A single row counts as it is stated, to the last digit.
        alike = len(several) == 1 or not weight.any()
        means[key] = np.average(several, axis=0, weights=None if alike else weight)
    return means


def _keys(columns: Mapping[str, np.ndarray], names: Iterable[str]) -> list[Key]:
    return list(zip(*(columns[name] for name in names), strict=True))


def _names(keys: Collection[Key]) -> tuple[str, ...]:
    """Of functions: their last part, and where several have that, owner and application before."""
    count = Counter(key[-1] for key in keys)
    return tuple(key[-1] if count[key[-1]] == 1 else "-".join(key) for key in keys)


def _functions_of_shares(figures: np.ndarray) -> int:
    """The smallest number of functions that makes all figures of a row whole; 1 if none does."""
    shares = [Fraction(figure) for figure in figures if not math.isnan(figure)]
    functions = math.lcm(*(share.limit_denominator(MOST_FUNCTIONS).denominator for share in shares))
    return functions if functions <= MOST_FUNCTIONS else 1


def _minutes(file: CsvFile) -> list[str]:
    """Columns of the minutes, which follow each other by one."""
    minutes = [name for name in file.header if MINUTE.fullmatch(name)]
    numbers = [int(name.removeprefix("minute_")) for name in minutes]
    if not minutes or numbers != [*range(numbers[0], numbers[0] + len(numbers))]:
        needed = "one for every minute, as 1 or minute_1, is needed"
        raise InputError(f"{file.path}: columns of minutes are {short(minutes)}, {needed}")
    return minutes
