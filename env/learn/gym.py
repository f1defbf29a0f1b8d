"""The worlds of one agent for Gymnasium: `SingleAgentEnv`, and many side by side in compiled calls.

Both see, earn and refuse the same: environment i of `SingleAgentVectorEnv.reset(seed=s)` goes the
way of `SingleAgentEnv.reset(seed=s + i)`. run/worlds.py registers them.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from env.base.errors import InputError
from env.base.schema import listed, short
from env.learn.actions import LARGEST_SEED, Action, nothing_played, whole_number
from env.learn.batch import Batch, Ended
from env.learn.kind import Agent, Observation
from env.learn.world import World
from env.sim.view.raw_env import RawEnv

Part = TypeVar("Part")

PARTS = {"context": "context", "items": "item_features", "functions": "functions", "edges": "edges"}
"""Of what an agent observes, and how they are called here.

The mask is apart, and `critic` would show the future. To Stable-Baselines3 a part must not be
called as a method of Python's dictionaries.
"""


class _OneAgent:
    """What both forms share.

    An observation is a dict of float32: `context` (C,), `item_features` (M, I), and with a window
    of the workflow `functions` (F, G) and `edges` (F, F), see `Agent`. Actions are Discrete(A).
    """

    __copy__ = copy.deepcopy  # a copy never moves the original
    _masks: np.ndarray | None = None

    def action_masks(self) -> np.ndarray:
        """(A,) or (N, A) int8, 1 where an action is possible, as `action_space.sample` takes it.

        Raises:
            InputError: no episode is being played.
        """
        if self._masks is None:
            raise nothing_played("action_masks")
        return self._masks.astype(np.int8)

    def _shown(self, seen: Observation) -> Observation:
        self._masks = seen["mask"]
        return shown(seen)


class SingleAgentEnv(_OneAgent, gym.Env[Observation, Action]):
    """`ServerlessEnv` where `placer` or `queue` decides alone.

    Args:
        config: what a `World` is made of.

    Raises:
        InputError: a group does not validate, or several agents decide, or one bids.
    """

    metadata: ClassVar = {"render_modes": ["ansi"], "render_fps": 1}  # type: ignore[misc]
    render_mode = "ansi"

    def __init__(self, config: Mapping[str, Any]) -> None:
        from env.learn.multi_agent import ServerlessEnv  # Ray takes seconds to import

        self._env = ServerlessEnv(config)
        self.world = self._env.world
        agent = only_agent(self.world)
        self._name = agent.name
        self.observation_space = gym.spaces.Dict(shown(agent.observation_space.spaces))
        self.action_space = agent.action_space

    @property
    def raw_env(self) -> RawEnv | None:
        """The simulator, to be read or forked; None before the first `reset`."""
        return self._env.raw_env

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Starts an episode, see `ServerlessEnv.reset`."""
        seen, _ = self._env.reset(seed=seed, options=options)
        super().reset(seed=None if seed is None else int(seed))
        return self._shown(seen[self._name]), {}

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Decides, and plays on to the next decision, see `ServerlessEnv.step`."""
        seen, rewards, terminateds, _, infos = self._env.step({self._name: action})
        observation, ended = self._shown(seen[self._name]), terminateds["__all__"]
        return observation, rewards[self._name], ended, False, infos.get(self._name, {})

    def render(self) -> str:  # type: ignore[override]
        """The cluster at this moment, a line a NUMA node."""
        return self._env.render()

    def close(self) -> None:
        """The episode is no longer played."""
        self._env.close()


class SingleAgentVectorEnv(_OneAgent, VectorEnv[Observation, np.ndarray, np.ndarray]):
    """N environments as `SingleAgentEnv` on one `Batch`, each call of all of them compiled.

    An episode ends with a blank observation, and `episode_metrics` in the infos. The next one
    begins in the next step, which ignores that environment's action and earns nothing there:
    Gymnasium's NEXT_STEP, which its wrappers count on.

    Args:
        config: what a `World` is made of.
        num_envs: N.

    Raises:
        InputError: as for `SingleAgentEnv`, or N is no number of environments.
    """

    metadata: ClassVar = {  # type: ignore[misc]
        "render_modes": [],
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(self, config: Mapping[str, Any], num_envs: int) -> None:
        world = World(config)
        agent = only_agent(world)
        self._batch = Batch(world, num_envs, world.seed, worker=0)
        self.num_envs = len(self._batch)
        self.single_observation_space = gym.spaces.Dict(shown(agent.observation_space.spaces))
        self.single_action_space = agent.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: Any = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Every environment starts an episode.

        Args:
            seed: of the first environment, the next one has the next seed; or one for each, None
                for the next episode of its stream.
            options: there are none.

        Raises:
            InputError: the seed is none, or there are options. Then nothing has changed.
        """
        if options:
            raise InputError(f"options: {short(options)}: there are none, reset() takes seeds")
        seeds: Any = seed
        if seed is not None and not isinstance(seed, list | tuple):
            first = whole_number("seed", seed, 0, LARGEST_SEED - self.num_envs)
            seeds = range(first, first + self.num_envs)
            super().reset(seed=first)
        if seeds is not None or self._masks is not None:
            self._batch.restart(seeds)
        self.closed = False
        return self._observed(), {}

    def step(
        self, actions: np.ndarray
    ) -> tuple[Observation, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Decides in every environment by integers (N,), and plays on to its next decision.

        Raises:
            InputError: nothing is being played, or an action is not allowed. Then nothing has
                changed in any environment, and all decisions are still due.
        """
        seen, rewards, ends, over = self.play(actions, rest=True)
        infos: dict[str, Any] = {}
        for ended in over:
            metrics = {"episode_metrics": ended.metrics}
            infos = self._add_info(infos, metrics, ended.environment)
        return seen, rewards, ends, np.zeros(self.num_envs, bool), infos

    def play(
        self, actions: np.ndarray, rest: bool
    ) -> tuple[Observation, np.ndarray, np.ndarray, list[Ended]]:
        """`step` as a batch has it, see `Batch.step`: with the episodes that are over as infos."""
        if self._masks is None or self.closed:
            raise nothing_played("step")
        self._batch.act(self._batch.turns[0], actions)
        rewards, ends = self._batch.step(rest)
        over, self._batch.ended = self._batch.ended, []
        return self._observed(), rewards, ends, over

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._masks is not None:
            self._observed()  # in the copied batch the decision begins anew

    def _observed(self) -> Observation:
        (turn,) = self._batch.turns
        self._batch.observe(turn, seen := turn.room(self.num_envs))
        return self._shown(seen)


def only_agent(world: World) -> Agent:
    """The agent of a world, where one decides alone and does not bid; else an `InputError`."""
    agents = list(world.layout.agents.values())
    if len(agents) > 1 or agents[0].bids:
        raise InputError(
            f"agents: {listed([agent.name for agent in agents])} decide together, Gymnasium has "
            "one agent: agents=placer without agents.queue, or agents=queue"
        )
    return agents[0]


def shown(parts: Mapping[str, Part]) -> dict[str, Part]:
    """The parts of an observation, or their spaces, that are seen here."""
    return {name: parts[part] for part, name in PARTS.items() if part in parts}
