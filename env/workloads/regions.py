"""In which regions a function may run: a list of those it may use, or of those it must not."""

from collections.abc import Collection, Iterable
from typing import Self

from pydantic import model_validator

from env.base.schema import Strict
from env.sim.declared.bounds import Name


class Regions(Strict):
    """What is declared of a function, by the names of regions; None: nothing."""

    allowed: tuple[Name, ...] | None = None
    disallowed: tuple[Name, ...] | None = None

    @model_validator(mode="after")
    def _none_is_both(self) -> Self:
        if both := sorted(set(self.allowed or ()).intersection(self.disallowed or ())):
            raise ValueError(f"region '{both[0]}' is both allowed and disallowed")
        return self


def permitted_regions(
    regions: Iterable[str], allowed: Collection[str] | None, disallowed: Collection[str] | None
) -> tuple[str, ...]:
    """Those of `regions` that a function may run in; where some are allowed, only these count."""
    if allowed:
        return tuple(region for region in regions if region in allowed)
    return tuple(region for region in regions if region not in (disallowed or ()))
