"""Carbon intensity of a grid by hour, from the files in which it is published."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

import numpy as np
from pydantic import AliasChoices, Field

from env.base.errors import InputError
from env.base.files import MOST_BYTES, parse_json, read_bytes
from env.base.schema import Recorded, listed, short, validated
from env.workloads.traces.csv_file import CsvFile

MOST: Final = 3_000.0
"""gCO2e/kWh: lignite emits some 1,200; a larger number has another unit."""
COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "ci": ("date", "hour"),
    "avg_CI": ("timestamp",),
    "carbon_intensity_avg": ("datetime",),
    "Carbon Intensity": ("Time",),
}
"""Intensities to times in CSV files: averages of Electricity Maps by hour, fuel mixes of the EIA,
data of Electricity Maps, data of ENTSO-E. Times without a zone are UTC."""
Unit = Literal["gCO2eq/kWh", "gCO2e/kWh"]
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class _Entry(Recorded):
    datetime: str
    carbonIntensity: Annotated[float, Field(ge=0, le=MOST)] | None
    unit: Unit | None = None


class _History(Recorded):
    """Answer of Electricity Maps to `carbon-intensity/history`; to `past-range`, with `data`."""

    history: list[_Entry] = Field(validation_alias=AliasChoices("history", "data"), min_length=1)
    unit: Unit | None = None


class CarbonSeries(NamedTuple):
    """The intensities of a file.

    Attributes:
        where: the file.
        times: datetime64[h] (H,), the hours of which it says anything, UTC, ascending.
        values: float64 (H,), gCO2e/kWh; not a number where an hour has not as many as others.
        rows: (H,), the first row of each hour.
    """

    where: str
    times: np.ndarray
    values: np.ndarray
    rows: Sequence[str]

    def hours(self, begin: np.datetime64, count: int) -> np.ndarray:
        """float64 (count,), gCO2e/kWh of the hours from `begin` on.

        Raises:
            InputError: one of them is missing; the first is named.
        """
        wanted = begin.astype("datetime64[h]") + np.arange(count)
        place = np.maximum(0, np.searchsorted(self.times, wanted, side="right") - 1)
        missing = (self.times[place] != wanted) | np.isnan(self.values[place])
        if missing.any():
            first = np.argmax(missing)
            raise InputError(
                f"{self.where}: {self.rows[place[first]]}: hour {wanted[first]} (UTC) has no "
                f"value, or not as many as others; there are {self.times[0]} to {self.times[-1]}"
            )
        return self.values[place]


def read_carbon(path: Path) -> CarbonSeries:
    """The series of a file, plain or .gz; an hour has the mean of its values.

    Raises:
        InputError: one line with the file and the row: its format is not known, it states another
            unit, or a number is negative or too large for this one.
    """
    if ".json" in path.suffixes:
        answer = validated(_History, parse_json(read_bytes(path), str(path)), str(path))
        times = [entry.datetime for entry in answer.history]
        found = [entry.carbonIntensity for entry in answer.history]
        return _series(path, "entry 1", times, np.array(found, np.float64))
    file = CsvFile(path, MOST_BYTES)
    column = next((each for each in COLUMNS if each in file.header), None)
    if column is None:
        raise InputError(f"{path}: intensities (gCO2e/kWh) need a column {listed(COLUMNS)}")
    table = file.read(COLUMNS[column], {column: MOST}, blanks=True)
    parts = zip(*(table[each] for each in COLUMNS[column]), strict=True)
    return _series(path, "line 2", ["T".join(each) for each in parts], table[column])


def _series(path: Path, row: str, times: Sequence[str], values: np.ndarray) -> CarbonSeries:
    """Values at times, R each, by hour; `row` is what the first row is called."""
    word, first = row.split()
    rows = [f"{word} {int(first) + at}" for at in range(len(times))]
    minutes = np.zeros(len(times), np.int64)
    for at, text in enumerate(times):
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            raise InputError(f"{path}: {rows[at]}: {short(text)} found, a time is needed") from None
        time = time if time.tzinfo else time.replace(tzinfo=UTC)
        minutes[at] = (time - EPOCH) // timedelta(minutes=1)
    hours, begins, place, counts = np.unique(minutes // 60, True, True, True)
    usual = np.bincount(counts).argmax()
    means = np.where(counts == usual, np.bincount(place, values) / counts, np.nan)
    return CarbonSeries(
        str(path), hours.astype("datetime64[h]"), means, [rows[begin] for begin in begins]
    )
