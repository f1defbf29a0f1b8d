"""Policies on disk: what is saved acts the same, what is damaged or does not fit is refused."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from agents.learned.network import PolicySizes, SetPolicyNetwork
from agents.learned.policy_file import load_policy, save_policy
from env.base.errors import InputError
from env.learn.kind import Agent
from env.learn.workflow_window import FUNCTION_FEATURES
from tests.documents import refused_in_a_line

NAMES = {"context": ("slack", "rank"), "items": ("cpu", "memory", "load")}
SIZES = PolicySizes(context=2, item=3, choices=2, bids=8, hidden=(8, 8))
FUNCTIONS = FUNCTION_FEATURES[:3]


def environment(
    context: tuple[str, ...] = NAMES["context"],
    items: tuple[str, ...] = NAMES["items"],
    window: int = 0,
    choices: int = 2,
    layout: str = "server_types",
    tiers: tuple[float, ...] = (0.5, 1.0),
) -> Any:
    """A layout of an agent with these features, and what else a policy has to fit."""
    agent = Agent("server_x", "server", items, 5, choices, 8, window, context)
    return SimpleNamespace(
        agents={"server_x": agent}, config=SimpleNamespace(layout=layout), tiers=tiers
    )


def random_network(sizes: PolicySizes) -> SetPolicyNetwork:
    torch.manual_seed(3)
    network = SetPolicyNetwork(sizes)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_()
    return network


@pytest.fixture
def network() -> SetPolicyNetwork:
    return random_network(SIZES)


@pytest.fixture
def folder(network: SetPolicyNetwork, tmp_path: Path) -> Path:
    return saved(tmp_path, server=network)


def saved(tmp_path: Path, names: Any = NAMES, **networks: SetPolicyNetwork) -> Path:
    save_policy(
        tmp_path / "policy",
        networks=networks,
        features={"server": names},
        layout="server_types",
        memory_tiers=(0.5, 1.0),
        objective={"time_weight": 1.0, "cost_weight": 1.0},
        config={"seed": 0},
    )
    return tmp_path / "policy"


def observations(count: int, items: int, functions: int = 0) -> list[dict[str, np.ndarray]]:
    random = np.random.default_rng(0)
    made = []
    for _ in range(count):
        mask = (random.random(8 + 2 * items) < 0.7).astype(np.float32)
        mask[[0, 8]] = 1
        made.append(
            {
                "context": random.normal(size=2).astype(np.float32),
                "items": random.normal(size=(items, 3)).astype(np.float32),
                "mask": mask,
            }
        )
        if functions:
            linked = np.triu(random.random((functions, functions)) < 0.5, k=1)
            made[-1]["functions"] = random.normal(size=(functions, 3)).astype(np.float32)
            made[-1]["edges"] = linked.astype(np.float32)
    return made


@pytest.mark.parametrize("items", [1, 4, 30])
@pytest.mark.parametrize(
    "changes", [{}, {"network": "attention"}, {"function": 3, "message_rounds": 2}]
)
def test_a_loaded_policy_acts_as_the_saved_one(
    changes: dict[str, Any], items: int, tmp_path: Path
) -> None:
    network = random_network(replace(SIZES, **changes))
    functions = 6 if "function" in changes else 0
    names = NAMES | {"functions": FUNCTIONS} if functions else NAMES
    policy = load_policy(saved(tmp_path, names, server=network))
    for seen in observations(50, items, functions):
        logits = network({part: torch.from_numpy(one)[None] for part, one in seen.items()})[0]
        action = policy.act("server_small", seen)
        assert isinstance(action, np.ndarray)
        assert action.tolist() == [int(logits[:8].argmax()), int(logits[8:].argmax())]
        assert seen["mask"][action[0]] == seen["mask"][8 + action[1]] == 1


def test_a_policy_with_a_window_needs_an_environment_with_one(tmp_path: Path) -> None:
    network = random_network(replace(SIZES, function=3, message_rounds=2))
    policy = load_policy(saved(tmp_path, NAMES | {"functions": FUNCTIONS}, server=network))
    with pytest.raises(InputError, match=f"server needs the functions features {FUNCTIONS[0]}, "):
        policy.fitted(environment())
    fitted = policy.fitted(environment(window=4))
    for one in observations(20, 5, 4):
        others = np.full((4, len(FUNCTION_FEATURES) - 3), 9.0)
        action = fitted.act(
            "server_x", one | {"functions": np.concatenate([one["functions"], others], axis=1)}
        )
        assert np.array_equal(action, policy.act("server_x", one))


def test_a_policy_without_a_window_ignores_that_of_an_environment(folder: Path) -> None:
    policy = load_policy(folder)
    fitted = policy.fitted(environment(window=4))
    for one in observations(20, 5, 4):
        bare = {part: one[part] for part in ("context", "items", "mask")}
        assert np.array_equal(fitted.act("server_x", one), policy.act("server_x", bare))


def test_a_policy_saved_before_networks_had_kinds_pools(folder: Path) -> None:
    file = folder / "policy.json"
    description = json.loads(file.read_text())
    for later in ("network", "function", "message_rounds"):
        del description["networks"]["server"][later]
    file.write_text(json.dumps(description))
    assert load_policy(folder).networks["server"].sizes == SIZES


def test_whoever_may_read_the_description_may_read_the_weights(folder: Path) -> None:
    modes = {path.stat().st_mode for path in folder.iterdir()}
    assert modes == {(folder / "policy.json").stat().st_mode}


def test_a_policy_reads_a_later_environment_by_name(folder: Path) -> None:
    seen = observations(20, 5)
    policy = load_policy(folder)
    fitted = policy.fitted(environment(("new", "rank", "slack"), ("load", "new", "cpu", "memory")))
    for one in seen:
        wide = {
            "context": np.array([9, one["context"][1], one["context"][0]], np.float32),
            "items": np.stack(
                [one["items"][:, 2], np.full(5, 9), one["items"][:, 0], one["items"][:, 1]], axis=1
            ),
            "mask": one["mask"],
        }
        assert np.array_equal(fitted.act("server_x", wide), policy.act("server_x", one))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"layout": "placer"}, "agents.layout server_types, the environment has placer"),
        ({"tiers": (0.5, 0.9)}, "agents.memory_tiers [0.5, 1.0]"),
        ({"items": ("cpu", "load")}, "agent server needs the items features memory"),
        ({"context": ("rank",)}, "agent server needs the context features slack"),
        ({"choices": 3}, "server_x are 3 and 8, found [(2, 8)]"),
    ],
)
def test_a_policy_that_does_not_fit_is_refused(
    folder: Path, change: dict[str, Any], says: str
) -> None:
    with refused_in_a_line("some/policy: ", says):
        load_policy(folder).fitted(environment(**change), where="some/policy")


def test_server_types_never_seen_act_by_a_policy_of_their_kind(
    network: SetPolicyNetwork, tmp_path: Path
) -> None:
    other = SetPolicyNetwork(SIZES)
    other.load_state_dict({key: -tensor for key, tensor in network.state_dict().items()})
    policy = load_policy(saved(tmp_path, server_a=network, server_b=other)).fitted(environment())
    seen = observations(20, 5)
    actions = {
        name: [np.asarray(policy.act(f"server_{name}", one)).tolist() for one in seen]
        for name in "abz"
    }
    assert actions["z"] == actions["a"] != actions["b"]


def truncate(folder: Path) -> None:
    file = folder / "server.safetensors"
    file.write_bytes(file.read_bytes()[:-40])


def weights(change: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]) -> Any:
    def changed(folder: Path) -> None:
        save_file(change(load_file(folder / "server.safetensors")), folder / "server.safetensors")

    return changed


def edit(**changes: Any) -> Any:
    def change(folder: Path) -> None:
        file = folder / "policy.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | changes))

    return change


def link(name: str, to: str) -> Any:
    def change(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).symlink_to(to)

    return change


DAMAGES = {
    "a device for weights": (link("server.safetensors", "/dev/zero"), "a link that leads out"),
    "no weights": (lambda folder: (folder / "server.safetensors").unlink(), "no such file"),
    "weights cut short": (truncate, "damaged"),
    "weights of another precision": (
        weights(lambda arrays: {key: array.astype(float) for key, array in arrays.items()}),
        "holds float64, finite float32 is needed",
    ),
    "weights that are not finite": (
        weights(lambda arrays: arrays | {"bid.bias": np.full(8, np.nan, np.float32)}),
        "bid.bias holds float32, finite float32 is needed",
    ),
    "too few weights": (
        weights(lambda arrays: {key: a for key, a in arrays.items() if "bid" not in key}),
        r"Missing key\(s\) in state_dict: \"bid.weight\", \"bid.bias\"",
    ),
    "a later format": (edit(format=2), "format"),
    "a path for a name": (
        edit(networks={"../server": vars(SIZES)}),
        "networks",
    ),
    "another width": (
        edit(networks={"server": vars(SIZES) | {"hidden": [4]}}),
        "size mismatch for embed.0.weight",
    ),
    "fewer names than the network reads": (
        edit(features={"server": NAMES | {"items": NAMES["items"][:1]}}),
        "networks.server: context, item and function .* are not the numbers of feature names",
    ),
    "a name twice": (
        edit(features={"server": NAMES | {"items": ["cpu", "memory", "cpu"]}}),
        "features.server.items: one of .* is given twice",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_policy_is_refused_in_one_line(folder: Path, damage: str) -> None:
    change, says = DAMAGES[damage]
    change(folder)
    with pytest.raises(InputError, match=says) as caught:
        load_policy(folder)
    assert str(folder) in str(caught.value)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 1_200
