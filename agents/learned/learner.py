"""RLlib's PPO learner with two rules of the study: stop at a KL, anneal over the run's budget."""

from collections.abc import Iterator
from typing import Any

from ray.rllib.algorithms.ppo.ppo import LEARNER_RESULTS_KL_KEY, PPOConfig
from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
from ray.rllib.policy.sample_batch import MultiAgentBatch
from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED_LIFETIME
from torch import Tensor

# Schedules are functions of the share of the budget that is used, in units of 1 / PROGRESS_STEPS,
# because RLlib's schedules want integer steps and the length of a run may be given in minutes.
PROGRESS_STEPS = 1_000_000


class BudgetPPOLearner(PPOTorchLearner):
    """PPO whose modules stop early, and whose schedules run over a budget of any kind.

    Early stop: in one update, a module takes no further minibatch once its policy's mean KL
    divergence from the one that sampled is above `kl_target`. RLlib's adaptive KL penalty instead
    would be a coefficient that its checkpoints forget; here the penalty is off (`kl_coeff` 0).
    """

    def build(self) -> None:
        """Builds the learner; no share of the budget is used yet."""
        super().build()
        self._progress = 0.0
        self._stopped: set[str] = set()

    def set_progress(self, progress: float) -> None:
        """Moves learning rates and entropy coefficients to `progress` (0 to 1) of the budget."""
        self._progress = progress
        timestep = round(progress * PROGRESS_STEPS)
        for optimizer, schedule in self._optimizer_lr_schedules.items():
            self._set_optimizer_lr(optimizer, lr=schedule.update(timestep=timestep))
        for module_id in self._module_optimizers:
            self.entropy_coeff_schedulers_per_module[module_id].update(timestep=timestep)

    def after_gradient_based_update(self, *, timesteps: dict[str, Any]) -> None:
        """RLlib moves its schedules here, by steps; they shall stay where `set_progress` put."""
        step = round(self._progress * PROGRESS_STEPS)
        super().after_gradient_based_update(
            timesteps={**timesteps, NUM_ENV_STEPS_SAMPLED_LIFETIME: step}
        )

    def compute_loss_for_module(
        self,
        *,
        module_id: str,
        config: PPOConfig,
        batch: dict[str, Any],
        fwd_out: dict[str, Tensor],
    ) -> Tensor:
        """PPO's loss; notes the module when this minibatch shows it beyond the KL target."""
        loss: Tensor = super().compute_loss_for_module(
            module_id=module_id, config=config, batch=batch, fwd_out=fwd_out
        )
        kl = self.metrics.peek((module_id, LEARNER_RESULTS_KL_KEY))
        if kl.detach() > config.kl_target:
            self._stopped.add(module_id)
        return loss

    def _create_iterator_if_necessary(self, **kwargs: Any) -> Iterator[MultiAgentBatch]:
        self._stopped.clear()
        for minibatch in super()._create_iterator_if_necessary(**kwargs):
            for module_id in self._stopped & minibatch.policy_batches.keys():
                del minibatch.policy_batches[module_id]
            if not minibatch.policy_batches:
                return
            yield minibatch
