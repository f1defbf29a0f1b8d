"""The RLModule of APPO: `SetPolicy` with a slow copy of the policy, from which it may not stray."""

from typing import Any

from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.utils import make_target_network
from ray.rllib.core.rl_module.apis import TARGET_NETWORK_ACTION_DIST_INPUTS, TargetNetworkAPI
from torch import Tensor, nn

from agents.learned.set_policy import SetPolicy


class TargetSetPolicy(SetPolicy, TargetNetworkAPI):
    """See `SetPolicy`; `target_policy` exists on learners alone."""

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
