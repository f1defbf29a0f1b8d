"""Queued dispatch under RLlib: one environment, and many side by side for the fast sampler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.tune.registry import register_env

from env.base.errors import InputError
from env.learn.actions import (
    MOST_ENVIRONMENTS,
    Action,
    TurnOrder,
    next_episode,
    nothing_played,
    option,
    taken,
    whole_number,
)
from env.learn.agent import Agent, Observation
from env.learn.batch import Ended
from env.learn.layouts import NOBODY
from env.learn.queue_agent import QUEUE_METRICS
from env.learn.queue_world import QueueEpisode, QueueWorld
from env.learn.turns import BID_TURN, QUEUE_TURN

QUEUE_ENV_NAME = "serverless-queue-v1"
"""Its version rises whenever the same actions would give other observations or rewards."""


class QueueEnv(MultiAgentEnv):
    """Requests of a trace wait in the central queue of a cluster; the agent `queue` chooses.

    Its action is which of the first K functions goes next, or K to hold back; see
    env/learn/queue_agent.py. If placement is learned, the agents of a layout then choose where; see
    env/learn/queue_places.py. Every step is one turn: the agents that got an observation act.

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
        self._given = False  # to `reset`, not drawn
        self._masks: list[np.ndarray] = []

    def __getstate__(self) -> dict[str, Any]:
        """For copies, which play their episode again up to where this one is.

        Raises:
            InputError: the episode was given to `reset`, nobody can draw it again.
        """
        if self._given:
            raise InputError("an environment that plays options['episode'] cannot be copied")
        played = None if self.episode is None else self.episode.taken
        return self.__dict__ | {"episode": played}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Of a copy."""
        self.__dict__.update(state, episode=None)
        if state["episode"] is not None:
            self.episode = self.world.training_episode(self._seed, *self._stream, self._number - 1)
            self.episode.replay(state["episode"], self._turn != QUEUE_TURN)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, Any]]:
        """Starts the next episode of the stream; a seed starts the stream that it names.

        `options={"episode": QueueEpisode}` plays that one instead of drawing one.

        Raises:
            InputError: the seed is none, or there are other options. Then nothing has changed.
        """
        episode = option(options, "episode", QueueEpisode)
        seed, stream, number = next_episode(seed, (self._seed, self._stream, self._number))
        self.episode = episode or self.world.training_episode(seed, *stream, number)
        self._seed, self._stream, self._number = seed, stream, number + 1
        self._given = episode is not None
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

        Raises:
            InputError: nothing is being played, agents are missing or not due, or an action is not
                allowed. Then nothing has changed, and the turn can be answered again.
        """
        if self.episode is None or self.episode.done:
            raise nothing_played("step", self.episode is not None)
        acting = self._acting()
        found = taken([agent for _, agent in acting], self._masks, action_dict).tolist()
        for (index, _), action in zip(acting, found, strict=True):
            self.episode.act(self._turn, index, action)
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
        # Copies, as the observations are the caller's.
        self._masks = [seen["mask"].copy() for seen in observations.values()]
        return observations


class QueueBatch:
    """E environments of one `QueueWorld`, restarted when they end; see `env.learn.batch.Batch`.

    Where the agent `queue` holds back nobody places: rows of the turns after it are of NOBODY.

    Args:
        world: where episodes come from.
        environments: E.
        seed: of the episodes.
        worker: number of the process, so that no two play the same episodes.
        first: number of the first environment in the process.

    Raises:
        InputError: E is not a whole number from 1 to `MOST_ENVIRONMENTS`.

    Attributes:
        turns: of a decision.
        ended: every episode that is over; whoever reads them clears them.
    """

    def __init__(
        self, world: QueueWorld, environments: int, seed: int, worker: int, first: int = 0
    ) -> None:
        environments = whole_number("environments", environments, 1, MOST_ENVIRONMENTS)
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
        self._order = TurnOrder(self)
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
        self._order.begin()

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
        """Writes what the agents of a turn see, as `env.learn.batch.Batch.observe`."""
        self._order.check_room(turn, out)
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
        self._order.observed(turn, out["mask"])

    def act(self, turn: int, actions: np.ndarray) -> None:
        """Takes the actions of a turn: integers (E,), or (E * A, 2) of bids and places.

        Raises:
            InputError: as `env.learn.batch.Batch.act`.
        """
        acting = self.acting(turn)
        rows = len(acting) // len(self)
        asked = np.flatnonzero(acting != NOBODY)
        found = self._order.take(turn, actions, asked).tolist()
        for row in asked.tolist():
            self._episodes[row // rows].act(turn, int(acting[row]), found[row])

    def step(self) -> tuple[np.ndarray, np.ndarray]:
        """Plays on to the next choices, and restarts the environments that end.

        Returns:
            rewards, float64 (E,), and whether the episodes have ended, bool (E,).

        Raises:
            InputError: a turn has not been taken.
        """
        self._order.finish()
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
        return {
            "numbers": self._numbers.copy(),
            "taken": [list(one.taken) for one in self._episodes],
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Goes on from `get_state` of a batch of the same world and size: plays it again."""
        self._numbers[:] = state["numbers"] - 1
        self.restart()
        for episode, own in zip(self._episodes, state["taken"], strict=True):
            episode.replay(own, in_turn=False)

    def _next(self, env: int) -> QueueEpisode:
        episode = self._world.training_episode(
            *self._stream, self._first + env, int(self._numbers[env])
        )
        self._numbers[env] += 1
        return episode


register_env(QUEUE_ENV_NAME, QueueEnv)
