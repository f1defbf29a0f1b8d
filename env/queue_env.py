"""Queued dispatch under RLlib: one environment, and many side by side for the fast sampler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.tune.registry import register_env

from env.batch import Ended
from env.layouts import NOBODY, Action, Agent, Observation
from env.queue_agent import QUEUE_METRICS
from env.queue_world import QueueEpisode, QueueWorld
from env.turns import BID_TURN, QUEUE_TURN

QUEUE_ENV_NAME = "serverless-queue-v1"
"""Its version rises whenever the same actions would give other observations or rewards."""

Taken = tuple[int, int, Any]
"""Turn, index of the agent, action."""


class QueueEnv(MultiAgentEnv):
    """Requests of a trace wait in the central queue of a cluster; the agent `queue` chooses.

    Its action is which of the first K functions goes next, or K to hold back; see
    env/queue_agent.py. If placement is learned, the agents of a layout then choose where; see
    env/queue_places.py. Every step is one turn: the agents that got an observation act.

    After a decision all earn the fall of the sum of all completion times, in units of what it is
    under `funcsched`: the return of each over an episode is -J, J the mean completion time over
    that of `funcsched`.

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
        self.members = members = self.world.new_turns().agents
        self.possible_agents = list(members)
        self.agents = list(members)
        self.observation_spaces = {name: agent.observation_space for name, agent in members.items()}
        self.action_spaces = {name: agent.action_space for name, agent in members.items()}
        self._seed = self.world.seed
        self._stream = (int(getattr(config, "worker_index", 0)), 0)
        self._number = 0
        self._turn = QUEUE_TURN
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
        return self._start(), {}

    def step(
        self, action_dict: dict[str, Action]
    ) -> tuple[dict, dict[str, float], dict[str, bool], dict[str, bool], dict]:
        """Plays one turn.

        Args:
            action_dict: an action of every agent that got an observation.

        Returns:
            observations of the agents that act next; rewards of all agents after a decision;
            terminated and truncated flags; infos, which hold `episode_metrics` at the end.
        """
        assert self.episode is not None, "reset the environment first"
        for index, agent in self._acting():
            self.episode.act(self._turn, index, action_dict[agent.name])
        turns = self.episode.turns
        if self._turn != turns[-1]:
            self._turn = turns[turns.index(self._turn) + 1]
            if self._acting():  # nobody does where `queue` holds back
                return self._observe(), {}, {"__all__": False}, {"__all__": False}, {}
        rewards = dict.fromkeys(self.possible_agents, self.episode.step())
        if not self.episode.done:
            return self._start(), rewards, {"__all__": False}, {"__all__": False}, {}
        self.agents = []
        infos = {name: {"episode_metrics": self.episode.metrics} for name in self.possible_agents}
        return (
            {name: agent.blank_observation() for name, agent in self.members.items()},
            rewards,
            dict.fromkeys([*self.possible_agents, "__all__"], True),
            dict.fromkeys([*self.possible_agents, "__all__"], False),
            infos,
        )

    def batch(self, environments: int, seed: int, worker: int, first: int) -> QueueBatch:
        """Many of these side by side, see `QueueBatch`."""
        return QueueBatch(self.world, environments, seed, worker, first)

    def _start(self) -> dict[str, Observation]:
        """Observations of the first turn of a decision."""
        assert self.episode is not None
        self._turn = QUEUE_TURN
        return self._observe()

    def _acting(self) -> list[tuple[int, Agent]]:
        assert self.episode is not None
        agents = self.episode.agents_of(self._turn)
        return [(index, agents[index]) for index in self.episode.acting(self._turn)]

    def _observe(self) -> dict[str, Observation]:
        assert self.episode is not None
        observations = {}
        for index, agent in self._acting():
            observations[agent.name] = agent.blank_observation()
            self.episode.see(self._turn, index, observations[agent.name])
        return observations


