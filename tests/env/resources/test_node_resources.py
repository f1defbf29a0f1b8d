"""The resources of a node: conformance cases 2 and 4."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env.base.errors import InputError
from env.resources.node_resources import NodeResources
from env.resources.resource_set import ResourceSet

DEMANDS = st.builds(
    lambda cpu, gpu: ResourceSet.of(CPU=cpu, GPU=gpu),
    st.sampled_from([0, 0.5, 1, 2]),
    st.sampled_from([0, 0.25, 0.5, 1, 3]),
)


def test_all_or_nothing() -> None:
    node = NodeResources(ResourceSet.of(CPU=2, GPU=2))
    assert node.acquire(ResourceSet.of(CPU=1, GPU=3)) is None
    assert node.acquire(ResourceSet.of(CPU=1, fpga=1)) is None
    assert node.available == node.total == ResourceSet.of(CPU=2, GPU=2)


def test_which_resources_have_ids() -> None:
    total = ResourceSet.of(CPU=4, GPU=4, fpga=4)
    today = NodeResources(total, with_ids=("GPU", "fpga"))
    assert today.acquire(ResourceSet.of(CPU=1.5)) is not None
    for label in ("GPU", "fpga"):
        with pytest.raises(InputError, match=f"^{label}: 1.5 is refused"):
            today.acquire(ResourceSet.of(**{label: 1.5}))
    for label in total:
        with pytest.raises(InputError, match=f"^{label}: 1.5 is refused"):
            NodeResources(total, "2019").acquire(ResourceSet.of(**{label: 1.5}))


@given(st.lists(DEMANDS))
def test_the_total_is_used_or_available(demands: list[ResourceSet]) -> None:
    node = NodeResources(ResourceSet.of(CPU=4, GPU=4))
    before = {label: own.left.tolist() for label, own in node.instances.items()}
    held, used = [], ResourceSet()
    for demand in demands:
        taken = node.acquire(demand)
        if taken is not None:
            held.append(taken)
            used += demand
        assert used + node.available == node.total
    for taken in reversed(held):
        node.release(taken)
    assert {label: own.left.tolist() for label, own in node.instances.items()} == before
