"""The policy network: masks, independence of the number of items, and who reads the critic."""

from typing import Any

import numpy as np
import pytest
import torch
from ray.rllib.core.columns import Columns

from agents.learned.network import MASKED_LOGIT, pool
from agents.learned.set_policy import SetPolicy
from tests.agents.learned.toy_env import ToyEnv

LAYOUTS = {"placer": "placer", "hierarchical": "memory", "server_types": "server_a"}


NETWORKS = ("pooling", "attention")


def build(
    layout: str,
    network: str = "pooling",
    *,
    items: int = 6,
    choices: int = 3,
    window: int = 0,
    inference: bool = False,
    kind: type[SetPolicy] = SetPolicy,
    **model: Any,
) -> Any:
    env = ToyEnv({"layout": layout, "items": items, "choices": choices, "window": window})
    agent = LAYOUTS[layout]
    torch.manual_seed(0)
    return kind(
        observation_space=env.observation_spaces[agent],
        action_space=env.action_spaces[agent],
        inference_only=inference,
        model_config={"hidden": [16, 16], "network": network, "message_rounds": 2, **model},
    )


def observe(
    layout: str, count: int, *, items: int = 6, choices: int = 3, window: int = 0
) -> dict[str, torch.Tensor]:
    """`count` observations of the layout's agent, with random masks."""
    random = np.random.default_rng(1)
    env = ToyEnv({"layout": layout, "items": items, "choices": choices, "window": window})
    env.reset(seed=2)
    seen = [env._one() for _ in range(count)]
    for one in seen:
        allowed = one["mask"][env.bids :]
        allowed[random.random(len(allowed)) < 0.4] = 0
        allowed[random.integers(0, len(allowed) - choices)] = 1
    return {key: torch.from_numpy(np.stack([one[key] for one in seen])) for key in seen[0]}


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_masked_action_has_probability_zero_and_is_never_sampled(
    layout: str, network: str
) -> None:
    module, seen = build(layout, network), observe(layout, 50)
    if layout == "server_types":
        seen["mask"][:, 1:8] = 0  # may only bid 0
    with torch.no_grad():
        for parameter in module.policy.parameters():
            parameter.mul_(20)
    logits = module.forward_exploration({Columns.OBS: seen})[Columns.ACTION_DIST_INPUTS]
    distribution = module.get_exploration_action_dist_cls().from_logits(logits)
    bids = module.policy.sizes.bids
    assert torch.isfinite(logits).all()
    columns = [slice(0, bids), slice(bids, None)] if bids else [slice(None)]
    for part in columns:
        probabilities = torch.distributions.Categorical(logits=logits[:, part]).probs
        assert (probabilities[seen["mask"][:, part] == 0] == 0).all()
    for _ in range(200):
        actions = distribution.sample()
        for part, chosen in zip(columns, actions.reshape(50, -1).T, strict=True):
            assert (seen["mask"][:, part][torch.arange(50), chosen] == 1).all()
    assert torch.isfinite(distribution.entropy()).all()
    assert torch.isfinite(distribution.kl(distribution)).all()
    assert torch.isfinite(distribution.logp(actions)).all()


@pytest.mark.parametrize("network", NETWORKS)
def test_nothing_allowed_gives_finite_logits_and_gradients(network: str) -> None:
    module, seen = build("placer", network), observe("placer", 2)
    seen["mask"][:] = 0
    logits = module.forward_train({Columns.OBS: seen})[Columns.ACTION_DIST_INPUTS]
    assert (logits == MASKED_LOGIT).all()
    logits.sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in module.policy.parameters())
    assert torch.isfinite(module.compute_values({Columns.OBS: seen})).all()


@pytest.mark.parametrize("network", NETWORKS)
def test_padding_and_order_of_items_change_nothing(network: str) -> None:
    module, seen = build("placer", network, choices=1), observe("placer", 8, choices=1)
    before = module.forward_inference({Columns.OBS: seen})[Columns.ACTION_DIST_INPUTS]
    values = module.compute_values({Columns.OBS: seen})

    order = torch.tensor([4, 2, 0, 5, 1, 3])
    padded = {
        **seen,
        "items": torch.cat([seen["items"][:, order], torch.full((8, 2, 4), 77.0)], dim=1),
        "mask": torch.cat([seen["mask"][:, order], torch.zeros(8, 2)], dim=1),
    }
    after = module.forward_inference({Columns.OBS: padded})[Columns.ACTION_DIST_INPUTS]
    torch.testing.assert_close(after[:, :6], before[:, order])
    torch.testing.assert_close(module.compute_values({Columns.OBS: padded}), values)


