"""The learners of IMPALA and APPO: RLlib's, over the run's budget, and never silent when they fail.

Both learn in a thread of their own (Espeholt et al. 2018, arXiv:1802.01561; Luo et al. 2020,
arXiv:1912.00167).
"""

from typing import Any

from ray.rllib.algorithms.appo.torch.appo_torch_learner import APPOTorchLearner
from ray.rllib.algorithms.impala.impala import IMPALAConfig
from ray.rllib.algorithms.impala.impala_learner import IMPALALearner
from ray.rllib.algorithms.impala.torch.impala_torch_learner import IMPALATorchLearner
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.learner import Learner
from ray.rllib.core.learner.training_data import TrainingData
from torch import Tensor

from agents.learned.learner import OverBudget

# A behaviour log-probability so high that V-trace's ratio of probabilities is 0 in float32.
NO_WEIGHT = 50.0


class _BudgetAsyncLearner(OverBudget, IMPALALearner):
    """What the learners of IMPALA and APPO get here.

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

    def update(
        self, training_data: TrainingData, *, timesteps: dict[str, Any], **kwargs: Any
    ) -> Any:
        """As RLlib's; raises RuntimeError when the thread has failed."""
        result = super().update(training_data, timesteps=timesteps, **kwargs)
        if self._failure is not None:
            raise RuntimeError("the learner failed") from self._failure
        return result

    def compute_loss_for_module(
        self,
        *,
        module_id: str,
        config: IMPALAConfig,
        batch: dict[str, Any],
        fwd_out: dict[str, Tensor],
    ) -> Tensor:
        """RLlib's loss, with the appended steps taken out of V-trace."""
        sampled = batch[Columns.ACTION_LOGP].masked_fill(~batch[Columns.LOSS_MASK], NO_WEIGHT)
        loss: Tensor = super().compute_loss_for_module(
            module_id=module_id,
            config=config,
            batch={**batch, Columns.ACTION_LOGP: sampled},
            fwd_out=fwd_out,
        )
        return loss

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
