"""What an episode reports when it ends: the environment's own metrics, through RLlib's logger."""

from collections.abc import Mapping
from typing import Any

from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode
from ray.rllib.utils.metrics.metrics_logger import MetricsLogger

EPISODE_METRICS = "episode_metrics"


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
