"""A loop of others on the vector environment: MaskablePPO of sb3-contrib, and no learner at all.

It has the world, number of environments, batch, minibatches, epochs and widths of hidden layers of
the other pipelines of benchmarks/training.py. Its networks see all NUMA nodes as one row of
numbers, where those of the project score one node after the other.
"""

from importlib.util import find_spec

import numpy as np

from benchmarks.random_choice import choose
from benchmarks.stopwatch import Stopwatch, phase_rates
from env.learn.gym import SingleAgentVectorEnv
from run.settings import PPOSettings

VECTOR_UNITS = {
    "vector_agent_steps_per_s": "SingleAgentVectorEnv alone, random actions",
}
MASKABLE_UNITS = {
    "maskable_sampling_ratio": "sampling, fast / MaskablePPO",
    "maskable_learner_ratio": "learning, fast / MaskablePPO",
    "maskable_ppo_ratio": "all, fast / MaskablePPO",
    "maskable_sampling_agent_steps_per_s": "MaskablePPO.collect_rollouts",
    "maskable_learner_agent_steps_per_s": "MaskablePPO.train",
    "maskable_ppo_agent_steps_per_s": "MaskablePPO.learn",
}


def installed() -> bool:
    """Whether sb3-contrib is there."""
    return find_spec("sb3_contrib") is not None


def play_vector(envs: SingleAgentVectorEnv, decisions: int) -> None:
    """So many decisions of every environment, at random."""
    actions, random = np.zeros(envs.num_envs, np.int64), 1
    for _ in range(decisions):
        random = choose(envs.action_masks(), random, actions)
        envs.step(actions)


class MaskablePPOLoop:
    """An algorithm whose iterations are timed, phase by phase.

    Args:
        algo: that of the other pipelines.
        envs: which it steps.
    """

    def __init__(self, algo: PPOSettings, envs: SingleAgentVectorEnv) -> None:
        from sb3_contrib import MaskablePPO
        from torch import nn

        from env.learn.sb3 import BatchVecEnv

        decisions = max(1, algo.batch_size // envs.num_envs)
        self._steps = decisions * envs.num_envs
        learner = MaskablePPO(
            "MultiInputPolicy",
            BatchVecEnv(envs),
            n_steps=decisions,
            batch_size=algo.minibatch_size,
            n_epochs=algo.epochs,
            learning_rate=algo.learning_rate,
            gamma=algo.gamma,
            gae_lambda=algo.gae_lambda,
            clip_range=algo.clip,
            ent_coef=algo.entropy,
            policy_kwargs={"net_arch": list(algo.hidden), "activation_fn": nn.ReLU},
            seed=0,
            device="cpu",
        )
        self._watches = {
            "sampling": Stopwatch(learner.collect_rollouts),
            "learner": Stopwatch(learner.train),
            "ppo": Stopwatch(learner.learn),
        }
        learner.collect_rollouts = self._watches["sampling"]  # type: ignore[method-assign]
        learner.train = self._watches["learner"]  # type: ignore[method-assign]

    def iterate(self) -> np.ndarray:
        """One iteration; (PHASES, 2) agent steps per second, as of `clocks`."""
        return phase_rates(self._watches, self._learn)

    def stop(self) -> None:
        """Nothing is open."""

    def _learn(self) -> int:
        self._watches["ppo"](self._steps, reset_num_timesteps=False)
        return self._steps
