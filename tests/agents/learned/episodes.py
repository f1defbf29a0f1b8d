"""RLlib's episodes as the chunks that the fast runner would sample of them."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from agents.learned.sampler import ENDED, OPEN, Chunk, Steps


def to_chunk(episodes: Sequence[MultiAgentEpisode]) -> Chunk:
    """Every episode as if from an environment of its own."""
    parts = defaultdict(list)
    for number, episode in enumerate(episodes):
        for agent in episode.agent_episodes.values():
            if len(agent) or not agent.is_done:
                parts[agent.module_id].append(_steps(agent, number))
    return Chunk(
        {policy: Steps.joined(each) for policy, each in parts.items()},
        steps=sum(map(len, episodes)),
    )


def _steps(agent: SingleAgentEpisode, environment: int) -> Steps:
    seen = agent.get_observations()
    rows = len(agent) if agent.is_done else len(agent) + 1
    seen = {key: np.asarray(column[:rows]) for key, column in seen.items()}
    bids = agent.action_space.shape

    def column(values: Sequence, shape: tuple[int, ...], dtype: type) -> np.ndarray:
        filled: np.ndarray = np.zeros((rows, *shape), dtype)
        filled[: len(agent)] = np.reshape(values, (len(agent), *shape))
        return filled

    following = np.arange(1, rows + 1)
    following[-1] = ENDED if agent.is_done else OPEN
    return Steps(
        obs=seen,
        actions=column(agent.get_actions(), bids, np.int64),
        action_logp=column(agent.get_extra_model_outputs("action_logp"), (), np.float32),
        action_dist_inputs=column(
            agent.get_extra_model_outputs("action_dist_inputs"), seen["mask"].shape[1:], np.float32
        ),
        rewards=column(agent.get_rewards(), (), np.float64),
        following=following,
        environment=np.full(rows, environment),
    )
