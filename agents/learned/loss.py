"""PPO's loss (arXiv:1707.06347, equation 9) for choices with masks, as RLlib defines it.

N rows; an action is one choice, or two where the agent also bids, each with a part of the A logits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import gymnasium as gym
import torch
import tree
from ray.rllib.algorithms.ppo.ppo import (
    LEARNER_RESULTS_KL_KEY,
    LEARNER_RESULTS_VF_EXPLAINED_VAR_KEY,
    LEARNER_RESULTS_VF_LOSS_UNCLIPPED_KEY,
    PPOConfig,
)
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.learner import ENTROPY_KEY, POLICY_LOSS_KEY, VF_LOSS_KEY, Learner
from torch import Tensor

# Variance of targets below which a critic has nothing to explain.
LEAST_VARIANCE = 1e-6
# Means over rows that `ppo_losses` gives.
MEANS = 9


@dataclass(frozen=True)
class Sampled:
    """N rows as they were sampled: what networks and loss need of them, tensors made once.

    Attributes:
        obs: of the networks, by name.
        chosen: (N, parts) int64, the logits of the action.
        logp: (N,) of the action.
        log_probabilities: (N, A) of all choices.
        advantages: (N,), standardised.
        targets: (N,) of the values.
    """

    obs: dict[str, Tensor]
    chosen: Tensor
    logp: Tensor
    log_probabilities: Tensor
    advantages: Tensor
    targets: Tensor

    @classmethod
    def of(cls, batch: Mapping[str, Any], parts: Sequence[int]) -> Self:
        """From a train batch; `parts` as `parts_of` gives them."""
        actions = batch[Columns.ACTIONS].long()
        starts = torch.tensor([sum(parts[:number]) for number in range(len(parts))])
        return cls(
            obs=dict(batch[Columns.OBS]),
            chosen=actions.reshape(len(actions), len(parts)) + starts.to(actions.device),
            logp=batch[Columns.ACTION_LOGP],
            log_probabilities=log_softmax(batch[Columns.ACTION_DIST_INPUTS], parts),
            advantages=batch[Columns.ADVANTAGES],
            targets=batch[Columns.VALUE_TARGETS],
        )

    def rows(self, index: Tensor) -> "Sampled":
        """The rows of an index."""
        return Sampled(
            **tree.map_structure(lambda column: column.index_select(0, index), vars(self))
        )


def ppo_losses(
    logits: Tensor,
    values: Tensor,
    sampled: Sampled,
    parts: Sequence[int],
    config: PPOConfig,
    entropy_coeff: float,
) -> Tensor:
    """(MEANS,) means over the rows, for `named_losses`; only the first, the loss, has a gradient.

    Those of parts of the rows average, by their sizes, to those of all rows.

    Args:
        logits: (N, A) of the policy as it is now.
        values: (N,) of the critic as it is now.
        sampled: the rows as they were sampled.
        parts: as `parts_of` gives them.
        config: PPO's coefficients.
        entropy_coeff: weight of the entropy bonus.
    """
    log_probabilities = log_softmax(logits, parts)
    logp = log_probabilities.gather(1, sampled.chosen).sum(dim=1)
    # What the mask forbids adds 0: its probability is 0 and its logarithm is finite.
    entropy = -(log_probabilities.exp() * log_probabilities).sum() / len(logits)

    ratio = torch.exp(logp - sampled.logp)
    clipped = ratio.clamp(1 - config.clip_param, 1 + config.clip_param)
    policy = -torch.minimum(sampled.advantages * ratio, sampled.advantages * clipped).mean()

    errors = values - sampled.targets
    squares = errors.square()
    value = squares.clamp(max=config.vf_clip_param).mean()

    total = policy + config.vf_loss_coeff * value - entropy_coeff * entropy
    with torch.no_grad():
        before = sampled.log_probabilities
        kl = (before.exp() * (before - log_probabilities)).sum() / len(logits)
        target = sampled.targets.mean(), sampled.targets.square().mean()
        others = policy, value, entropy, kl, squares.mean(), errors.mean(), *target
    return torch.stack([total, *(each.detach() for each in others)])


def named_losses(means: Tensor) -> dict[str, float]:
    """What RLlib reports, under its names, from what `ppo_losses` gives.

    The variance that the critic explains is one of all rows: it is no mean of those of parts.
    """
    total, policy, value, entropy, kl, squares, error, target, target_squares = means.tolist()
    variance = max(LEAST_VARIANCE, target_squares - target**2)
    return {
        Learner.TOTAL_LOSS_KEY: total,
        POLICY_LOSS_KEY: policy,
        VF_LOSS_KEY: value,
        ENTROPY_KEY: entropy,
        LEARNER_RESULTS_KL_KEY: kl,
        LEARNER_RESULTS_VF_LOSS_UNCLIPPED_KEY: squares,
        LEARNER_RESULTS_VF_EXPLAINED_VAR_KEY: max(-1.0, 1 - (squares - error**2) / variance),
    }


def parts_of(actions: gym.Space[Any]) -> tuple[int, ...]:
    """The numbers of choices of each part of an action; in all, A."""
    if isinstance(actions, gym.spaces.MultiDiscrete):
        return tuple(int(number) for number in actions.nvec)
    assert isinstance(actions, gym.spaces.Discrete)
    return (int(actions.n),)


def log_softmax(logits: Tensor, parts: Sequence[int]) -> Tensor:
    """(N, A) logarithms of the probabilities, normalised over each part."""
    if len(parts) == 1:
        return logits.log_softmax(dim=1)
    return torch.cat([part.log_softmax(dim=1) for part in logits.split(list(parts), dim=1)], dim=1)
