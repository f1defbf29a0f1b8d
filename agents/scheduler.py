"""The one protocol of every decision maker, learned or not, and the loop that plays an episode."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, NoReturn, Protocol

import numpy as np
from numpy.lib.recfunctions import unstructured_to_structured

from env.base.errors import InputError
from env.learn.actions import whole_number
from env.learn.tenant_agents import TenantAgents
from env.score.reward import Objective
from env.sim.declared.aside import DecisionKind
from env.sim.declared.ordering import Order
from env.sim.declared.rules import Placement as Fit
from env.sim.events.choosing import FIRST, forced_choice
from env.sim.forecast.candidates import forecast_placements
from env.sim.state.block import State
from env.sim.state.containers import memory_tier
from env.sim.state.records import NONE
from env.sim.view.raw_env import RawEnv
from env.sim.view.workload import Function

Kind = Literal["learned", "baseline", "reference"]
"""What a scheduler is: learned, hand-written, or a reference that knows more or tries it all."""


class Shown(RawEnv):
    """An episode as schedulers see it, as it goes on: the records can be read alone."""

    def __init__(self, env: RawEnv) -> None:
        self.__dict__ = env.__dict__

    @property
    def state(self) -> State:  # type: ignore[override]
        """The records."""
        played: State = self.__dict__["state"]
        return played.read_only

    def _refuse(self, *_: object) -> NoReturn:
        raise InputError("the episode is to be read only: fork() gives a copy to play on")

    reset = step = choose = grant = answer = _refuse  # type: ignore[assignment]


class Decision:
    """What a scheduler is asked: a table of rows, and the whole cluster at this moment.

    Attributes:
        kind: `place` the current function, `choose` which of those that wait starts next,
            `share`: how many tickets the workflow `env.newcomer` gets, or the name of one of the
            scheduler's `asked`.
        env: the simulator; it can be read and forked.
        objective: what J is made of.
        rng: what a scheduler draws with.
    """

    def __init__(
        self,
        env: RawEnv,
        objective: Objective,
        tiers: Sequence[float] = (1.0,),
        rng: np.random.Generator | None = None,
    ) -> None:
        self.env = env if isinstance(env, Shown) else Shown(env)
        self.objective = objective
        self.rng = rng or np.random.default_rng(0)
        self.kind = "place"
        if env.question is not None:
            self.kind = env.question.kind.name
        elif env.choosing:
            self.kind = "choose"
        elif env.newcomer is not None:
            self.kind = "share"
        self._tiers = tiers

    @property
    def function(self) -> Function:
        """The function to be placed."""
        function = self.env.current_function
        assert function is not None
        return function

    def candidates(self, memory_alloc: int) -> np.ndarray:
        """CANDIDATE (N,): what placing it with `memory_alloc` MB on each NUMA node would do."""
        forecast = forecast_placements(self.env.state, memory_alloc)
        forecast.flags.writeable = False
        return forecast

    @cached_property
    def rows(self) -> np.ndarray:
        """Of which one is to be chosen, by `kind`.

        - `place`: CANDIDATE (N * K,), row n * K + k is NUMA node n with memory tier k; only
          those that are `feasible` may be chosen.
        - `choose`: FIRST (W + 1,), the declared functions that wait in the order of `funcsched`,
          see env/sim/events/choosing.py; the last row holds all back until something changes.
        - `share`: `tickets` (L,), the levels of the scheduler's order.
        - others: the features of the kind by name, and `feasible`.
        """
        if (question := self.env.question) is not None:
            names = (*question.kind.features, "feasible")
            table = np.column_stack([question.rows, question.mask])
            return unstructured_to_structured(table, names=names)
        if self.kind == "place":
            tables = [self.candidates(int(memory)) for memory in self._memory]
            return tables[0] if len(tables) == 1 else np.stack(tables, axis=1).reshape(-1)
        if self.kind == "share":
            order = self.env.rules.order
            assert isinstance(order, TenantAgents)
            return np.array(list(order.levels), [("tickets", np.float64)])
        rows = np.zeros(len(self.env.waiting) + 1, FIRST)
        forced_choice(self.env.state, rows[:-1])
        rows[-1]["declared"] = rows[-1]["node"] = NONE
        return rows

    @property
    def _memory(self) -> list[int]:
        """(K,) MB of the current function, of each tier."""
        return [int(memory_tier(self.function.memory_req, tier)) for tier in self._tiers]

    @property
    def memory_alloc(self) -> np.ndarray:
        """MB of each row of `place`."""
        return np.tile(self._memory, len(self.env.state.nodes))

    @property
    def free_memory(self) -> np.ndarray:
        """MB that no container holds or waits for on the node of each row of `place`.

        It is negative where a queue wants more.
        """
        memory = np.repeat(self.env.state.nodes["memory"], len(self._tiers))
        return np.asarray(memory - self.rows["allocated_memory"])

    @property
    def lacks_resources(self) -> np.ndarray:
        """Whether it would wait on the node of each row of `place`, where resources are named."""
        return np.asarray(self.rows["waits"] > 0) & (len(self.env.state.named_kept) > 0)

    def smallest(self, *keys: np.ndarray) -> int:
        """The feasible row with the smallest first key; ties by the next key, then by place."""
        feasible = np.flatnonzero(self.rows["feasible"])
        order = np.lexsort(tuple(key[feasible] for key in reversed(keys)))
        return int(feasible[order[0]])

    def placement(self, row: Any) -> tuple[int, int]:
        """NUMA node and MB of a row of `place`.

        Raises:
            InputError: there is no such row.
        """
        node, tier = divmod(self.checked(row), len(self._tiers))
        return node, self._memory[tier]

    def checked(self, row: Any) -> int:
        """A row, as code of anybody has returned it.

        Raises:
            InputError: it is none of `rows`.
        """
        places = len(self.env.state.nodes) * len(self._tiers)
        # Forecasts are not needed to count the places.
        count = places if self.kind == "place" else len(self.rows)
        return whole_number("choose: row", row, 0, count - 1)

    def carry_out(self, env: RawEnv, row: Any) -> None:
        """Does in an episode, at this moment of it, what a scheduler has chosen.

        Raises:
            InputError: there is no such row, or it is not possible.
        """
        if self.env.question is not None:
            env.answer(self.checked(row))
        elif self.kind == "place":
            node, memory_alloc = self.placement(row)
            env.step(*env.place_of(node), memory_alloc)
        elif self.kind == "share":
            env.grant(float(self.rows["tickets"][self.checked(row)]))
        else:
            declared = int(self.rows["declared"][self.checked(row)])
            env.choose(None if declared == NONE else declared)


class Scheduler(Protocol):
    """Decides, whatever it is asked.

    Attributes:
        name: what tables call it.
        kind: what it is compared as; references are never the best baseline.
        order: who is scheduled next where functions wait centrally; None: in the order of
            submission. By `Chosen` and `TenantAgents` the scheduler is asked.
        fit: who places there: the engine by one of its rules, or `asked`, the scheduler.
        tiers: ratios of the memory that a function requires, with which it places.
        asked: kinds of decision that it takes beside those of the engine.
    """

    name: str
    kind: Kind = "baseline"
    order: Order | None = None
    fit: Fit = "asked"
    tiers: Sequence[float] = (1.0,)
    asked: Sequence[DecisionKind] = ()

    def reset(self, env: RawEnv, objective: Objective, seed: np.random.SeedSequence) -> None:
        """Turns to a new episode; everything random comes from `seed`."""
        return None

    def choose(self, decision: Decision) -> int:
        """A row of the decision."""


def play(
    env: RawEnv, scheduler: Scheduler, objective: Objective, seed: np.random.SeedSequence
) -> None:
    """Lets a scheduler decide until an episode is over; one without `tiers` has one of 1."""
    shown, rng = Shown(env), np.random.default_rng(seed)
    tiers = getattr(scheduler, "tiers", (1.0,))
    scheduler.reset(shown, objective, seed)
    while not env.done:
        decision = Decision(shown, objective, tiers, rng)
        decision.carry_out(env, scheduler.choose(decision))
