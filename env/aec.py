"""The environment for PettingZoo: `ServerlessAEC` lets agents act one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box
from pettingzoo import AECEnv

from env.layouts import Observation
from env.multi_agent import ServerlessEnv


class ServerlessAEC(AECEnv):
    """Adapter of `ServerlessEnv`; agents of one turn act in the order of the layout.

    An observation is {"observation": {context, items, critic}, "action_mask": (A,) int8}. Where an
    agent bids, the mask is that of the bids, then that of the places.
    """

    metadata: ClassVar = {
        "render_modes": ["ansi"],
        "name": "serverless_v1",
        "is_parallelizable": False,
    }

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.render_mode = "ansi"
        self._env = ServerlessEnv(config)
        self.possible_agents = list(self._env.possible_agents)
        self.observation_spaces = {name: self._space(name) for name in self.possible_agents}
        self.action_spaces = self._env.action_spaces
        self._blank = {
            name: agent.blank_observation() for name, agent in self._env.layout.agents.items()
        }

    def observation_space(self, agent: str) -> gym.spaces.Dict:
        """Space of the parts and of the mask."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gym.Space:
        """As in `ServerlessEnv`."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Starts the next episode; a seed starts the stream that it names."""
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self._seen: dict[str, Observation] = dict(self._blank)
        observations, _ = self._env.reset(seed=seed, options=options)
        self._begin_turn(observations)

    def observe(self, agent: str) -> dict[str, Any]:
        """What an agent saw when it last acted or is to act."""
        seen = self._seen[agent]
        return {
            "observation": {key: value for key, value in seen.items() if key != "mask"},
            "action_mask": seen["mask"].astype(np.int8),
        }

    def step(self, action: Any) -> None:
        """The selected agent acts; the last one of a turn moves the world."""
        agent: str = self.agent_selection  # type: ignore[has-type]
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        self._actions[agent] = action
        if self._to_act:
            self.agent_selection = self._to_act.pop(0)
            return
        observations, rewards, terminateds, _, infos = self._env.step(self._actions)
        self.rewards = {name: rewards.get(name, 0.0) for name in self.agents}
        self._accumulate_rewards()
        if terminateds["__all__"]:
            self.terminations = dict.fromkeys(self.agents, True)
            self.infos = infos
            self._seen = observations
            self.agent_selection = self.agents[0]
            return
        self._begin_turn(observations)

    def render(self) -> str:
        """The cluster at this moment, a line a NUMA node."""
        return self._env.render()

    def close(self) -> None:
        """Nothing is open."""
        self._env.close()

    def _space(self, agent: str) -> gym.spaces.Dict:
        parts = dict(self._env.layout.agents[agent].observation_space.spaces)
        mask = parts.pop("mask")
        return gym.spaces.Dict(
            {
                "observation": gym.spaces.Dict(parts),
                "action_mask": Box(0, 1, mask.shape, np.int8),
            }
        )

    def _begin_turn(self, observations: dict[str, Observation]) -> None:
        self._seen = {**self._seen, **observations}
        self._actions: dict[str, Any] = {}
        self._to_act = list(observations)
        self.agent_selection = self._to_act.pop(0)
