"""Amounts of a resource: whole numbers of 1/10,000, so that sums and comparisons are exact."""

from __future__ import annotations

import math
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
