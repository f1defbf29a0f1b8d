"""Regions as records: what they draw and emit by hour, and the links between them."""

from __future__ import annotations

import numpy as np

from env.sim.declared.hardware import ClusterConfig
from env.sim.state import records

GB = 1e9
"""Bytes of a GB of which egress is charged."""


def region_arrays(config: ClusterConfig) -> dict[str, np.ndarray]:
    """The arrays of a `State` about regions; where a cluster has none all servers are in one."""
    names = list(config.regions)
    powers = [config.power_in(name) for name in names] or [config.power]
    regions = np.zeros(len(powers), records.REGION)
    by_hour = [np.array(power.by_hour if power else (0.0,)) for power in powers]
    regions["core_watts"] = [power.core_watts if power else 0.0 for power in powers]
    regions["pue"] = [power.pue if power else 1.0 for power in powers]
    regions["hours"] = [len(hours) for hours in by_hour]
    regions["first_hour"] = np.cumsum(regions["hours"]) - regions["hours"]
    regions["cycle"] = [hours.sum() for hours in by_hour]
    intensity = np.zeros(regions["hours"].sum(), records.INTENSITY)
    intensity["grams"] = np.concatenate(by_hour)
    intensity["before"] = np.concatenate([np.cumsum(hours) - hours for hours in by_hour])
    links = [config.link(source, target) for source in names for target in names]
    rows = [(link.round_trip, link.bandwidth, link.egress / GB) for link in links]
    return {"regions": regions, "links": np.array(rows, records.LINK), "intensity": intensity}
