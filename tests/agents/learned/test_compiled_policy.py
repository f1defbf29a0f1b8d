"""The compiled form of a policy network against torch's."""

import numpy as np
import pytest
import torch

from agents.learned.compiled_policy import WIDEST, can_compile, writer_of
from agents.learned.network import MASKED_LOGIT, PolicySizes, SetPolicyNetwork

ROWS, ITEMS = 40, 7


def network_of(hidden: tuple[int, ...], bids: int, choices: int) -> SetPolicyNetwork:
    torch.manual_seed(0)
    sizes = PolicySizes(context=5, item=9, choices=choices, bids=bids, hidden=hidden)
    network = SetPolicyNetwork(sizes)
    network.soften(3e-4)  # logits as far apart as those of a trained policy
    return network


def observe(network: SetPolicyNetwork) -> dict[str, np.ndarray]:
    """Rows of which some allow nothing, one item, or everything."""
    sizes, random = network.sizes, np.random.default_rng(1)
    choices = ITEMS * sizes.choices
    allowed = random.random((ROWS, choices)) < random.random((ROWS, 1))
    allowed[0], allowed[1] = False, True
    allowed[2] = np.arange(choices) == choices - 1
    bids = random.random((ROWS, sizes.bids)) < 0.7
    seen = {
        "context": random.normal(size=(ROWS, sizes.context)),
        "items": random.normal(size=(ROWS, ITEMS, sizes.item)),
        "mask": np.concatenate([bids, allowed], axis=1),
    }
    return {part: column.astype(np.float32) for part, column in seen.items()}


@pytest.mark.parametrize("hidden", [(16, 16), (32,), (13, 13, 13)])
@pytest.mark.parametrize(("bids", "choices"), [(0, 1), (0, 3), (8, 2)])
def test_logits_are_those_of_torch(hidden: tuple[int, ...], bids: int, choices: int) -> None:
    network = network_of(hidden, bids, choices)
    seen = observe(network)
    with torch.no_grad():
        wanted = network({part: torch.from_numpy(column) for part, column in seen.items()}).numpy()
    assert can_compile(network)
    found = np.full_like(wanted, np.nan)
    writer_of(network)(seen, np.arange(ROWS), found)
    allowed = seen["mask"] == 1
    assert np.ptp(wanted[allowed]) > 1
    assert found[allowed] == pytest.approx(wanted[allowed], abs=1e-5)
    assert (found[~allowed] == MASKED_LOGIT).all()


def test_rows_do_not_depend_on_each_other_and_others_stay() -> None:
    network = network_of((16, 16), bids=0, choices=2)
    seen = observe(network)
    together, apart = (np.full_like(seen["mask"], 5.0) for _ in range(2))
    writer_of(network)(seen, np.arange(ROWS), together)
    for row in range(1, ROWS):
        writer_of(network)(seen, np.array([row]), apart)
    assert np.array_equal(apart[1:], together[1:])
    assert (apart[0] == 5.0).all()


def test_networks_that_look_further_and_wide_ones_stay_with_torch() -> None:
    sizes = {"context": 5, "item": 9, "choices": 1, "bids": 0, "hidden": (16,)}
    assert can_compile(SetPolicyNetwork(PolicySizes(**sizes | {"hidden": (WIDEST, WIDEST)})))
    assert not can_compile(SetPolicyNetwork(PolicySizes(**sizes | {"hidden": (WIDEST + 1,)})))
    assert not can_compile(SetPolicyNetwork(PolicySizes(**sizes | {"hidden": (16, 8)})))
    assert not can_compile(SetPolicyNetwork(PolicySizes(**sizes, network="attention")))
    assert not can_compile(SetPolicyNetwork(PolicySizes(**sizes, function=4, message_rounds=2)))
