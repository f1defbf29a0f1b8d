"""Amounts in 1/10,000: conformance cases 1 and 2."""

import math
from fractions import Fraction

import pytest
import ray
from pydantic import TypeAdapter

from env.base.errors import InputError
from env.base.schema import Strict, validated
from env.resources.quantity import UNIT, Quantity, as_number, from_float, from_text


class Declared(Strict):
    gpu: Quantity


def test_a_float_is_cut_off_as_in_ray() -> None:
    assert from_float(0.57) == 5699
    lost = [k for k in range(1, 10_000) if from_float(k / 10_000) != k]
    assert len(lost) == 573 and all(from_float(k / 10_000) == k - 1 for k in lost)
    assert ray._raylet.RESOURCE_UNIT_SCALING == UNIT


@pytest.mark.parametrize("amount", [math.nan, math.inf, -math.inf, -0.5])
def test_a_float_that_is_no_amount_is_refused(amount: float) -> None:
    with pytest.raises(InputError, match="a number of at least 0 is needed"):
        from_float(amount)


def test_a_text_is_read_as_a_decimal() -> None:
    assert from_text("0.57") == 5700
    assert all(from_text(str(k / 10_000)) == k for k in range(10_000))
    assert from_text("1e-4") == 1 and from_text("2") == 2 * UNIT


@pytest.mark.parametrize(("given", "units"), [(0.57, 5700), ("0.57", 5700), (2, 20_000), (0, 0)])
def test_declared_amounts(given: float | str, units: int) -> None:
    declared = validated(Declared, {"gpu": given}, "conf")
    assert declared.gpu == units
    assert Fraction(str(as_number(declared.gpu))) == Fraction(str(given))
    assert declared.model_dump() == {"gpu": as_number(units)}
    # What was read once is not read again as a plain number.
    assert TypeAdapter(Quantity).validate_python(declared.gpu) == units


@pytest.mark.parametrize(
    "given", [0.12345, "1e-5", math.nan, "nan", math.inf, "-inf", -1, True, None, "two", 1_000_001]
)
def test_a_declared_amount_that_is_none_is_refused(given: object) -> None:
    told = (
        r"^conf: gpu: found .*, a number from 0 to 1,000,000 with at most four decimals is needed"
    )
    with pytest.raises(InputError, match=told):
        validated(Declared, {"gpu": given}, "conf")
