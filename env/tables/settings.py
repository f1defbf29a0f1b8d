"""What collectors take as given: conf/collect.yaml, which says the units."""

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
    """Regions and the numbers that no data state."""

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
