"""The four collectors of Caribou's design document: each makes all rows of its own tables.

They take the tables so far, the inputs of the command, the settings and the hour that it is, and
raise InputError for inputs that they cannot read or that lack what is needed.
"""

from typing import Annotated

from pydantic import Field

from env.base.schema import Strict
from env.workloads.code.analysis import RegionName

Amount = Annotated[float, Field(ge=0, le=1e12)]


class Region(Strict):
    """A region's name, and its place in degrees, negative in the south and in the west."""

    name: str
    latitude: Annotated[float, Field(ge=-90, le=90)]
    longitude: Annotated[float, Field(ge=-180, le=180)]


class CollectorSettings(Strict):
    """Regions and the numbers that no data state: conf/collect.yaml, which says the units."""

    regions: dict[RegionName, Region]
    home: RegionName
    request: Amount
    free_requests: Amount
    free_gb_seconds: Amount
    forecast_days: Annotated[int, Field(ge=2, le=366)]  # it has to see a day twice
    no_data_g_per_kwh: Amount
    transfer_kwh_per_gb: Amount
    tail: Annotated[float, Field(ge=1, le=1e12)]
    relative_performance: dict[RegionName, Annotated[float, Field(gt=0, le=1e12)]]
