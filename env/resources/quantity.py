"""Amounts of resources: whole numbers of 1/10,000, so that sums and comparisons are exact."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from env.base.errors import InputError
from env.base.schema import short

UNIT: Final = 10_000
"""What 1 of a resource is (`src/ray/common/scheduling/fixed_point.h`)."""
MOST: Final = 1_000_000
"""Of a resource that is declared, in plain numbers."""


def from_float(amount: float) -> int:
    """An amount in 1/10,000, as Ray has it: what is beyond is cut off, so 0.57 becomes 5,699.

    Of the 9,999 fractions of four decimals, 573 lose 1/10,000 so. `from_text` loses none.

    Raises:
        InputError: it is negative or not finite.
    """
    if not 0 <= amount < math.inf:
        raise InputError(f"found {amount}, a number of at least 0 is needed")
    return int(amount * UNIT)


def from_text(text: str) -> int:
    """An amount in 1/10,000, of a decimal number as it is written: 0.57 is 5,700.

    Raises:
        InputError: it is no number from 0 to `MOST` with at most four decimals.
    """
    try:
        units = Decimal(text) * UNIT
        if 0 <= units <= MOST * UNIT and units == int(units):
            return int(units)
    except (InvalidOperation, ValueError):  # no number; not a number
        pass
    raise InputError(
        f"found {short(text)}, a number from 0 to {MOST:,} with at most four decimals is needed"
    )


def as_number(units: int) -> int | float:
    """The plain number, as it is declared: 2, 0.5."""
    return units // UNIT if units % UNIT == 0 else units / UNIT


class Quantity(int):
    """A declared amount, in 1/10,000: `Quantity.declared(0.5)` is 5,000.

    As the type of a field it is read from a number or a text, and written as a plain number.
    """

    @classmethod
    def declared(cls, amount: Any) -> Quantity:
        """The amount that a file or a program states; a `Quantity` stays what it is."""
        if isinstance(amount, cls):
            return amount
        number = isinstance(amount, int | float) and not isinstance(amount, bool)
        return cls(from_text(str(amount) if number or isinstance(amount, str) else repr(amount)))

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        written = core_schema.plain_serializer_function_ser_schema(as_number)
        return core_schema.no_info_plain_validator_function(cls.declared, serialization=written)


class ResourceSet(Counter[str]):
    """Labels with amounts above 0, in 1/10,000; of any other there is none. A set never changes.

    As `ResourceSet` of Ray's `src/ray/common/scheduling/resource_set.h`. `<=` asks whether it is a
    subset: no label has more than in the other set; `==` compares amounts.

    Args:
        amounts: by label. Labels at 0 are dropped.

    Raises:
        InputError: an amount is negative.
    """

    def __init__(self, amounts: Mapping[str, int] | None = None) -> None:
        for label, units in (amounts or {}).items():
            if units < 0:
                raise InputError(f"{label}: found {as_number(units)}, at least 0 is needed")
        super().__init__({label: int(units) for label, units in (amounts or {}).items() if units})

    @classmethod
    def of(cls, **amounts: float) -> ResourceSet:
        """From plain numbers, as Ray reads them (`from_float`)."""
        return cls({label: from_float(amount) for label, amount in amounts.items()})

    def __add__(self, other: Counter[str]) -> ResourceSet:  # type: ignore[override]
        """Label by label."""
        return ResourceSet(super().__add__(other))

    def __sub__(self, other: Counter[str]) -> ResourceSet:
        """Label by label, down to 0."""
        return ResourceSet(super().__sub__(other))

    def subtract_strict(self, other: ResourceSet) -> ResourceSet:
        """The difference with a subset; an `InputError` if the other set is none."""
        for label, units in other.items():
            if units > self[label]:
                has = as_number(self[label])
                raise InputError(f"{label}: {as_number(units)} of {has} cannot be taken")
        return self - other

    def add_up_to(self, other: ResourceSet, capacity: ResourceSet) -> ResourceSet:
        """The sum, of each label that is added no more than the capacity."""
        added = {label: min(self[label] + other[label], capacity[label]) for label in other}
        return ResourceSet({**self, **added})
