"""The RLModules of agents: policies that score NUMA nodes, server types or tiers as a set."""

from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium as gym
import torch
from ray.rllib.algorithms.dqn.dqn_learner import QF_NEXT_PREDS, QF_PREDS, QF_TARGET_NEXT_PREDS
from ray.rllib.core.columns import Columns
from ray.rllib.core.distribution.torch.torch_distribution import TorchMultiCategorical
from ray.rllib.core.learner.utils import make_target_network
from ray.rllib.core.rl_module import apis
from ray.rllib.core.rl_module.torch import TorchRLModule
from ray.rllib.utils.schedules.scheduler import Scheduler
from torch import Tensor, nn

from agents.learned.network import MASKED_LOGIT, PolicySizes, SetPolicyNetwork, SetValueNetwork


class SetPolicy(TorchRLModule, apis.ValueFunctionAPI, apis.InferenceOnlyAPI):
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
        if sizes.bids:  # else RLlib's own for single choices
            self.action_dist_cls = TorchMultiCategorical.get_partial_dist_cls(
                input_lens=self.action_space.nvec.tolist()
            )
        self.policy = SetPolicyNetwork(sizes)
        self.value = SetValueNetwork(sizes, critic=self.observation_space["critic"].shape[0])

    def get_non_inference_attributes(self) -> list[str]:
        """The value network is for training alone."""
        return ["value"]

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Tensor]:
        return {Columns.ACTION_DIST_INPUTS: self.policy(batch[Columns.OBS])}

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> Tensor:
        """(N,) values, for PPO's advantages and loss."""
        return self.value(batch[Columns.OBS])


class TargetSetPolicy(SetPolicy, apis.TargetNetworkAPI):
    """APPO's: with a slow copy of the policy, from which it may not stray.

    Attributes:
        copied: the networks with copies, on learners alone: `target_policy` of `policy`.
    """

    copied: ClassVar[tuple[str, ...]] = ("policy",)

    def make_target_networks(self) -> None:
        """Copies the networks."""
        for name in self.copied:
            setattr(self, f"target_{name}", make_target_network(getattr(self, name)))

    def get_non_inference_attributes(self) -> list[str]:
        """The copies are for training alone, too."""
        return [
            *super().get_non_inference_attributes(),
            *(f"target_{name}" for name in self.copied),
        ]

    def get_target_network_pairs(self) -> list[tuple[nn.Module, nn.Module]]:
        """Each network with its copy."""
        return [(getattr(self, name), getattr(self, f"target_{name}")) for name in self.copied]

    def forward_target(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        """Logits of the copy."""
        return {apis.TARGET_NETWORK_ACTION_DIST_INPUTS: self.target_policy(batch[Columns.OBS])}


class SetQNetwork(TargetSetPolicy, apis.QNetAPI):
    """Dueling Q-values (Wang et al. 2016, arXiv:1511.06581) of agents with Discrete actions.

    Q(s, a) = V(s) + A(s, a) - mean of A(s, .) over what the mask allows; what it forbids has
    `MASKED_LOGIT`. `policy` gives A, whose best action is that of Q: acting, and the files that
    evaluation reads, need nothing else. V, on learners alone, may read `critic`.
    `model_config` holds what that of `SetPolicy` does, and `epsilon`, a schedule over environment
    steps.
    """

    copied = ("policy", "value")

    def setup(self) -> None:
        """Builds the networks and the schedule of exploration."""
        super().setup()
        self.epsilon = Scheduler(self.model_config["epsilon"], framework="torch")

    def compute_q_values(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        """(N, A) values of the observations."""
        return {QF_PREDS: _dueling(self.policy, self.value, batch[Columns.OBS])}

    def forward_target(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        """(N, A) values by the copies."""
        return {QF_PREDS: _dueling(self.target_policy, self.target_value, batch[Columns.OBS])}

    def _forward_exploration(
        self, batch: dict[str, Any], t: int = 0, **kwargs: Any
    ) -> dict[str, Tensor]:
        """Epsilon-greedy: a share of the actions is drawn uniformly from what is allowed."""
        best = self.policy(batch[Columns.OBS]).argmax(dim=-1)
        random = torch.multinomial(batch[Columns.OBS]["mask"], num_samples=1).squeeze(-1)
        explore = torch.rand(best.shape) < self.epsilon.update(t)
        return {Columns.ACTIONS: torch.where(explore, random, best)}

    def _forward_train(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Tensor]:
        following = {Columns.OBS: batch[Columns.NEXT_OBS]}
        return {
            QF_PREDS: self.compute_q_values(batch)[QF_PREDS],
            QF_NEXT_PREDS: self.compute_q_values(following)[QF_PREDS],
            QF_TARGET_NEXT_PREDS: self.forward_target(following)[QF_PREDS],
        }


def _dueling(policy: nn.Module, value: nn.Module, seen: dict[str, Tensor]) -> Tensor:
    allowed = seen["mask"] > 0.5
    advantages = policy(seen).masked_fill(~allowed, 0.0)
    mean = advantages.sum(dim=-1, keepdim=True) / allowed.sum(dim=-1, keepdim=True).clamp(min=1)
    return (value(seen).unsqueeze(-1) + advantages - mean).masked_fill(~allowed, MASKED_LOGIT)


def policy_sizes(
    observations: gym.spaces.Dict, actions: gym.Space[Any], model: Mapping[str, Any]
) -> PolicySizes:
    """The sizes of a policy's weights, from an agent's spaces and the `model_config`."""
    shapes = {name: space.shape or () for name, space in observations.items()}
    items, features = shapes["items"]
    function = shapes["functions"][1] if "functions" in shapes else 0
    bids = int(actions.nvec[0]) if isinstance(actions, gym.spaces.MultiDiscrete) else 0
    return PolicySizes(
        context=shapes["context"][0],
        item=features,
        choices=(shapes["mask"][0] - bids) // items,
        bids=bids,
        hidden=tuple(model["hidden"]),
        network=model["network"],
        function=function,
        message_rounds=model["message_rounds"] if function else 0,
    )
