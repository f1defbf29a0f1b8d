"""Decisions that are due in simulators side by side: agents see, act, and have chosen a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from env.learn.actions import Action, taken
from env.learn.agent import Observation
from env.learn.kind import Kind, Turn
from env.learn.layouts import Layout
from env.learn.loops import NOBODY, deciding, look_at, seeing
from env.learn.sight import CHOICE, EPISODE, OF_ALL, Environments, Sight, turn_to_episode
from env.sim.events.choosing import UNDECIDED, forced_choice
from env.sim.state.block import HANDLE, State
from env.sim.state.records import CHOOSE, NONE

WINDOW_PARTS = {"functions", "edges"}
"""Of an observation, with a window of the workflow; all agents see the same in a decision."""


class Decisions:
    """What agents decide in E simulators, each turn of all of them one compiled call.

    Args:
        layout: the agents and their turns.
        handles: HANDLE (E,), of the simulators' states.
        functions: of an episode, at most.

    Attributes:
        layout: the agents and their turns.
        turns: of all kinds of decision, in their order.
    """

    def __init__(self, layout: Layout, handles: np.ndarray, functions: int) -> None:
        self.layout, self.turns = layout, layout.turns
        self._handles = handles
        self._sights = layout.sights(len(handles), functions)
        self._episodes = np.zeros(len(handles), EPISODE)
        self._choices = np.zeros(len(handles), CHOICE)
        self._weights = np.tile(layout.objective.weights, (len(handles), 1))
        self._masks: dict[Turn, np.ndarray] = {}
        self._acting: dict[Turn, np.ndarray] = {}

    @classmethod
    def of(cls, layout: Layout, state: State) -> Decisions:
        """Those of one simulator, whose episode begins."""
        one = Decisions(layout, np.zeros(1, HANDLE), len(state.functions))
        turn_to_episode(state, one._sight(0))
        return one

    def __len__(self) -> int:
        return len(self._episodes)

    def kind(self, env: int) -> int:
        """Code of the decision that is due in an environment, or DONE."""
        return int(self._episodes[env]["kind"])

    def acting(self, turn: Turn) -> np.ndarray:
        """(E * A,) which of the turn's agents each row observed is of, or NOBODY."""
        return self._acting[turn]

    def observe(self, turn: Turn, out: Observation) -> None:
        """Writes what the agents of a turn see.

        Args:
            turn: of `turns`, in their order.
            out: the parts of `Agent.observation_space`, float32, of E * A rows, C-contiguous.
        """
        self._acting[turn] = acting = np.empty(len(out["mask"]), np.int64)
        seeing(turn.see, turn.acting)(
            self.layout.kind_of[turn].code,
            self._all,
            turn.agents[0].bids,
            acting,
            out["context"],
            out["items"],
            out["mask"],
            out["critic"],
        )
        self._masks[turn] = out["mask"].copy()  # the observation is the caller's
        for part in WINDOW_PARTS & out.keys():
            rows = out[part].reshape(len(self), -1, *out[part].shape[1:])
            rows[:] = getattr(self._sights, part)[:, None]
            out[part][acting == NOBODY] = 0.0

    def decide(self, turn: Turn, actions: np.ndarray) -> None:
        """Takes the actions of a turn: integers (E,), or (E * A, 2) of bids and places.

        Raises:
            InputError: an action is not allowed. Then nothing has changed, and the turn can be
                answered again.
        """
        masks, acting = self._masks[turn], self._acting[turn]
        actions = taken(turn.agents, masks, acting, actions, turn.together)
        bids = np.zeros_like(actions)
        if actions.ndim == 2:
            bids, actions = np.ascontiguousarray(actions.T)
        deciding(turn.decide)(self.layout.kind_of[turn].code, self._all, actions, bids)

    def ask(self, state: State, kind: Kind, act: Callable[[str, Observation], Action]) -> int:
        """The row that agents choose in a simulator that is the only one, where one is due.

        Args:
            state: of the episode that has begun; it is read alone.
            kind: of the decision.
            act: the action of an agent, by its name and what it sees; not asked without a choice.
        """
        self._handles[0], self._episodes[0]["kind"] = state[0], kind.code
        if kind.code == CHOOSE:
            first = self._sights.queue[0]
            if (forced := forced_choice(state, first)) != UNDECIDED:
                return len(first) if forced == NONE else 0
        self._look_at([0])
        for turn in kind.turns:
            self.observe(turn, seen := turn.room(1))
            names = [turn.agents[who].name for who in self.acting(turn)]
            rows = [{part: seen[part][row] for part in seen} for row in range(len(names))]
            self.decide(turn, np.array([act(*each) for each in zip(names, rows, strict=True)]))
        return int(self._choices[0]["row"])

    def actions_for(self, kind: Kind, row: int) -> list[np.ndarray]:
        """The inverse of `ask`: see `Kind.actions`."""
        return kind.actions(row, self._sights.first_node[0])

    @property
    def _all(self) -> Environments:
        return Environments(
            self._handles, self._sights, self._episodes, self._choices, self._weights
        )

    def _look_at(self, environments: Sequence[int] | np.ndarray) -> None:
        """Some environments have come to a decision."""
        if len(environments):
            look_at(self._all, np.array(environments))

    def _sight(self, env: int) -> Sight:
        own = (part[env] for part in self._sights[:-OF_ALL])
        return Sight._make((*own, *self._sights[-OF_ALL:]))
