"""RLlib's learners over a run's budget: PPO's, lean, and those of APPO and IMPALA, never silent.

PPO's loss (arXiv:1707.06347, equation 9) is for choices with masks, as RLlib defines it, of N rows.
An action is one choice, or two where the agent also bids, each with a part of the A logits.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gymnasium as gym
import torch
import tree
from ray.rllib.algorithms.appo.torch.appo_torch_learner import APPOTorchLearner
from ray.rllib.algorithms.impala.impala_learner import IMPALALearner
from ray.rllib.algorithms.impala.torch.impala_torch_learner import IMPALATorchLearner
from ray.rllib.algorithms.ppo import ppo
from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.learner import ENTROPY_KEY, POLICY_LOSS_KEY, VF_LOSS_KEY, Learner
from ray.rllib.core.learner.training_data import TrainingData
from ray.rllib.policy.sample_batch import MultiAgentBatch
from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED_LIFETIME
from torch import Tensor

from agents.learned.env_runner import FastPPOConfig

# Schedules are functions of the share of the budget that is used, in units of 1 / PROGRESS_STEPS,
# because RLlib's schedules want integer steps and the length of a run may be given in minutes.
PROGRESS_STEPS = 1_000_000
# The part of the learner's state that holds where its stream of shuffles is.
SHUFFLE = "shuffle"
# A behaviour log-probability so high that V-trace's ratio of probabilities is 0 in float32.
NO_WEIGHT = 50.0
# Variance of targets below which a critic has nothing to explain.
LEAST_VARIANCE = 1e-6
# Means over rows that `ppo_losses` gives.
MEANS = 9


class OverBudget(Learner):
    """What learners get whose learning rate and entropy follow the budget of the run.

    RLlib moves both by environment steps, after every update.
    """

    _step = 0

    def set_progress(self, progress: float) -> None:
        """Moves learning rates and entropy coefficients to `progress` (0 to 1) of the budget."""
        self._step = round(progress * PROGRESS_STEPS)
        for optimizer, schedule in self._optimizer_lr_schedules.items():
            self._set_optimizer_lr(optimizer, lr=schedule.update(timestep=self._step))
        for module_id in self._module_optimizers:
            self.entropy_coeff_schedulers_per_module[module_id].update(timestep=self._step)

    def before_gradient_based_update(self, *, timesteps: dict[str, Any]) -> None:
        """As RLlib's, by the budget."""
        timesteps = {**timesteps, NUM_ENV_STEPS_SAMPLED_LIFETIME: self._step}
        super().before_gradient_based_update(timesteps=timesteps)

    def after_gradient_based_update(self, *, timesteps: dict[str, Any]) -> None:
        """As RLlib's, by the budget."""
        timesteps = {**timesteps, NUM_ENV_STEPS_SAMPLED_LIFETIME: self._step}
        super().after_gradient_based_update(timesteps=timesteps)


