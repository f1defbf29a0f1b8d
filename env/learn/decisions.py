"""Decisions that are due in simulators side by side: agents see, act, and have chosen a row.

Each turn of all of them is one compiled call. Of E environments with A agents that act at once in a
turn there are E * A rows, those of one environment together. A turn can be nobody's in some.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from env.base.jit import compiled
from env.learn.actions import Action, checked
from env.learn.kind import NOBODY, Environments, Kind, Observation, Turn
from env.learn.layouts import Layout
from env.learn.observation import copy, write_critic
from env.learn.placing import look_at_nodes
from env.score.reward import potential
from env.sim.events.choosing import UNDECIDED, forced_choice, play_to_choice
from env.sim.forecast.candidates import update_finish_bounds
from env.sim.state.block import HANDLE, State
from env.sim.state.records import CHOOSE, DONE, NONE, PLACE

WINDOW_PARTS = {"functions", "edges"}
"""Of an observation, with a window of the workflow; all agents see the same in a decision."""


class Decisions:
    """What agents decide in E simulators.

    Args:
        layout: the agents and their `turns`.
        handles: HANDLE (E,), of the simulators' states.
        functions: of an episode, at most.

    Attributes:
        acting: (E * A,) which of a turn's agents each row observed is of, or NOBODY.
    """

    def __init__(self, layout: Layout, handles: np.ndarray, functions: int) -> None:
        self.layout, self.turns = layout, layout.turns
        self._envs = layout.environments(handles, functions)
        self._masks: dict[Turn, np.ndarray] = {}
        self.acting: dict[Turn, np.ndarray] = {}

    @classmethod
    def of(cls, layout: Layout, state: State) -> Decisions:
        """Those of one simulator, whose episode begins."""
        one = Decisions(layout, np.zeros(1, HANDLE), len(state.functions))
        one._turn_to(0, state)
        return one

    def __len__(self) -> int:
        return len(self._envs.episodes)

    def kind(self, env: int) -> int:
        """Code of the decision that is due in an environment, or DONE."""
        return int(self._envs.episodes[env]["kind"])

    def observe(self, turn: Turn, out: Observation) -> None:
        """Writes what the agents of a turn see into `Agent.parts` of E * A rows, C-contiguous.

        Turns are observed in the order of `turns`.
        """
        self.acting[turn] = acting = np.empty(len(out["mask"]), np.int64)
        see, parts = seeing(turn.see, turn.acting), ("context", "items", "mask", "critic")
        code, bids = self.layout.kind_of[turn].code, turn.agents[0].bids
        see(code, self._envs, bids, acting, *(out[part] for part in parts))
        self._masks[turn] = out["mask"].copy()  # the observation is the caller's
        for part in WINDOW_PARTS & out.keys():
            rows = out[part].reshape(len(self), -1, *out[part].shape[1:])
            rows[:] = getattr(self._envs, part)[:, None]
            out[part][acting == NOBODY] = 0.0

    def decide(self, turn: Turn, actions: np.ndarray) -> None:
        """Takes the actions of a turn: integers (E,), or (E * A, 2) of bids and places.

        Raises:
            InputError: an action is not allowed. Then nothing has changed.
        """
        masks, acting = self._masks[turn], self.acting[turn]
        actions = checked(turn.agents, masks, acting, actions, turn.together)
        if actions.ndim == 2:
            actions = actions.reshape(len(self), -1, 2)
        due = np.flatnonzero(self._envs.episodes["kind"] == self.layout.kind_of[turn].code)
        self._envs.choices[turn.decides][due] = turn.decide(self._envs, due, actions[due])

    def ask(
        self, state: State, kind: Kind, act: Callable[[str, Observation], Action], subject: int = 0
    ) -> int:
        """The row that agents choose in a simulator that is the only one, where one is due.

        Args:
            state: of the episode that has begun; it is read alone.
            kind: of the decision.
            act: the action of an agent, by its name and what it sees; not asked without a choice.
            subject: of a decision beside the engine's own.
        """
        envs = self._envs
        envs.states[0], envs.episodes[0]["kind"] = state[0], kind.code
        envs.choices[0]["subject"] = subject
        if kind.code == CHOOSE:
            first = envs.queue[0]
            if (forced := forced_choice(state, first)) != UNDECIDED:
                return len(first) if forced == NONE else 0
        look(envs, 0)
        for turn in kind.turns:
            seen = self.seen(turn)
            self.decide(turn, np.array([act(name, parts) for name, parts in seen.items()]))
        return int(envs.choices[0]["row"])

    def seen(self, turn: Turn) -> dict[str, Observation]:
        """What each agent that acts at a turn sees, in a simulator that is the only one."""
        self.observe(turn, rows := turn.room(1))
        return {
            turn.agents[agent].name: {part: column[row] for part, column in rows.items()}
            for row, agent in enumerate(self.acting[turn])
        }

    def actions_for(self, kind: Kind, row: int) -> list[np.ndarray]:
        """The inverse of `ask`: see `Kind.actions`."""
        return kind.actions(row, self._envs.first_node[0])

    def _turn_to(self, env: int, state: State) -> None:
        """Reads from a new episode which NUMA nodes each server type has."""
        types = state.servers["type"][state.nodes["server"]]
        first = self._envs.first_node[env]
        first[1:] = np.bincount(types, minlength=len(first) - 1).cumsum()
        self._envs.episodes[env]["cursor"] = 0


@lru_cache
def seeing(see: Any, acting: Any) -> Any:
    """Compiled: `see` of all agents that act at a turn, a row each; that of nobody is blank."""

    @compiled
    def see_all(code, envs, bids, agents, context, items, mask, critic) -> None:
        together = len(context) // len(envs.episodes)
        for env in range(len(envs.episodes)):
            state = envs.states[env : env + 1]
            for agent in range(together):
                row = env * together + agent
                mask[row] = 0.0
                if envs.episodes[env].kind == code:
                    agents[row] = acting(agent, envs, env)
                    copy(envs.critic[env], critic[row])
                    see(agent, state, envs, env, context[row], items[row], mask[row])
                else:
                    agents[row] = NOBODY
                    context[row] = 0.0
                    items[row] = 0.0
                    critic[row] = 0.0
                    mask[row, 0] = mask[row, bids] = 1.0

    return see_all


@lru_cache
def applying(apply: Any) -> Any:
    """Compiled: carries out what was decided, plays on and looks at the decision that is due."""

    @compiled
    def apply_all(code: int, envs: Environments) -> None:
        for env in range(len(envs.episodes)):
            if envs.episodes[env].kind == code:
                state = envs.states[env : env + 1]
                kind = apply(state, envs, env)
                if kind == 0:
                    kind = play_to_choice(state, envs.queue[env])
                envs.episodes[env].kind = kind
                if kind >= 0:
                    look(envs, env)

    return apply_all


@compiled
def look(envs: Environments, env: int) -> None:
    """Notes the potential of an environment, and looks at the decision that is due."""
    state, episode = envs.states[env : env + 1], envs.episodes
    update_finish_bounds(state)
    reached = potential(state, envs.objective[env], episode[env].cheapest)
    episode[env].reached = reached
    if episode[env].kind == DONE:
        return
    trace = envs.trace[env]
    if len(trace) > 0:
        while trace[episode[env].cursor + 1, 0] <= state.cluster[0].time:
            episode[env].cursor += 1
        before, reference = trace[episode[env].cursor, 1], trace[len(trace) - 1, 1]
        write_critic(state, episode[env].cheapest, reached, before, reference, envs.critic[env])
    if episode[env].kind == PLACE:
        look_at_nodes(state, envs, env)
