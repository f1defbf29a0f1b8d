"""Amounts in 1/10,000: conformance cases 1 and 2; and sets of them by label."""

import math
from fractions import Fraction

import pytest
import ray
from hypothesis import given as drawn
from hypothesis import strategies as st
from pydantic import TypeAdapter

from env.base.errors import InputError
from env.base.schema import Strict, validated
from env.resources.quantity import UNIT, Quantity, ResourceSet, as_number, from_float, from_text


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


SETS = st.dictionaries(st.sampled_from(["CPU", "GPU", "fpga"]), st.integers(0, 30_000)).map(
    ResourceSet
)
NODE = ResourceSet.of(CPU=4, GPU=1.5)


def test_labels_at_zero_are_dropped() -> None:
    assert ResourceSet.of(CPU=1, GPU=0) == ResourceSet.of(CPU=1)
    assert list(NODE - ResourceSet.of(GPU=1.5)) == ["CPU"]
    assert ResourceSet.of(fpga=0.57)["fpga"] == 5699


def test_subsets() -> None:
    assert ResourceSet.of(CPU=4) <= NODE and NODE >= ResourceSet.of(GPU=0.5)  # noqa: SIM300
    assert not ResourceSet.of(CPU=4, fpga=1) <= NODE
    assert not ResourceSet.of(CPU=4.5) <= NODE


def test_subtraction_stops_at_zero_or_is_refused() -> None:
    assert NODE - ResourceSet.of(CPU=5, fpga=1) == ResourceSet.of(GPU=1.5)
    assert NODE.subtract_strict(ResourceSet.of(GPU=0.5)) == ResourceSet.of(CPU=4, GPU=1)
    with pytest.raises(InputError, match=r"^GPU: 2 of 1.5 cannot be taken$"):
        NODE.subtract_strict(ResourceSet.of(CPU=1, GPU=2))
    with pytest.raises(InputError, match=r"^CPU: found -0.5, at least 0 is needed$"):
        ResourceSet({"CPU": -5000})


def test_addition_up_to_a_capacity() -> None:
    some = ResourceSet.of(CPU=3, GPU=1)
    assert some.add_up_to(ResourceSet.of(CPU=2, GPU=0.25), NODE) == ResourceSet.of(CPU=4, GPU=1.25)
    assert some.add_up_to(ResourceSet.of(fpga=1), NODE) == some


@drawn(SETS, SETS)
def test_what_is_added_can_be_taken_again(one: ResourceSet, other: ResourceSet) -> None:
    both = one + other
    assert one <= both and both >= other
    assert both.subtract_strict(other) == both - other == one
