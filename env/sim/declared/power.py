"""Electricity: what the servers of a cluster draw, and the carbon of it."""

from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import Discriminator, Field, Tag, model_validator

from env.base.schema import Strict
from env.sim.state.records import HOUR, JOULES_PER_KWH, MB_PER_GB

INTENSITY: Final = "carbon_intensity_g_per_kwh"
Amount = Annotated[float, Field(strict=True, ge=0, le=1e12)]


def with_hours(given: dict[str, Any]) -> dict[str, Any]:
    """Keys of `Power`, with the hours of a file where they name one.

    Raises:
        InputError: one line with the file and what is wrong with it.
    """
    if not isinstance(file := given.get(INTENSITY), str):
        return given
    # Loaded only here: pandas takes its time.
    from env.sim.declared.carbon_series import hours_from, read_carbon

    series = read_carbon(Path(file).expanduser())
    hours = (series.index[-1] - series.index[0]).total_seconds() / HOUR
    return given | {INTENSITY: hours_from(series.index[0], int(hours) + 1, series).tolist()}


Intensity = Annotated[
    Annotated[Amount, Tag("<one>")]
    | Annotated[tuple[Amount, ...], Field(min_length=1), Tag("<by hour>")],
    Discriminator(lambda given: "<by hour>" if isinstance(given, list | tuple) else "<one>"),
]


class Power(Strict):
    """What hardware draws, and what is emitted for it: `cluster.power` and in episode files.

    A core draws `idle_core_w` while its server is rented, and up to `busy_core_w` in proportion to
    its use: the power model of Caribou (Gsteiger et al., SOSP 2024).

    Attributes:
        idle_core_w: W of a core that does nothing.
        busy_core_w: W of a core at work.
        memory_w_per_gb: W per GB, used or not.
        pue: energy of the data centre / energy of its computers.
        carbon_intensity_g_per_kwh: gCO2e per kWh of the grid; a list has a number for every hour
            from hour 0 on, and begins again behind its end. Of a file as those of `run.collect` all
            hours are read.
    """

    idle_core_w: Amount
    busy_core_w: Amount
    memory_w_per_gb: Amount
    pue: Annotated[float, Field(strict=True, ge=1, le=1e12)]
    carbon_intensity_g_per_kwh: Intensity

    @model_validator(mode="before")
    @classmethod
    def _hours_of_a_file(cls, given: Any) -> Any:
        return with_hours(given) if isinstance(given, dict) else given

    @model_validator(mode="after")
    def _busy_draws_more(self) -> Self:
        if self.busy_core_w < self.idle_core_w:
            raise ValueError(
                f"busy_core_w is {self.busy_core_w}, at least idle_core_w, {self.idle_core_w}, "
                "is needed"
            )
        return self

    @property
    def core_watts(self) -> float:
        """W that a core draws in addition while it is at work."""
        return self.busy_core_w - self.idle_core_w

    def idle_watts(self, cores: float, memory: float) -> float:
        """W of hardware that is leased, nothing being at work on it; `memory` in MB."""
        return cores * self.idle_core_w + memory / MB_PER_GB * self.memory_w_per_gb

    @property
    def by_hour(self) -> tuple[float, ...]:
        """gCO2e per kWh of every hour until they repeat."""
        given = self.carbon_intensity_g_per_kwh
        return given if isinstance(given, tuple) else (given,)

    def carbon(self, energy: float) -> float:
        """gCO2e of the energy, in J, that servers have drawn; the intensity is always the same."""
        return energy / JOULES_PER_KWH * self.pue * self.by_hour[0]
