"""The RLModule of DQN: Q-values over sets of choices, masked; greedy actions need no critic."""

from typing import Any

import torch
from ray.rllib.algorithms.dqn.default_dqn_rl_module import (
    QF_NEXT_PREDS,
    QF_PREDS,
    QF_TARGET_NEXT_PREDS,
)
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.utils import make_target_network
from ray.rllib.core.rl_module.apis import QNetAPI, TargetNetworkAPI
from ray.rllib.utils.schedules.scheduler import Scheduler
from torch import Tensor, nn

from agents.learned.network import MASKED_LOGIT
from agents.learned.set_policy import SetPolicy


class SetQNetwork(SetPolicy, QNetAPI, TargetNetworkAPI):
    """Dueling Q-values (Wang et al. 2016, arXiv:1511.06581) of agents with Discrete actions.

    Q(s, a) = V(s) + A(s, a) - mean of A(s, .) over what the mask allows; what it forbids has
    `MASKED_LOGIT`. `policy` gives A, whose best action is that of Q: acting, and the files that
    evaluation reads, need nothing else. V, on learners alone, may read `critic`.
    `model_config` holds what that of `SetPolicy` does, and `epsilon`, a schedule over environment
    steps.
    """

    def setup(self) -> None:
        """Builds the networks and the schedule of exploration."""
        super().setup()
        self.epsilon = Scheduler(self.model_config["epsilon"], framework="torch")

    def make_target_networks(self) -> None:
        """Copies both networks."""
        self.target_policy = make_target_network(self.policy)
        self.target_value = make_target_network(self.value)

    def get_non_inference_attributes(self) -> list[str]:
        """V and the copies are for training alone."""
        return [*super().get_non_inference_attributes(), "target_policy", "target_value"]

    def get_target_network_pairs(self) -> list[tuple[nn.Module, nn.Module]]:
        """What is copied where."""
        return [(self.policy, self.target_policy), (self.value, self.target_value)]

    def compute_q_values(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        """(N, A) values of the observations."""
        return {QF_PREDS: _dueling(self.policy, self.value, batch[Columns.OBS])}

    def forward_target(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        """(N, A) values by the copies."""
        return {QF_PREDS: _dueling(self.target_policy, self.target_value, batch[Columns.OBS])}

    def _forward_inference(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Tensor]:
        return {Columns.ACTIONS: self.logits(batch[Columns.OBS]).argmax(dim=-1)}

    def _forward_exploration(
        self, batch: dict[str, Any], t: int = 0, **kwargs: Any
    ) -> dict[str, Tensor]:
        """Epsilon-greedy: a share of the actions is drawn uniformly from what is allowed."""
        best = self.logits(batch[Columns.OBS]).argmax(dim=-1)
        allowed = batch[Columns.OBS]["mask"]
        random = torch.multinomial(allowed, num_samples=1).squeeze(-1)
        explore = torch.rand(best.shape) < self.epsilon.update(t)
        return {Columns.ACTIONS: torch.where(explore, random, best)}

    def _forward_train(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Tensor]:
        next_seen = {Columns.OBS: batch[Columns.NEXT_OBS]}
        return {
            QF_PREDS: self.compute_q_values(batch)[QF_PREDS],
            QF_NEXT_PREDS: self.compute_q_values(next_seen)[QF_PREDS],
            QF_TARGET_NEXT_PREDS: self.forward_target(next_seen)[QF_PREDS],
        }


def _dueling(policy: nn.Module, value: nn.Module, seen: dict[str, Tensor]) -> Tensor:
    allowed = seen["mask"] > 0.5
    advantages = policy(seen).masked_fill(~allowed, 0.0)
    mean = advantages.sum(dim=-1, keepdim=True) / allowed.sum(dim=-1, keepdim=True).clamp(min=1)
    return (value(seen).unsqueeze(-1) + advantages - mean).masked_fill(~allowed, MASKED_LOGIT)
