"""RLlib's multi-agent environment runner, with seeds of its own for every environment."""

from typing import Any

import numpy as np
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner


class SeededEnvRunner(MultiAgentEnvRunner):
    """Samples with environments that never repeat those of another runner.

    RLlib seeds environment i of runner w with seed + w + i: the second of runner 1 and the first
    of runner 2 would play the same episodes.
    """

    config: AlgorithmConfig

    def start_part(self, part: int) -> None:
        """Plays other episodes from here on, see `reseeded`."""
        self.config = reseeded(self.config, part)
        self._needs_initial_reset = True

    def _try_env_reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        seeds = None
        if seed is not None:
            sequence = np.random.SeedSequence(self.config.seed, spawn_key=(worker_of(self),))
            seeds = [int(word) for word in sequence.generate_state(self.num_envs, np.uint64)]
        return super()._try_env_reset(seed=seeds, options=options)


def worker_of(runner: MultiAgentEnvRunner) -> int:
    """Number of a runner: it plays other episodes than all others, those that train or evaluate."""
    return (runner.worker_index or 0) + (1_000_000 if runner.config.in_evaluation else 0)


def reseeded(config: AlgorithmConfig, part: int) -> AlgorithmConfig:
    """A runner's configuration for a part of the run, which has a seed of its own.

    What is started in place of a lost runner would otherwise play its first episodes again.
    """
    sequence = np.random.SeedSequence(config.seed, spawn_key=(part,))
    seed = int(sequence.generate_state(1)[0] >> 1)
    return config.copy(copy_frozen=False).debugging(seed=seed)