class QueueBatch:
    """E environments of one `QueueWorld`, restarted when they end; see `env.batch.Batch`.

    Where the agent `queue` holds back nobody places: rows of the turns after it are of NOBODY.

    Args:
        world: where episodes come from.
        environments: E.
        seed: of the episodes.
        worker: number of the process, so that no two play the same episodes.
        first: number of the first environment in the process.

    Attributes:
        turns: of a decision.
        ended: every episode that is over; whoever reads them clears them.
    """

    def __init__(
        self, world: QueueWorld, environments: int, seed: int, worker: int, first: int = 0
    ) -> None:
        self.ended: list[Ended] = []
        known = world.new_turns()
        self.turns = known.turns
        self._members = len(known.agents)
        self._agents = {turn: known.agents_of(turn) for turn in self.turns}
        self._world = world
        self._stream = (seed, worker)
        self._first = first
        self._numbers = np.zeros(environments, np.int64)
        self._episodes: list[QueueEpisode] = []
        self._taken: list[list[Taken]] = [[] for _ in range(environments)]
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
        """Who can act at a turn; all of them do at once where types bid, else one does."""
        return self._agents[turn]

    def acting(self, turn: int) -> np.ndarray:
        """(E * A,) which of `agents_of(turn)` each row is of, or NOBODY."""
        rows = len(self._agents[turn]) if turn == BID_TURN else 1
        acting = np.full((len(self), rows), NOBODY)
        for env, episode in enumerate(self._episodes):
            who = episode.acting(turn)
            acting[env, : len(who)] = who
        return acting.ravel()

    def observe(self, turn: int, out: Observation) -> None:
        """Writes what the agents see: the parts of `Agent.observation_space`, E * A rows."""
        acting = self.acting(turn)
        rows = len(acting) // len(self)
        blank = self._agents[turn][0].blank_observation()
        for row, agent in enumerate(acting.tolist()):
            own = {part: column[row] for part, column in out.items()}
            if agent == NOBODY:
                for part, zeros in blank.items():
                    own[part][:] = zeros
            else:
                self._episodes[row // rows].see(turn, agent, own)

    def act(self, turn: int, actions: np.ndarray) -> None:
        """Takes the actions of a turn: (E,), or (E * A, 2) of bids and places."""
        acting = self.acting(turn)
        rows = len(acting) // len(self)
        for row, agent in enumerate(acting.tolist()):
            if agent != NOBODY:
                action = actions[row].tolist()
                self._episodes[row // rows].act(turn, agent, action)
                self._taken[row // rows].append((turn, agent, action))

    def step(self) -> tuple[np.ndarray, np.ndarray]:
        """Plays on to the next choices, and restarts the environments that end.

        Returns:
            rewards, float64 (E,), and whether the episodes have ended, bool (E,).
        """
        rewards, done = np.zeros(len(self)), np.zeros(len(self), bool)
        for env, episode in enumerate(self._episodes):
            rewards[env] = episode.step()
            if episode.done:
                done[env] = True
                metrics = episode.metrics
                earned = -metrics["J"] * self._members
                self.ended.append(Ended(env, int(self.numbers[env]), metrics, earned))
                self._episodes[env] = self._next(env)
        return rewards, done

    def get_state(self) -> dict[str, Any]:
        """What leads here: which episodes are played, and all actions in them."""
        return {"numbers": self._numbers.copy(), "taken": [list(own) for own in self._taken]}

    def set_state(self, state: dict[str, Any]) -> None:
        """Goes on from `get_state` of a batch of the same world and size: plays it again."""
        self._numbers[:] = state["numbers"] - 1
        self.restart()
        for env, episode in enumerate(self._episodes):
            self._taken[env] = list(state["taken"][env])
            for number, (turn, agent, action) in enumerate(self._taken[env]):
                if number > 0 and turn == QUEUE_TURN:
                    episode.step()
                episode.act(turn, agent, action)
            if self._taken[env]:
                episode.step()

    def _next(self, env: int) -> QueueEpisode:
        episode = self._world.training_episode(
            *self._stream, self._first + env, int(self._numbers[env])
        )
        self._numbers[env] += 1
        self._taken[env] = []
        return episode


register_env(QUEUE_ENV_NAME, QueueEnv)
