"""RLlib's multi-agent environment runner, with seeds of its own for every environment."""

from typing import Any

import numpy as np
from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner


class SeededEnvRunner(MultiAgentEnvRunner):
    """Samples with environments that never repeat those of another runner.

    RLlib seeds environment i of runner w with seed + w + i: the second of runner 1 and the first
    of runner 2 would play the same episodes.
    """

    def _try_env_reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        seeds = None
        if seed is not None:
            sequence = np.random.SeedSequence(self.config.seed, spawn_key=(self.worker_index,))
            seeds = [int(word) for word in sequence.generate_state(self.num_envs, np.uint64)]
        return super()._try_env_reset(seed=seeds, options=options)
