"""The agent `queue` under RLlib: one environment, and many side by side for the fast sampler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.tune.registry import register_env

from env.batch import Ended
from env.layouts import Agent, Observation
from env.queue_agent import QUEUE_METRICS
from env.queue_world import QueueEpisode, QueueWorld
from env.turns import QUEUE_TURN

QUEUE_ENV_NAME = "serverless-queue-v1"
"""Its version rises whenever the same actions would give other observations or rewards."""


class QueueEnv(MultiAgentEnv):
    """Requests of a trace wait in the central queue of a cluster; one agent, `queue`, chooses.

    It earns the fall of the sum of all completion times, in units of what it is under `funcsched`:
    the return of an episode is -J, J the mean completion time over that of `funcsched`. Its action
    is which of the first K functions goes next, or K to hold back; see env/queue_agent.py.

    Args:
        config: what a `QueueWorld` is made of. RLlib's `EnvContext` adds the number of the worker.

    Raises:
        InputError: a group does not validate.
    """

    metadata: ClassVar = {"render_modes": [], "name": QUEUE_ENV_NAME}
    metrics = tuple(QUEUE_METRICS)

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.world = QueueWorld(config)
        agent = self.world.agent.agent
        self.members: dict[str, Agent] = {agent.name: agent}
        self.possible_agents = list(self.members)
        self.agents = list(self.members)
        self.observation_spaces = {agent.name: agent.observation_space}
        self.action_spaces = {agent.name: agent.action_space}
        self._blank = agent.blank_observation()
        self._seed = self.world.seed
        self._stream = (int(getattr(config, "worker_index", 0)), 0)
        self._number = 0
        self.episode: QueueEpisode | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, Any]]:
        """Starts the next episode of the stream; a seed starts the stream that it names.

        `options={"episode": QueueEpisode}` plays that one instead of drawing one.
        """
        if seed is not None:
            self._seed, self._stream, self._number = int(seed), (0, 0), 0
        self.episode = (options or {}).get("episode") or self.world.training_episode(
            self._seed, *self._stream, self._number
        )
        self._number += 1
        self.agents = list(self.possible_agents)
        return self._observe(), {}

    def step(
        self, action_dict: dict[str, Any]
    ) -> tuple[dict, dict[str, float], dict[str, bool], dict[str, bool], dict]:
        """Takes the agent's action; infos hold `episode_metrics` at the end."""
        assert self.episode is not None, "reset the environment first"
        (name,) = self.possible_agents
        reward = {name: self.episode.act(int(action_dict[name]))}
        if not self.episode.done:
            return self._observe(), reward, {"__all__": False}, {"__all__": False}, {}
        self.agents = []
        return (
            {name: self._blank},
            reward,
            {name: True, "__all__": True},
            {name: False, "__all__": False},
            {name: {"episode_metrics": self.episode.metrics}},
        )

    def batch(self, environments: int, seed: int, worker: int) -> QueueBatch:
        """Many of these side by side, see `QueueBatch`."""
        return QueueBatch(self.world, environments, seed, worker)

    def _observe(self) -> dict[str, Observation]:
        assert self.episode is not None
        (name,) = self.possible_agents
        seen = {part: zeros.copy() for part, zeros in self._blank.items()}
        self.episode.see(seen)
        return {name: seen}


class QueueBatch:
    """E environments of one `QueueWorld`, restarted when they end; see `env.batch.Batch`.

    Args:
        world: where episodes come from.
        environments: E.
        seed: of the episodes.
        worker: number of the process, so that no two play the same episodes.

    Attributes:
        turns: of a decision.
        ended: every episode that is over; whoever reads them clears them.
    """

    turns = (QUEUE_TURN,)

    def __init__(self, world: QueueWorld, environments: int, seed: int, worker: int) -> None:
        self.ended: list[Ended] = []
        self._agents = [world.agent.agent]
        self._world = world
        self._stream = (seed, worker)
        self._numbers = np.zeros(environments, np.int64)
        self._episodes: list[QueueEpisode] = []
        self._actions: list[list[int]] = [[] for _ in range(environments)]
        self.restart()

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def numbers(self) -> np.ndarray:
        """(E,) which episode of its stream each environment plays."""
        numbers: np.ndarray = self._numbers - 1
        return numbers

    def restart(self) -> None:
        """Every environment starts the next episode of its stream, wherever it was."""
        self._episodes = [self._next(env) for env in range(len(self))]

    def agents_of(self, turn: int) -> list[Agent]:
        """The one agent."""
        return self._agents

    def acting(self, turn: int) -> np.ndarray:
        """(E,) zeros: which of `agents_of(turn)` each row is of."""
        return np.zeros(len(self), np.int64)

    def observe(self, turn: int, out: Observation) -> None:
        """Writes what the agents see: the parts of `Agent.observation_space`, E rows."""
        for env, episode in enumerate(self._episodes):
            episode.see({part: rows[env] for part, rows in out.items()})

    def act(self, turn: int, actions: np.ndarray) -> None:
        """Takes the actions (E,)."""
        for own, action in zip(self._actions, actions.tolist(), strict=True):
            own.append(action)

    def step(self) -> tuple[np.ndarray, np.ndarray]:
        """Plays on to the next choices, and restarts the environments that end.

        Returns:
            rewards, float64 (E,), and whether the episodes have ended, bool (E,).
        """
        rewards, done = np.zeros(len(self)), np.zeros(len(self), bool)
        for env, episode in enumerate(self._episodes):
            rewards[env] = episode.act(self._actions[env][-1])
            if episode.done:
                done[env] = True
                metrics = episode.metrics
                self.ended.append(Ended(env, int(self.numbers[env]), metrics, -metrics["J"]))
                self._episodes[env] = self._next(env)
        return rewards, done

    def get_state(self) -> dict[str, Any]:
        """What leads here: which episodes are played, and all actions in them."""
        return {"numbers": self._numbers.copy(), "actions": [list(own) for own in self._actions]}

    def set_state(self, state: dict[str, Any]) -> None:
        """Goes on from `get_state` of a batch of the same world and size: plays it again."""
        self._numbers[:] = state["numbers"] - 1
        self.restart()
        for env, episode in enumerate(self._episodes):
            self._actions[env] = list(state["actions"][env])
            for action in self._actions[env]:
                episode.act(action)

    def _next(self, env: int) -> QueueEpisode:
        episode = self._world.training_episode(*self._stream, env, int(self._numbers[env]))
        self._numbers[env] += 1
        self._actions[env] = []
        return episode


register_env(QUEUE_ENV_NAME, QueueEnv)
