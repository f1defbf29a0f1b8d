"""The RLModule of every agent: a policy that scores NUMA nodes, server types or tiers as a set."""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
from ray.rllib.core.columns import Columns
from ray.rllib.core.distribution.torch.torch_distribution import (
    TorchCategorical,
    TorchMultiCategorical,
)
from ray.rllib.core.learner.utils import make_target_network
from ray.rllib.core.rl_module.apis import (
    TARGET_NETWORK_ACTION_DIST_INPUTS,
    InferenceOnlyAPI,
    TargetNetworkAPI,
    ValueFunctionAPI,
)
from ray.rllib.core.rl_module.torch import TorchRLModule
from torch import Tensor, nn

from agents.learned.network import PolicySizes, SetPolicyNetwork, SetValueNetwork


class SetPolicy(TorchRLModule, ValueFunctionAPI, InferenceOnlyAPI):
    """Action masks inside, exact: what the mask forbids has probability 0.

    Observations are a `Dict` of `context`, `items`, `mask` and `critic`, with a window of the
    workflow also `functions` and `edges`; `model_config` holds `hidden`, the widths of the hidden
    layers, `network`, one of `Network`, and `message_rounds`. Actions are Discrete(M*K), or
    MultiDiscrete([B, M*K]) for agents that also bid. Only the value network, which exists on
    learners alone, reads `critic`.
    """

    def setup(self) -> None:
        """Builds the networks; RLlib removes `value` where the module only infers."""
        sizes = policy_sizes(self.observation_space, self.action_space, self.model_config)
        if isinstance(self.action_space, gym.spaces.MultiDiscrete):
            self.action_dist_cls = TorchMultiCategorical.get_partial_dist_cls(
                input_lens=[int(n) for n in self.action_space.nvec]
            )
        else:
            self.action_dist_cls = TorchCategorical
        self.policy = SetPolicyNetwork(sizes)
        self.value = SetValueNetwork(sizes, critic=self.observation_space["critic"].shape[0])

    def get_non_inference_attributes(self) -> list[str]:
        """The value network is for training alone."""
        return ["value"]

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Tensor]:
        return {Columns.ACTION_DIST_INPUTS: self.logits(batch[Columns.OBS])}

    def logits(self, seen: Mapping[str, Tensor]) -> Tensor:
        """(N, A) logits of N observations, without RLlib's ceremony around forward passes."""
        logits: Tensor = self.policy(seen)
        return logits

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> Tensor:
        """(N,) values, for PPO's advantages and loss."""
        values: Tensor = self.value(batch[Columns.OBS])
        return values


class TargetSetPolicy(SetPolicy, TargetNetworkAPI):
    """APPO's: with a slow copy of the policy, on learners alone, from which it may not stray."""

    def make_target_networks(self) -> None:
        """Copies the policy."""
        self.target_policy = make_target_network(self.policy)

    def get_non_inference_attributes(self) -> list[str]:
        """The copy is for training alone, too."""
        return [*super().get_non_inference_attributes(), "target_policy"]

    def get_target_network_pairs(self) -> list[tuple[nn.Module, nn.Module]]:
        """What is copied where."""
        return [(self.policy, self.target_policy)]

    def forward_target(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        """Logits of the copy."""
        return {TARGET_NETWORK_ACTION_DIST_INPUTS: self.target_policy(batch[Columns.OBS])}


def policy_sizes(
    observations: gym.spaces.Dict, actions: gym.Space[Any], model: Mapping[str, Any]
) -> PolicySizes:
    """The sizes of a policy's weights, from an agent's spaces and the `model_config`."""
    seen = {name: space.shape or () for name, space in observations.items()}
    count, features = seen["items"]
    function = seen["functions"][1] if "functions" in seen else 0
    bids = int(actions.nvec[0]) if isinstance(actions, gym.spaces.MultiDiscrete) else 0
    return PolicySizes(
        context=seen["context"][0],
        item=features,
        choices=(seen["mask"][0] - bids) // count,
        bids=bids,
        hidden=tuple(model["hidden"]),
        network=model["network"],
        function=function,
        message_rounds=model["message_rounds"] if function else 0,
    )
