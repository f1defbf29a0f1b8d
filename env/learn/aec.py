"""The environment for PettingZoo: `ServerlessAEC` lets agents act one after the other."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Tuple
from pettingzoo import AECEnv

from env.base.errors import InputError
from env.learn.actions import actions_of, checked, nothing_played
from env.learn.kind import Observation
from env.learn.multi_agent import ServerlessEnv


class ServerlessAEC(AECEnv):
    """Adapter of `ServerlessEnv`; agents of one turn act in the order of the layout.

    An observation is {"observation": {context, items, critic}, "action_mask": (A,) int8}. The mask
    is what `action_space(agent).sample` takes: of an agent that bids a tuple, bids and places.
    """

    metadata: ClassVar = {"render_modes": ["ansi"], "name": "serverless_v1"}
    __copy__ = copy.deepcopy  # a copy never moves the original

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.render_mode = "ansi"
        self._env = ServerlessEnv(config)
        self.agents: list[str] = []
        self.possible_agents = list(self._env.possible_agents)
        self.observation_spaces = {name: self._space(name) for name in self.possible_agents}
        self.action_spaces = self._env.action_spaces

    def observation_space(self, agent: str) -> gym.spaces.Dict:
        """Space of the parts and of the mask."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gym.Space:
        """As in `ServerlessEnv`."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Starts the next episode, see `ServerlessEnv.reset`.

        An option `options`, which PettingZoo's own test gives, is ignored.
        """
        if isinstance(options, dict):
            options = {key: value for key, value in options.items() if key != "options"}
        observations, _ = self._env.reset(seed=seed, options=options)
        self.agents = names = list(self.possible_agents)
        self.rewards = dict.fromkeys(names, 0.0)
        self._cumulative_rewards = dict.fromkeys(names, 0.0)
        self.terminations = dict.fromkeys(names, False)
        self.truncations = dict.fromkeys(names, False)
        self.infos: dict[str, dict[str, Any]] = {name: {} for name in names}
        members = self._env.members.items()
        self._seen = {name: member.blank_observation() for name, member in members}
        self._begin_turn(observations)

    def observe(self, agent: str) -> dict[str, Any]:
        """What an agent saw when it last acted or is to act."""
        seen, bids = self._seen[agent], self._env.members[agent].bids
        mask = seen["mask"].astype(np.int8)
        return {
            "observation": {key: value for key, value in seen.items() if key != "mask"},
            "action_mask": (mask[:bids], mask[bids:]) if bids else mask,
        }

    def step(self, action: Any) -> None:
        """The selected agent acts; the last one of a turn moves the world.

        Raises:
            InputError: nothing is being played, or the action is not allowed. Then nothing has
                changed. Where the bids of a turn do not go together all are asked again.
        """
        if not self.agents:
            raise nothing_played("step", self._env.raw_env is not None)
        agent: str = self.agent_selection  # type: ignore[has-type]
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        member, mask = self._env.members[agent], self._seen[agent]["mask"]
        # The action itself is the caller's, who may write the next one to it.
        rows = actions_of([member], {agent: action})
        (self._actions[agent],) = checked([member], mask[None], np.zeros(1, int), rows, together=0)
        rewards: dict[str, float] = {}
        if len(self._actions) == len(self._asked):
            try:
                observations, rewards, terminateds, _, infos = self._env.step(self._actions)
            except InputError:
                self._begin_turn({name: self._seen[name] for name in self._asked})
                raise
            if terminateds["__all__"]:
                self.terminations, self.infos = dict.fromkeys(self.agents, True), infos
            self._begin_turn(observations)
        else:
            self.agent_selection = self._asked[len(self._actions)]
        self._cumulative_rewards[agent] = 0.0
        self.rewards = {name: rewards.get(name, 0.0) for name in self.agents}
        self._accumulate_rewards()

    def render(self) -> str:
        """The cluster at this moment, a line a NUMA node."""
        return self._env.render()

    def close(self) -> None:
        """The episode is no longer played."""
        self._env.close()
        self.agents = []

    def _space(self, agent: str) -> gym.spaces.Dict:
        member = self._env.members[agent]
        parts, (choices,) = dict(member.observation_space.spaces), member.parts["mask"]
        del parts["mask"]
        bids, places = (Box(0, 1, (n,), np.int8) for n in (member.bids, choices - member.bids))
        mask = Tuple([bids, places]) if member.bids else places
        return gym.spaces.Dict({"observation": gym.spaces.Dict(parts), "action_mask": mask})

    def _begin_turn(self, observations: dict[str, Observation]) -> None:
        """Those that see something are to act, one after the other."""
        self._seen |= observations
        self._asked = list(observations)
        self._actions: dict[str, Any] = {}
        self.agent_selection = self._asked[0]
