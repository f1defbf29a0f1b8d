"""Carbon intensity of a grid by hour, from the files in which it is published."""

from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np
import pandas as pd
from pydantic import AliasChoices, Field

from env.base.csv_file import CsvFile
from env.base.errors import InputError
from env.base.files import MOST_BYTES, parse_json, read_bytes
from env.base.schema import Recorded, listed, short, validated

LEAST, MOST = 1.0, 3_000.0
"""gCO2e/kWh: no grid emits less all the time; lignite some 1,200. Others have another unit."""
COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "ci": ("date", "hour"),
    "avg_CI": ("timestamp",),
    "carbon_intensity_avg": ("datetime",),
    "Carbon Intensity": ("Time",),
}
"""Intensities to times in CSV files: averages of Electricity Maps by hour, fuel mixes of the EIA,
data of Electricity Maps, data of ENTSO-E. Times without a zone are UTC."""
Unit = Literal["gCO2eq/kWh", "gCO2e/kWh"]


class _Entry(Recorded):
    datetime: str
    carbonIntensity: Annotated[float, Field(ge=0, le=MOST)] | None
    unit: Unit | None = None


class _History(Recorded):
    """Answer of Electricity Maps to `carbon-intensity/history`; to `past-range`, with `data`."""

    history: list[_Entry] = Field(validation_alias=AliasChoices("history", "data"), min_length=1)
    unit: Unit | None = None


def read_carbon(path: Path) -> pd.Series:
    """gCO2e/kWh (H,) by the hours (UTC) of which a file, plain or .gz, says anything, ascending.

    An hour has the mean of its values; it is not a number where it has not as many as others.

    Raises:
        InputError: one line with the file and the row: its format is not known, it states another
            unit, or a number is negative or too large for this one.
    """
    if ".json" in path.suffixes:
        answer = validated(_History, parse_json(read_bytes(path), str(path)), str(path))
        found = [entry.carbonIntensity for entry in answer.history]
        return _by_hour(path, [entry.datetime for entry in answer.history], found)
    file = CsvFile(path, MOST_BYTES)
    column = next((each for each in COLUMNS if each in file.header), None)
    if column is None:
        raise InputError(f"{path}: intensities (gCO2e/kWh) need a column {listed(COLUMNS)}")
    table = file.read(COLUMNS[column], {column: MOST}, blanks=True)
    parts = zip(*(table[each] for each in COLUMNS[column]), strict=True)
    return _by_hour(path, ["T".join(each) for each in parts], table[column])


def _by_hour(path: Path, times: list[str], values: Any) -> pd.Series:
    hours = pd.to_datetime(times, utc=True, format="ISO8601", errors="coerce")
    if hours.hasnans:
        at = int(hours.isna().argmax())
        raise InputError(f"{path}: value {at + 1}: {short(times[at])} found, a time is needed")
    hours = hours.tz_localize(None).floor("h")
    each = pd.Series(values, hours, float, str(path)).groupby(level=0)
    if each.mean().max() < LEAST:
        raise InputError(f"{path}: all below {LEAST:g}, gCO2e/kWh are needed: is it another unit?")
    return each.mean().where(each.count() == each.size().mode()[0])


def hours_from(begin: np.datetime64 | pd.Timestamp, count: int, series: pd.Series) -> np.ndarray:
    """float64 (count,), gCO2e/kWh of the hours from `begin` (UTC) on.

    Raises:
        InputError: one of them is missing; the first is named.
    """
    wanted = series.reindex(pd.date_range(begin, periods=count, freq="h"))
    if wanted.hasnans:
        there = f"there are {series.index[0]:%FT%H} to {series.index[-1]:%FT%H}"
        fault = f"hour {wanted.isna().idxmax():%FT%H} (UTC) has no value, or not as many as others"
        raise InputError(f"{series.name}: {fault}; {there}")
    return wanted.to_numpy()