def test_attention_lets_a_choice_depend_on_every_allowed_item() -> None:
    module, seen = build("placer", "attention"), observe("placer", 8)
    seen["mask"] = torch.ones_like(seen["mask"])
    seen["mask"][:, 12:15] = 0  # all choices of item 4
    items = seen["items"].requires_grad_()
    first = module.policy.embed  # what reaches the block; pooling, after it, mixes items as well
    embedded = first(torch.cat([items, seen["context"].unsqueeze(1).expand(-1, 6, -1)], dim=-1))
    present = torch.tensor([1.0, 1, 1, 1, 0, 1]).expand(8, 6)
    module.policy.attend(embedded, present)[:, 0].sum().backward()
    reached = items.grad.abs().sum(dim=(0, 2)) > 0
    assert reached.tolist() == [True, True, True, True, False, True]


def reached_functions(edges: list[tuple[int, int]]) -> dict[str, list[int]]:
    """Which of five functions, linked by edges, the logits and the value depend on."""
    module, seen = build("placer", window=5), observe("placer", 8, window=5)
    seen["edges"][:] = 0
    for source, target in edges:
        seen["edges"][:, source, target] = 1
    found = {}
    for name, asked in (("logits", module.policy), ("values", lambda s: module.value(s))):
        functions = seen["functions"].clone().requires_grad_()
        asked({**seen, "functions": functions}).sum().backward()
        reached = functions.grad.abs().sum(dim=(0, 2)) > 0
        found[name] = torch.nonzero(reached).flatten().tolist()
    return found


@pytest.mark.parametrize(
    ("edges", "reached"),
    [
        ([], [0]),
        ([(0, 1), (1, 2), (2, 3)], [0, 1, 2]),  # a chain: successors, as far as two rounds reach
        ([(0, 1), (2, 1), (3, 2)], [0, 1, 2]),  # what its successor waits for besides
    ],
)
def test_a_choice_depends_on_the_functions_around_in_the_dag(
    edges: list[tuple[int, int]], reached: list[int]
) -> None:
    assert reached_functions(edges) == {"logits": reached, "values": reached}


def test_the_order_of_other_functions_and_padding_change_nothing() -> None:
    module, seen = build("placer", window=5), observe("placer", 8, window=5)
    order = torch.tensor([0, 3, 1, 4, 2])
    edges = torch.zeros(8, 7, 7)
    edges[:, :5, :5] = seen["edges"][:, order][:, :, order]
    absurd = torch.full((8, 2, 5), 77.0)
    padded = {
        **seen,
        "functions": torch.cat([seen["functions"][:, order], absurd], dim=1),
        "edges": edges,
    }
    torch.testing.assert_close(module.policy(padded), module.policy(seen))
    torch.testing.assert_close(module.value(padded), module.value(seen))


def test_only_the_value_reads_the_critic_features() -> None:
    module, seen = build("server_types"), observe("server_types", 4)
    other = {**seen, "critic": seen["critic"] + 1}
    first, second = (module.forward_train({Columns.OBS: each}) for each in (seen, other))
    assert torch.equal(first[Columns.ACTION_DIST_INPUTS], second[Columns.ACTION_DIST_INPUTS])
    values = [module.compute_values({Columns.OBS: each}) for each in (seen, other)]
    assert not torch.isclose(values[0], values[1]).any()


def test_the_critic_stays_with_the_learner() -> None:
    acting = build("placer", inference=True)
    assert not any(key.startswith("value") for key in acting.state_dict())
    learning = build("placer")
    acting.set_state(learning.get_state(inference_only=True))
    for key, tensor in acting.state_dict().items():
        assert torch.equal(tensor, learning.state_dict()[key])


def test_the_pool_and_its_gradient_are_those_of_plain_torch() -> None:
    """With padding, a row where nothing is present, and items that tie for the maximum."""
    torch.manual_seed(0)
    items = torch.randn(20, 5, 3)
    items[:, 3] = items[:, 1]
    present = (torch.rand(20, 5) > 0.3).float()
    present[4] = 0
    keep = present.bool().unsqueeze(-1)
    first, second = (items.clone().requires_grad_() for _ in range(2))
    mean = first.masked_fill(~keep, 0).sum(1) / present.sum(1, keepdim=True).clamp(min=1)
    highest = first.masked_fill(~keep, -1e30).amax(1).masked_fill(~keep.any(1), 0)
    expected, found = torch.cat([mean, highest], dim=-1), pool(second, present)
    torch.testing.assert_close(found, expected)
    weights = torch.randn(20, 6)
    (expected * weights).sum().backward()
    (found * weights).sum().backward()
    torch.testing.assert_close(second.grad, first.grad)
