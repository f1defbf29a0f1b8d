"""The forecast carbon intensity of regions, and the carbon of data that move between them."""

import math
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from env.base.errors import InputError
from env.sim.declared.carbon_series import hours_from, read_carbon
from env.sim.declared.regions import check_known
from env.tables.collectors import CollectorSettings
from env.tables.tables import AVAILABLE, Rows, Tables

EARTH_RADIUS: Final = 6371.0
"""km."""


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
