"""The forecast carbon intensity of regions, and the carbon of data that move between them.

Intensities of a grid by hour are read from the files in which they are published.
"""

import math
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np
import pandas as pd
from pydantic import AliasChoices, Field

from env.base.errors import InputError
from env.base.files import MOST_BYTES, parse_json, read_bytes
from env.base.schema import Recorded, listed, short, validated
from env.sim.declared.regions import check_known
from env.tables.collectors import CollectorSettings
from env.tables.tables import AVAILABLE, Rows, Tables
from env.workloads.traces.csv_file import CsvFile

EARTH_RADIUS: Final = 6371.0
"""km."""
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


def carbon_rows(
    tables: Tables, inputs: Sequence[str], settings: CollectorSettings, now: datetime
) -> dict[str, Rows]:
    """Reads REGION=FILE for each region; REGION= without a file says that there are no data.

    The document's fields, and in addition the forecast by hour of the day (UTC), `hourly`, of which
    `carbon_intensity` is the mean, and distances, which published code has. Data on their way emit
    by the mean intensity of both ends.
    """
    regions, hour = tables.rows(AVAILABLE), np.datetime64(now.replace(tzinfo=None), "h")
    files = dict(each.partition("=")[::2] for each in inputs)
    check_known("carbon", files, regions)
    if len(files) < len(inputs) or not all("=" in each for each in inputs):
        raise InputError(f"carbon: {' '.join(inputs)}: REGION=FILE is needed, once for each region")
    hourly, history = {}, 24 * settings.forecast_days
    for key in regions:
        if key not in files:
            none = f"{settings.no_data_g_per_kwh:g} gCO2e/kWh"
            raise InputError(f"region '{key}' has no file, '{key}=' would take {none} for it")
        hourly[key] = np.full(24, settings.no_data_g_per_kwh)
        if files[key]:
            before = hours_from(hour - history, history, read_carbon(Path(files[key])))
            hourly[key] = np.roll(next_day(before), now.hour)
    mean = {key: float(values.mean()) for key, values in hourly.items()}
    rows: Rows = {}
    for key, place in regions.items():
        carbon, away = {}, {}
        for other in regions:
            grams = settings.transfer_kwh_per_gb * (mean[key] + mean[other]) / 2
            carbon[other] = {"carbon_intensity": grams, "unit": "gCO2eq/GB"}
            away[other] = distance(place, regions[other])
        rows[key] = {
            "carbon_intensity": mean[key],
            "unit": "gCO2eq/kWh",
            "hourly": hourly[key].tolist(),
            "transmission_carbon": carbon,
            "transmission_distances": away,
            "transmission_distances_unit": "km",
        }
    return {"carbon_region_table": rows}


def next_day(history: np.ndarray) -> np.ndarray:
    """float64 (24,), gCO2e/kWh of the 24 hours after a history (H,) of at least two days.

    Exponential smoothing with a season of a day and no trend (Holt-Winters), as published code.
    """
    # Loaded only here: it takes two seconds.
    from statsmodels.tsa.holtwinters import ExponentialSmoothing

    model = ExponentialSmoothing(history, seasonal="additive", seasonal_periods=24)
    return np.maximum(0.0, model.fit().forecast(24))


def distance(one: dict[str, Any], other: dict[str, Any]) -> float:
    """Kilometres between two places on the ground (haversine formula)."""
    here, there = (math.radians(place["latitude"]) for place in (one, other))
    across = math.radians(other["longitude"] - one["longitude"])
    chord = math.sin((there - here) / 2) ** 2
    chord += math.cos(here) * math.cos(there) * math.sin(across / 2) ** 2
    return 2 * EARTH_RADIUS * math.asin(min(1.0, math.sqrt(chord)))


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


def hours_from(begin: np.datetime64, count: int, series: pd.Series) -> np.ndarray:
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
