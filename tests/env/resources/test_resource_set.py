"""Sets of resources by label."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env.base.errors import InputError
from env.resources.resource_set import ResourceSet

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


@given(SETS, SETS)
def test_what_is_added_can_be_taken_again(one: ResourceSet, other: ResourceSet) -> None:
    both = one + other
    assert one <= both and both >= other
    assert both.subtract_strict(other) == both - other == one
