"""Regions: what a data centre's place changes, what lies between two, and who may run where."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, Field, model_validator

from env.base.errors import InputError
from env.base.schema import Strict, nearest
from env.sim.declared.bounds import Bandwidth, Name, Rate, Seconds
from env.sim.declared.power import with_hours

MOST_REGIONS: Final = 62
"""So many have a bit of a 64-bit integer each."""

Factor = Annotated[float, Field(strict=True, ge=1e-3, le=1e3)]


class Link(Strict):
    """What data meet between two regions.

    Attributes:
        round_trip: s, of every transfer.
        bandwidth: bytes/s.
        egress: USD per GB, 10^9 bytes, that leaves for the other region.
    """

    round_trip: Seconds
    bandwidth: Bandwidth
    egress: Rate


class Region(Strict):
    """A place where servers stand: an entry of `cluster.regions`.

    Attributes:
        price: factor on hourly rates and on what is paid per use.
        relative_performance: factor on the speed of cores.
        power: keys of `cluster.power` that are different here.
        links: by other region. One that is said on one side alone holds in both directions.
    """

    price: Factor = 1.0
    relative_performance: Factor = 1.0
    power: Annotated[dict[str, Any], AfterValidator(with_hours)] = Field(default_factory=dict)
    links: dict[Name, Link] = Field(default_factory=dict)


RegionTable = Annotated[dict[Name, Region], Field(max_length=MOST_REGIONS)]


def check_known(where: str, names: Iterable[str], regions: Collection[str]) -> None:
    """Refuses by an `InputError` the name of a region that is not one of those in a table."""
    for name in names:
        if name not in regions:
            hint = nearest(name, list(regions)) if regions else "cluster.regions has none"
            raise InputError(f"{where}: region '{name}' is unknown, {hint}")


class Regions(Strict):
    """In which regions a function may run: some, or all but some; None: nothing is declared."""

    allowed: tuple[Name, ...] | None = None
    disallowed: tuple[Name, ...] | None = None

    @model_validator(mode="after")
    def _none_is_both(self) -> Self:
        if both := sorted(set(self.allowed or ()).intersection(self.disallowed or ())):
            raise ValueError(f"region '{both[0]}' is both allowed and disallowed")
        return self


ANYWHERE: Final = Regions()


def permitted_regions(
    regions: Iterable[str], allowed: Collection[str] | None, disallowed: Collection[str] | None
) -> tuple[str, ...]:
    """Those of `regions` that a function may run in; where some are allowed, only these count."""
    if allowed:
        return tuple(region for region in regions if region in allowed)
    return tuple(region for region in regions if region not in (disallowed or ()))