class BudgetPPOLearner(OverBudget, PPOTorchLearner):
    """PPO whose modules stop early, and whose schedules run over a budget of any kind.

    Early stop: in one update, a module takes no further minibatch once its policy's mean KL
    divergence from the one that sampled is above `kl_target`. It is in place of RLlib's adaptive
    penalty, whose coefficient is in no checkpoint.

    RLlib cuts minibatches of all modules side by side, and checks and logs at each. Here RLlib
    sees one, the whole batch, and `_update` takes the gradient steps: module after module, every
    epoch a new shuffle by the seed, cut in equal minibatches of at most `minibatch_size` rows.
    Threads share the rows of every minibatch, which is faster than torch's own threads, which share
    every operation. With several learners, every step is that of the mean over the minibatches of
    all of them.
    """

    config: FastPPOConfig

    def build(self) -> None:
        """Builds the learner, its stream of shuffles and its threads."""
        super().build()
        for optimizer in self._named_optimizers.values():
            for group in optimizer.param_groups:
                group["fused"] = True  # a step of Adam is one operation
        self._shuffle = torch.Generator()
        self._shuffle.manual_seed((self.config.seed or 0) + self._learner_index)
        self._threads = ThreadPoolExecutor(
            self.config.threads_per_learner, "learner", torch.set_num_threads, (1,)
        )

    def get_state(
        self, components: Any = None, *, not_components: Any = None, **kwargs: Any
    ) -> dict[str, Any]:
        """RLlib's state, and where the stream of shuffles is."""
        state = super().get_state(components, not_components=not_components, **kwargs)
        if self._check_component(SHUFFLE, components, not_components):
            state[SHUFFLE] = self._shuffle.get_state().numpy()
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Goes on where `get_state` was."""
        super().set_state(state)
        if SHUFFLE in state:
            self._shuffle.set_state(torch.from_numpy(state[SHUFFLE].copy()))

    def _make_modules_ddp_if_necessary(self) -> None:
        """Several learners start with the weights of the first; equal steps keep them equal."""
        if self.distributed:
            for parameter in self._params.values():
                torch.distributed.broadcast(parameter.data, src=0)

    def _create_iterator_if_necessary(
        self, *, training_data: TrainingData, **kwargs: Any
    ) -> Iterable[MultiAgentBatch]:
        return [self._make_batch_if_necessary(training_data)]

    def _update(self, batch: dict[str, Any]) -> tuple[Any, dict[str, float], Any]:
        losses = {}
        for module_id in sorted(self.module.keys()):
            measured = self._train(module_id, batch.get(module_id))
            if measured:
                losses[module_id] = measured.pop(self.TOTAL_LOSS_KEY)
                self.metrics.log_dict(measured, key=module_id, window=1)
        return {}, losses, {}

    def _train(self, module_id: str, batch: dict[str, Any] | None) -> dict[str, float]:
        """Takes all gradient steps of a module, for which this learner may have no rows.

        Returns:
            The losses at the last step, empty if no learner has rows to train on.

        Raises:
            FloatingPointError: the loss is not finite.
        """
        config = self.config.get_config_for_module(module_id)
        module = self.module[module_id]
        optimizer = self.get_optimizer(module_id)
        parameters = self.get_parameters(module)
        entropy_coeff = self.entropy_coeff_schedulers_per_module[module_id].get_current_value()
        parts = parts_of(module.action_space)
        rows, sampled = torch.empty(0, dtype=torch.int64), {}
        if batch is not None:
            rows, sampled = batch[Columns.LOSS_MASK].nonzero().flatten(), as_sampled(batch, parts)
        most = torch.tensor(len(rows))
        if self.distributed:
            torch.distributed.all_reduce(most, torch.distributed.ReduceOp.MAX)
        minibatches = math.ceil(int(most) / config.minibatch_size)
        if not minibatches:
            return {}

        def gradients_and_losses(share: Tensor) -> Tensor:
            minibatch = tree.map_structure(lambda column: column.index_select(0, share), sampled)
            losses = ppo_losses(
                module.forward_train(minibatch)[Columns.ACTION_DIST_INPUTS],
                module.compute_values(minibatch),
                minibatch,
                parts,
                config,
                entropy_coeff,
            )
            gradients = torch.autograd.grad(losses[0], parameters, materialize_grads=True)
            return torch.cat([each.flatten() for each in (*gradients, losses.detach())])

        for _ in range(config.num_epochs):
            order = torch.randperm(len(rows), generator=self._shuffle).to(rows.device)
            for share in rows[order].tensor_split(minibatches):
                means = self._mean(gradients_and_losses, share, parameters)
                measured = named_losses(means[-MEANS:])
                if not math.isfinite(measured[self.TOTAL_LOSS_KEY]):
                    raise FloatingPointError(f"policy '{module_id}': the loss is not finite")
                gradients = means[:-MEANS].split([each.numel() for each in parameters])
                for parameter, gradient in zip(parameters, gradients, strict=True):
                    parameter.grad = gradient.view_as(parameter)
                optimizer.step()
                if measured[ppo.LEARNER_RESULTS_KL_KEY] > config.kl_target:
                    return measured
        return measured

    def _mean(
        self, of_rows: Callable[[Tensor], Tensor], share: Tensor, parameters: Sequence[Tensor]
    ) -> Tensor:
        """The mean of `of_rows` over the rows of all learners; threads share those of this one.

        `of_rows` gives means over rows, flat: gradients, then what `ppo_losses` gives.
        """
        parts = [part for part in share.tensor_split(self.config.threads_per_learner) if len(part)]
        size = sum(each.numel() for each in parameters) + MEANS
        # The last one counts the rows.
        sums = torch.zeros(size + 1, device=self._device)
        sums[-1] = len(share)
        for part, means in zip(parts, self._threads.map(of_rows, parts), strict=True):
            sums[:-1] += len(part) * means
        if self.distributed:
            torch.distributed.all_reduce(sums)
        return sums[:-1] / sums[-1]


class _BudgetAsyncLearner(OverBudget, IMPALALearner):
    """IMPALA's and APPO's, which learn in a thread of their own (arXiv:1802.01561, 1912.00167).

    - What their thread raises is raised by `update`; RLlib's own would wait for it for ever.
    - The step that RLlib appends to every chunk of an episode, for its value, counts nothing.
      V-trace would subtract that value from the return of the last step of the chunk again, as if
      nothing were to be earned after a cut.
    """

    def build(self) -> None:
        """Builds the learner and starts its thread."""
        super().build()
        self._failure: Exception | None = None
        # The thread waits for its first batch, and hands over the learner as `self`.
        self._learner_thread._update_method = _BudgetAsyncLearner._update_or_fail

    def update(self, *args: Any, **kwargs: Any) -> Any:
        """As RLlib's; raises RuntimeError when the thread has failed."""
        result = super().update(*args, **kwargs)
        if self._failure is not None:
            raise RuntimeError("the learner failed") from self._failure
        return result

    def compute_loss_for_module(self, *, batch: dict[str, Any], **kwargs: Any) -> Tensor:
        """RLlib's loss, with the appended steps taken out of V-trace."""
        sampled = batch[Columns.ACTION_LOGP].masked_fill(~batch[Columns.LOSS_MASK], NO_WEIGHT)
        batch = {**batch, Columns.ACTION_LOGP: sampled}
        return super().compute_loss_for_module(batch=batch, **kwargs)

    def _update_or_fail(self, *, num_epochs: int, **kwargs: Any) -> None:
        """What the thread does with a batch: a gradient step on all of it, `num_epochs` times."""
        try:
            # RLlib's own epochs are minibatches, which would cut and mix up the chunks.
            for _ in range(num_epochs):
                Learner.update(self, **kwargs)
        except Exception as error:
            self._failure = error


class BudgetIMPALALearner(_BudgetAsyncLearner, IMPALATorchLearner):
    """IMPALA's learner."""


class BudgetAPPOLearner(_BudgetAsyncLearner, APPOTorchLearner):
    """APPO's learner."""


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
    config: ppo.PPOConfig,
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
        ppo.LEARNER_RESULTS_KL_KEY: kl,
        ppo.LEARNER_RESULTS_VF_LOSS_UNCLIPPED_KEY: squares,
        ppo.LEARNER_RESULTS_VF_EXPLAINED_VAR_KEY: max(-1.0, 1 - (squares - error**2) / variance),
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
