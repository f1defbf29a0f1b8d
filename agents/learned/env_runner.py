"""RLlib's multi-agent environment runner with seeds of its own, and the metrics of episodes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode
from ray.rllib.utils.metrics.metrics_logger import MetricsLogger

EPISODE_METRICS = "episode_metrics"


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
            sequence = np.random.SeedSequence(self.config.seed, spawn_key=(self.worker_index or 0,))
            seeds = [int(word) for word in sequence.generate_state(self.num_envs, np.uint64)]
        return super()._try_env_reset(seed=seeds, options=options)


def reseeded(config: AlgorithmConfig, part: int) -> AlgorithmConfig:
    """A runner's configuration for a part of the run, which has a seed of its own.

    What is started in place of a lost runner would otherwise play its first episodes again.
    """
    sequence = np.random.SeedSequence(config.seed, spawn_key=(part,))
    seed = int(sequence.generate_state(1)[0] >> 1)
    return config.copy(copy_frozen=False).debugging(seed=seed)


class EpisodeMetrics(RLlibCallback):
    """Logs the `episode_metrics` that the environment puts in its last infos.

    They stay a series (one value an episode, from every runner), so that whoever reads the
    result of an iteration sees each episode once.
    """

    def on_episode_end(
        self, *, episode: MultiAgentEpisode, metrics_logger: MetricsLogger, **kwargs: Any
    ) -> None:
        """Logs one value per metric."""
        infos = episode.get_infos(-1).values()
        metrics = next(info[EPISODE_METRICS] for info in infos if EPISODE_METRICS in info)
        log_episode(metrics, metrics_logger)


def log_episode(metrics: Mapping[str, float], metrics_logger: MetricsLogger) -> None:
    """Logs the metrics of one episode."""
    for name, value in metrics.items():
        metrics_logger.log_value((EPISODE_METRICS, name), float(value), reduce="item_series")
