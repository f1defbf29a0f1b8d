"""`SingleAgentVectorEnv` for Stable-Baselines3, whose vectorised environments have their own form.

Stable-Baselines3 is needed here alone: `pip install -c constraints.txt sb3-contrib`.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn

from env.learn.gym import SingleAgentVectorEnv
from env.learn.kind import Observation


class BatchVecEnv(VecEnv):
    """What `MaskablePPO` of sb3-contrib steps; it asks `env_method` for the masks.

    It takes the environments over. The next episode begins in the step that ends one.
    """

    __copy__ = copy.deepcopy  # a copy never moves the original

    def __init__(self, envs: SingleAgentVectorEnv) -> None:
        self._envs = envs
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)

    def reset(self) -> Observation:
        """Every environment starts an episode, of the stream that `seed` has named if it has."""
        seeded = any(seed is not None for seed in self._seeds)
        seen, _ = self._envs.reset(seed=self._seeds if seeded else None)
        self._reset_seeds()
        return seen

    def step_async(self, actions: np.ndarray) -> None:
        """Takes note of the actions."""
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        """As `SingleAgentVectorEnv.step`; the infos of an end are `episode_metrics`."""
        seen, rewards, ends, over = self._envs.play(self._actions, rest=False)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for ended in over:
            blank = {part: np.zeros_like(rows[0]) for part, rows in seen.items()}
            infos[ended.environment] = {
                "terminal_observation": blank,
                "episode_metrics": ended.metrics,
            }
        return seen, rewards, ends, infos

    def close(self) -> None:
        """The episodes are no longer played."""
        self._envs.close()

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """The same for every environment."""
        return [getattr(self._envs, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """The environments of a batch cannot be changed."""
        raise NotImplementedError(f"{attr_name}: the environments of a batch cannot be changed")

    def env_method(
        self, method_name: str, *args: Any, indices: VecEnvIndices = None, **kwargs: Any
    ) -> list[Any]:
        """What a method gives for all environments, a row each."""
        rows = getattr(self._envs, method_name)(*args, **kwargs)
        return [rows[env] for env in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type, indices: VecEnvIndices = None) -> list[bool]:
        """No environment of a batch is."""
        return [False for _ in self._get_indices(indices)]
