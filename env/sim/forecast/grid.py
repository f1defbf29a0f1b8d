"""What the electricity of regions emits now and in the coming hours."""

from typing import Final

from env.base.jit import compiled_apart
from env.sim.events.carbon import intensity_at, until
from env.sim.state.block import State
from env.sim.state.draws import FORECAST, normal
from env.sim.state.records import HOUR

HOURS: Final = 6
"""So far ahead forecasts look."""


@compiled_apart
def intensities(state: State, region: int):
    """Of a region, in gCO2e per kWh that computers use, the data centre's PUE included.

    A forecast is the true mean * (1 + error), at least 0. Every hour each region draws the error
    anew, normal with the standard deviation `forecast_error` of the cluster.

    Returns:
        (mean of all regions now; now / that mean; forecast of the coming HOURS / that mean), the
        last two 0 where nothing is emitted anywhere.
    """
    cluster, time, mean = state.cluster[0], state.cluster[0].time, 0.0
    for each in range(len(state.regions)):
        mean += state.regions[each].pue * intensity_at(state, each, time) / len(state.regions)
    if mean == 0.0:
        return 0.0, 0.0, 0.0
    ahead = (until(state, region, time + HOURS * HOUR) - until(state, region, time)) / HOURS
    error = cluster.forecast_error * normal(cluster.seed, FORECAST + region, int(time // HOUR))
    scale = state.regions[region].pue / mean
    return mean, scale * intensity_at(state, region, time), scale * ahead * max(0.0, 1.0 + error)


@compiled_apart
def coming_intensities(state: State, hours: int):
    """Means of all regions in gCO2e per kWh that computers use, the data centres' PUE included.

    Returns:
        (now, least and most of now and the hours that follow).
    """
    now = least = most = 0.0
    for hour in range(hours):
        mean = 0.0
        for each in range(len(state.regions)):
            grams = intensity_at(state, each, state.cluster[0].time + hour * HOUR)
            mean += state.regions[each].pue * grams / len(state.regions)
        if hour == 0:
            now = least = most = mean
        least, most = min(least, mean), max(most, mean)
    return now, least, most
