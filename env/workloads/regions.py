"""In which regions a function may run: a list of those it may use, or of those it must not."""

from collections.abc import Collection, Iterable
from typing import Self

from pydantic import model_validator

from env.base.schema import Strict
from env.sim.declared.bounds import Name


class Regions(Strict):
    """What is declared of a function, by the names of regions."""

    allowed: tuple[Name, ...] = ()
    disallowed: tuple[Name, ...] = ()

    @model_validator(mode="after")
    def _none_is_both(self) -> Self:
        for region in self.allowed:
            if region in self.disallowed:
                raise ValueError(f"region '{region}' is both allowed and disallowed")
        return self


def permitted_regions(
    regions: Iterable[str], allowed: Collection[str] = (), disallowed: Collection[str] = ()
) -> tuple[str, ...]:
    """Those of all `regions` that a function may run in: where some are allowed, no others."""
    return tuple(
        each for each in regions if (each in allowed if allowed else each not in disallowed)
    )
