"""Electricity: what the servers of a cluster draw, and the carbon of it."""

import math
from dataclasses import dataclass, fields

from env.sim.errors import InputError

MB_PER_GB = 1024
WH_PER_KWH = 1000.0


@dataclass(frozen=True)
class Power:
    """What hardware draws, and what is emitted for it.

    A core draws `idle_core` while its server is rented, and up to `busy_core` in proportion to its
    use: the power model of Caribou (Gsteiger et al., SOSP 2024).

    Attributes:
        idle_core: W of a core that does nothing.
        busy_core: W of a core at work.
        memory: W per GB, used or not.
        pue: energy of the data centre / energy of its computers, 1 or more.
        carbon_intensity: gCO2e per kWh of the grid.

    Raises:
        InputError: a value is out of range.
    """

    idle_core: float
    busy_core: float
    memory: float
    pue: float
    carbon_intensity: float

    def __post_init__(self) -> None:
        for field in fields(self):
            _check(field.name, getattr(self, field.name), least=0.0, shown="0")
        _check("pue", self.pue, least=1.0, shown="1")
        _check("busy_core", self.busy_core, self.idle_core, f"idle_core, {self.idle_core:g},")

    def carbon(self, core_hours: float, memory_hours: float, worked_hours: float) -> float:
        """gCO2e of rented servers.

        Args:
            core_hours: for which cores are rented.
            memory_hours: MB times the hours for which it is rented.
            worked_hours: core-hours of work.
        """
        idle = core_hours * self.idle_core + memory_hours / MB_PER_GB * self.memory
        watt_hours = idle + worked_hours * (self.busy_core - self.idle_core)
        return float(watt_hours / WH_PER_KWH * self.pue * self.carbon_intensity)


def _check(name: str, value: float, least: float, shown: str) -> None:
    if not (math.isfinite(value) and value >= least):
        raise InputError(f"power: {name} is {value}, at least {shown} is needed")
