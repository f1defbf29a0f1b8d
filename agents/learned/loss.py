"""PPO's loss (arXiv:1707.06347, equation 9) for choices with masks, as RLlib defines it.

N rows; an action is one choice, or two where the agent also bids, each with a part of the A logits.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import torch
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


def as_sampled(batch: Mapping[str, Any], parts: Sequence[int]) -> dict[str, Any]:
    """The columns of a train batch that networks and loss need, whatever the policy is by now.

    In place of `actions` it has the logits of what was chosen, int64 (N, parts), in place of
    `action_dist_inputs` the logarithms of all probabilities (N, A).
    """
    columns = (Columns.OBS, Columns.ACTION_LOGP, Columns.ADVANTAGES, Columns.VALUE_TARGETS)
    actions = batch[Columns.ACTIONS].long()
    starts = torch.tensor([sum(parts[:number]) for number in range(len(parts))])
    return {
        **{column: batch[column] for column in columns},
        Columns.ACTIONS: actions.reshape(len(actions), len(parts)) + starts.to(actions.device),
        Columns.ACTION_DIST_INPUTS: log_softmax(batch[Columns.ACTION_DIST_INPUTS], parts),
    }


def ppo_losses(
    logits: Tensor,
    values: Tensor,
    sampled: Mapping[str, Any],
    parts: Sequence[int],
    config: PPOConfig,
    entropy_coeff: float,
) -> Tensor:
    """(MEANS,) means over the rows, for `named_losses`; only the first, the loss, has a gradient.

    Those of parts of the rows average, by their sizes, to those of all rows.

    Args:
        logits: (N, A) of the policy as it is now.
        values: (N,) of the critic as it is now.
        sampled: the rows, as `as_sampled` gives them.
        parts: as `parts_of` gives them.
        config: PPO's coefficients.
        entropy_coeff: weight of the entropy bonus.
    """
    advantages, targets = sampled[Columns.ADVANTAGES], sampled[Columns.VALUE_TARGETS]
    log_probabilities = log_softmax(logits, parts)
    logp = log_probabilities.gather(1, sampled[Columns.ACTIONS]).sum(dim=1)
    # What the mask forbids adds 0: its probability is 0 and its logarithm is finite.
    entropy = -(log_probabilities.exp() * log_probabilities).sum() / len(logits)

    ratio = torch.exp(logp - sampled[Columns.ACTION_LOGP])
    clipped = ratio.clamp(1 - config.clip_param, 1 + config.clip_param)
    policy = -torch.minimum(advantages * ratio, advantages * clipped).mean()

    errors = values - targets
    squares = errors.square()
    value = squares.clamp(max=config.vf_clip_param).mean()

    total = policy + config.vf_loss_coeff * value - entropy_coeff * entropy
    with torch.no_grad():
        before = sampled[Columns.ACTION_DIST_INPUTS]
        kl = (before.exp() * (before - log_probabilities)).sum() / len(logits)
        target = targets.mean(), targets.square().mean()
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
