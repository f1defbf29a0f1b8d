"""From sampled columns to train batches: values, generalised advantage estimation, tensors."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module import MultiRLModule
from ray.rllib.core.rl_module.torch import TorchRLModule
from torch import Tensor

from agents.learned.sampler import ENDED, OPEN, Chunk, Steps
from env.base.jit import compiled

# Rows of one forward pass for values: their activations stay in the processor's cache.
VALUE_ROWS = 2048
# The least standard deviation that advantages are divided by, as in RLlib.
LEAST_DEVIATION = 1e-4


class ChunksToBatch(ConnectorV2):
    """Turns [Chunk, ...] into a train batch for every policy; the whole learner pipeline.

    A batch has a row for every row of the chunks. Those that only bootstrap are False in
    `loss_mask`, as in batches that RLlib makes of episodes.
    """

    def __init__(self, *spaces: gym.Space[Any] | None, gamma: float, gae_lambda: float) -> None:
        """Args: what RLlib hands every connector; discount; lambda of the estimation."""
        super().__init__(*spaces)
        self.gamma, self.gae_lambda = gamma, gae_lambda

    def __call__(
        self, *, rl_module: MultiRLModule, episodes: Sequence[Chunk], **kwargs: Any
    ) -> dict[str, dict[str, Any]]:
        """The batch of every policy that has steps, by policy."""
        batches = {}
        for policy, module in rl_module.items():
            parts = [chunk.modules[policy] for chunk in episodes if policy in chunk.modules]
            if any(map(len, parts)):
                batches[policy] = self._batch(module.unwrapped(), Steps.joined(parts))
        return batches

    def _batch(self, module: TorchRLModule, steps: Steps) -> dict[str, Any]:
        device = next(module.parameters()).device
        obs = {name: _tensor(column, device) for name, column in steps.obs.items()}
        values, estimates = values_of(module, obs), np.empty(len(steps))
        advantages(steps.rewards, steps.following, values, self.gamma, self.gae_lambda, estimates)
        trained = steps.following != OPEN
        columns = {
            Columns.ACTIONS: steps.actions,
            Columns.ACTION_LOGP: steps.action_logp,
            Columns.ACTION_DIST_INPUTS: steps.action_dist_inputs,
            Columns.ADVANTAGES: standardised(estimates, trained).astype(np.float32),
            Columns.VALUE_TARGETS: (estimates + values).astype(np.float32),
            Columns.LOSS_MASK: trained,
        }
        tensors = {name: _tensor(column, device) for name, column in columns.items()}
        return {Columns.OBS: obs, **tensors}


def values_of(module: TorchRLModule, obs: dict[str, Tensor]) -> np.ndarray:
    """(R,) float64 values of R observations by the module's critic."""
    parts = zip(*(column.split(VALUE_ROWS) for column in obs.values()), strict=True)
    with torch.no_grad():
        values = [
            module.compute_values({Columns.OBS: dict(zip(obs, part, strict=True))})
            for part in parts
        ]
    return torch.cat(values).cpu().numpy().astype(np.float64)


def standardised(advantages: np.ndarray, trained: np.ndarray) -> np.ndarray:
    """Advantages with mean 0 and standard deviation 1 over the rows trained on; 0 elsewhere."""
    kept = advantages[trained]
    if not len(kept):
        return np.zeros_like(advantages)
    return np.where(trained, (advantages - kept.mean()) / max(LEAST_DEVIATION, kept.std()), 0.0)


@compiled
def advantages(rewards, following, values, gamma, gae_lambda, out) -> None:
    """Generalised advantage estimation (arXiv:1506.02438, equation 16), last row first.

    A(t) = delta(t) + gamma * lambda * A(t+1), delta(t) = r(t) + gamma * V(t+1) - V(t), where t+1
    is the row that follows; V and A are 0 after the end, and A of an open row is 0.

    Args:
        rewards: (R,) of each step.
        following: (R,) as in `Steps`.
        values: (R,) of the observations.
        gamma: discount.
        gae_lambda: lambda.
        out: (R,) is filled with the advantages.
    """
    for row in range(len(rewards) - 1, -1, -1):
        follower = following[row]
        if follower == OPEN:
            out[row] = 0.0
        elif follower == ENDED:
            out[row] = rewards[row] - values[row]
        else:
            delta = rewards[row] + gamma * values[follower] - values[row]
            out[row] = delta + gamma * gae_lambda * out[follower]


def _tensor(column: np.ndarray, device: torch.device) -> Tensor:
    # Ray hands out what came from other processes read-only, which torch does not like.
    return torch.from_numpy(np.require(column, requirements="W")).to(device)
