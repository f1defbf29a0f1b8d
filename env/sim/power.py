"""Electricity: what the servers of a cluster draw, and the carbon of it."""

import math
from dataclasses import dataclass, fields

from env.sim.errors import InputError

MB_PER_GB = 1024
W_PER_KW = 1000.0


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
        least = {"busy_core": self.idle_core, "pue": 1.0}
        for field in fields(self):
            value, at_least = getattr(self, field.name), least.get(field.name, 0.0)
            if not (math.isfinite(value) and value >= at_least):
                raise InputError(
                    f"cluster: power: {field.name} is {value}, "
                    f"a number of at least {at_least:g} is needed"
                )

    def idle_carbon(self, cores: int, memory: int) -> float:
        """gCO2e of an hour of so many cores and MB, rented and at rest."""
        return self._carbon(cores * self.idle_core + memory / MB_PER_GB * self.memory)

    @property
    def work_carbon(self) -> float:
        """gCO2e that an hour of work of one core adds to it."""
        return self._carbon(self.busy_core - self.idle_core)

    def _carbon(self, watts: float) -> float:
        return watts / W_PER_KW * self.pue * self.carbon_intensity
