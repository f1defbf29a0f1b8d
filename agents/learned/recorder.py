"""Collects what the agents of one kind do, turn by turn, as columns of `Steps`."""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from agents.learned.chunk import ENDED, OPEN, Steps
from env.base.jit import compiled
from env.learn.agent import Agent, Observation
from env.learn.loops import NOBODY

NO_ROW = -1


@compiled
def link(first, acting, last, following, agent, environment):
    """Notes who made the rows from `first` on, and that they follow these agents' last rows.

    Args:
        first: row.
        acting: (rows,) index of the agent, those of one environment together; NOBODY's rows follow
            none and are not gone on with.
        last: (E, A) last row of every agent, NO_ROW before its first.
        following, agent, environment: columns.
    """
    per_environment = len(acting) // len(last)
    for position in range(len(acting)):
        row, env, who = first + position, position // per_environment, acting[position]
        agent[row] = who
        environment[row] = env
        if who == NOBODY:
            following[row] = ENDED
            continue
        if last[env, who] != NO_ROW:
            following[last[env, who]] = row
        last[env, who] = row
        following[row] = OPEN


@compiled
def earn(last, earned, done, rewards, following):
    """Adds what each environment earned to the last row of its agents, and ends episodes.

    Args:
        last: as for `link`.
        earned: (E,) team rewards.
        done: (E,) whether the episode is over.
        rewards, following: columns.
    """
    for env in range(len(last)):
        for who in range(last.shape[1]):
            row = last[env, who]
            if row == NO_ROW:
                continue
            rewards[row] += earned[env]
            if done[env]:
                following[row] = ENDED
                last[env, who] = NO_ROW


class Recorder:
    """Columns of the steps of A agents of one kind in E environments.

    Between `begin` and `finish` every turn takes `room` for its observations and is then
    `record`ed; `earn` follows every decision. The last step of every agent, which does not know
    yet what it earns, is open and opens the next columns as well.

    Args:
        agents: whose steps these are; their rows have the same shape.
        environments: E.
        policies: name of the policy of each agent.

    Attributes:
        bids: B of the agents.
        policies: their names, each once.
    """

    def __init__(self, agents: Sequence[Agent], environments: int, policies: list[str]) -> None:
        self.bids, self.policies = agents[0].bids, list(dict.fromkeys(policies))
        # The last one is that of NOBODY.
        self._policy_of = np.array([*map(self.policies.index, policies), NOBODY])
        self._blank = agents[0].blank_observation()
        shapes = {part: (zeros.shape, np.float32) for part, zeros in self._blank.items()}
        self._shapes: dict[str, tuple[tuple[int, ...], type]] = {
            **shapes,
            "actions": ((2,) if agents[0].bids else (), np.int64),
            "action_logp": ((), np.float32),
            "action_dist_inputs": shapes["mask"],
            "rewards": ((), np.float64),
            **dict.fromkeys(("following", "environment", "agent"), ((), np.int64)),
        }
        self._last = np.full((environments, len(agents)), NO_ROW)
        self._memory: dict[str, np.ndarray] = {}
        self._columns = {name: self._empty(name, 0) for name in self._shapes}

    def begin(self, rows: int) -> None:
        """Makes columns for the open steps and `rows` more."""
        before = self.get_state()
        self._used = len(before["agent"])
        self._columns = {}  # so that their memory is free
        self._columns = {
            # Room for as many open steps as there can be: the same size every time.
            name: self._empty(name, self._last.size + rows)[: self._used + rows]
            for name in self._shapes
        }
        for name, column in self._columns.items():
            column[: self._used] = before[name]
        self._columns["rewards"][self._used :] = 0.0
        self._last[before["environment"], before["agent"]] = np.arange(self._used)

    def room(self, rows: int) -> Observation:
        """Where the observations of the next `rows` steps belong."""
        return {part: self._columns[part][self._used : self._used + rows] for part in self._blank}

    def record(
        self, acting: np.ndarray, actions: np.ndarray, logp: np.ndarray, logits: np.ndarray
    ) -> None:
        """The steps that the last `room` was for.

        Args:
            acting: (rows,) which of `agents` each is of, or NOBODY.
            actions: (rows,) int64, or (rows, 2) of agents that bid.
            logp: (rows,) float32.
            logits: (rows, A) float32.
        """
        columns, rows = self._columns, slice(self._used, self._used + len(acting))
        columns["actions"][rows] = actions
        columns["action_logp"][rows] = logp
        columns["action_dist_inputs"][rows] = logits
        link(
            self._used,
            acting,
            self._last,
            columns["following"],
            columns["agent"],
            columns["environment"],
        )
        self._used = rows.stop

    def earn(self, earned: np.ndarray, done: np.ndarray) -> None:
        """What a decision earned each environment (E,), and which episodes it ended (E,)."""
        earn(self._last, earned, done, self._columns["rewards"], self._columns["following"])

    def by_policy(self, acting: np.ndarray) -> dict[str, np.ndarray]:
        """Which rows (rows,) bool are of each policy, by the agents that act in them."""
        policies = self._policy_of[acting]
        return {name: policies == index for index, name in enumerate(self.policies)}

    def finish(self) -> dict[str, Steps]:
        """The steps that each policy made."""
        columns = dict(self._columns)
        agents = columns.pop("agent")
        steps = Steps(obs={part: columns.pop(part) for part in self._blank}, **columns)
        return {name: steps.select(own) for name, own in self.by_policy(agents).items()}

    def get_state(self) -> dict[str, Any]:
        """The open steps, by column."""
        open_rows = self._columns["following"] == OPEN
        return {name: column[open_rows] for name, column in self._columns.items()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Goes on from `get_state`."""
        self._last[:] = NO_ROW
        self._columns = dict(state)

    def _empty(self, name: str, rows: int) -> np.ndarray:
        """A column with any content, in memory that it had before if nobody holds that any more.

        The system hands out fresh memory page by page as it is first written, which takes longer
        than all that the environments write into it.
        """
        kept = self._memory.pop(name, None)
        # Two hold it: this call, and the one that counts.
        if kept is None or sys.getrefcount(kept) > 2 or len(kept) != rows:
            shape, dtype = self._shapes[name]
            kept = np.empty((rows, *shape), dtype)
        self._memory[name] = kept
        return kept[:]
