"""What electricity emits, where grids differ by the hour or by region: entered into the ledger.

Elsewhere the ledger has energy alone, and all of it emits alike.
"""

from __future__ import annotations

from env.base.jit import compiled, compiled_apart
from env.sim.state.block import State
from env.sim.state.draws import FORECAST, normal
from env.sim.state.queue_records import CARBON
from env.sim.state.records import HOUR, INF, JOULES_PER_KWH


@compiled
def until(state: State, region: int, time: float):
    """The integral of a region's intensity from hour 0 to a time, in gCO2e per kWh times hours."""
    grid, hours = state.regions[region], (time + state.cluster[0].begin_time) / HOUR
    cycles = hours // grid.hours
    within = hours - cycles * grid.hours
    hour = min(int(within), grid.hours - 1)
    present = state.intensity[grid.first_hour + hour]
    return cycles * grid.cycle + present.before + (within - hour) * present.grams


@compiled
def intensity_at(state: State, region: int, time: float):
    """gCO2e per kWh."""
    grid, hour = state.regions[region], int((time + state.cluster[0].begin_time) // HOUR)
    return state.intensity[grid.first_hour + hour % grid.hours].grams


@compiled
def mean_intensity(state: State, region: int, begin: float, end: float):
    """gCO2e per kWh from a time to one that is not before it."""
    offset = state.cluster[0].begin_time
    if (begin + offset) // HOUR == (end + offset) // HOUR:  # exact, also for an instant
        return intensity_at(state, region, begin)
    return (until(state, region, end) - until(state, region, begin)) / (end - begin) * HOUR


@compiled
def lease_carbon(state: State, server: int, begin: float, end: float):
    """gCO2e of a server that is up and at rest; 0 where carbon is not counted."""
    if state.options[0].meters & CARBON == 0:
        return 0.0
    return at_rest(state, server, begin, end)


@compiled_apart
def at_rest(state: State, server: int, begin: float, end: float):
    """As `lease_carbon`."""
    region = state.servers[server].region
    hours = until(state, region, end) - until(state, region, begin)
    joules_an_hour = state.servers[server].watts * HOUR
    return joules_an_hour / JOULES_PER_KWH * state.regions[region].pue * hours


@compiled_apart
def emit_work(state: State, server: int, account: int, seconds: float, start: float) -> None:
    """Enters the energy of core-seconds and what it emits, evenly from `start` until now."""
    time = state.cluster[0].time
    region = state.servers[server].region
    joules = seconds * state.regions[region].core_watts
    state.ledger[account].energy += joules
    if joules > 0.0:  # else it may not have started
        mean = mean_intensity(state, region, start, time)
        grams = joules / JOULES_PER_KWH * state.regions[region].pue * mean
        state.ledger[account].carbon += grams


@compiled_apart
def carbon_of_servers(state: State, whole: bool):
    """gCO2e of all that has been done and, up to now, of servers that are up.

    Args:
        state: of an episode; where power is not known nothing is emitted.
        whole: whether leases count up to the end that is paid.
    """
    time, servers, grams = state.cluster[0].time, state.servers, 0.0
    for account in range(len(state.ledger)):
        if state.options[0].meters & CARBON:
            grams += state.ledger[account].carbon
        else:
            kwh = state.ledger[account].energy / JOULES_PER_KWH
            grams += kwh * state.regions[0].pue * state.intensity[0].grams
    for server in range(len(servers)):
        end, ready = servers[server].expiration_time, servers[server].ready_time
        if end == INF and ready < time:  # not paid, so not entered yet
            grams += at_rest(state, server, ready, time)
        elif not whole and time < end < INF:
            grams -= at_rest(state, server, time, end)
    return grams


@compiled_apart
def intensities(state: State, region: int):
    """Of a region, in gCO2e per kWh that computers use, the data centre's PUE included.

    A forecast is the true mean * (1 + error), at least 0. Every hour each region draws the error
    anew, normal with the standard deviation `forecast_error` of the cluster.

    Returns:
        (mean of all regions now; now / that mean; forecast of `forecast_hours` / that mean), the
        last two 0 where nothing is emitted anywhere.
    """
    cluster, time, mean = state.cluster[0], state.cluster[0].time, 0.0
    for each in range(len(state.regions)):
        mean += state.regions[each].pue * intensity_at(state, each, time) / len(state.regions)
    if mean == 0.0:
        return 0.0, 0.0, 0.0
    end = time + cluster.forecast_hours * HOUR
    ahead = (until(state, region, end) - until(state, region, time)) / cluster.forecast_hours
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
