"""Amounts of tickets as users write them, made exact."""

import math
from contextlib import suppress
from fractions import Fraction
from typing import Annotated, Any

from pydantic import Field

from env.base.errors import InputError
from env.base.schema import short

Amount = int | float | Fraction

MOST_TICKETS = 1 << 20
"""Of one client; a mechanism takes whole tickets."""
LEAST = Fraction(1, 10**9)
MOST = Fraction(10**12)
Tickets = Annotated[float, Field(ge=float(LEAST), le=float(MOST))]
"""A number of them, as configurations and files say it."""


def exact(where: str, amount: Any) -> Fraction:
    """An amount as a fraction; 0.1 is a tenth, not the nearest binary number.

    Raises:
        InputError: it is no number, or too small or large; `where` says what.
    """
    with suppress(ValueError):
        value = amount if isinstance(amount, Fraction) else Fraction(str(amount))
        if LEAST <= value <= MOST:
            return value
    allowed = f"numbers of {float(LEAST):g} to {float(MOST):g} are allowed"
    raise InputError(f"{where}: {short(amount)}, {allowed}")


def whole_scale(base: Fraction) -> Fraction:
    """Whole tickets for a ticket of a base: as many as can be, and a whole number if above 1."""
    scale = MOST_TICKETS / base
    return Fraction(math.floor(scale)) if scale >= 1 else scale
