"""The one protocol of every decision maker, learned or not, and the loop that plays an episode."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, NoReturn, Protocol, cast

import numpy as np

from env.base.errors import InputError
from env.base.schema import one_line
from env.learn.actions import integers
from env.score.reward import Objective
from env.sim.declared.ordering import Order
from env.sim.declared.rules import Placement as Fit
from env.sim.forecast.candidates import forecast_placements
from env.sim.state.block import State
from env.sim.view.function import Function
from env.sim.view.raw_env import RawEnv

Kind = Literal["learned", "baseline", "reference"]
"""What a scheduler is: learned, hand-written, or a reference that knows more or tries it all."""


class Placement(NamedTuple):
    """NUMA node (index into the records) and MB."""

    node: int
    memory_alloc: int


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

    reset = step = choose = grant = _refuse  # type: ignore[assignment]


class Decision:
    """What a scheduler may look at: what is to be decided, and the whole cluster at this moment.

    Either the current function is to be placed, or one of `env.waiting` is to be chosen, or the
    workflow `env.newcomer` is to get tickets.

    Attributes:
        env: the simulator; it can be read and forked.
        objective: what J is made of.
    """

    def __init__(self, env: RawEnv, objective: Objective) -> None:
        self.env = env if isinstance(env, Shown) else Shown(env)
        self.objective = objective
        self._candidates: dict[int, np.ndarray] = {}

    @property
    def function(self) -> Function:
        """The function to be placed."""
        function = self.env.current_function
        assert function is not None
        return function

    def candidates(self, memory_alloc: int) -> np.ndarray:
        """CANDIDATE (N,): what placing it with `memory_alloc` MB on each NUMA node would do."""
        if memory_alloc not in self._candidates:
            found = forecast_placements(self.env.state, memory_alloc)
            found.flags.writeable = False
            self._candidates[memory_alloc] = found
        return self._candidates[memory_alloc]


def checked_placement(placed: Any, nodes: int) -> Placement:
    """What `place` of a scheduler returned, if it is a placement.

    Args:
        placed: as it was returned, by code of anybody.
        nodes: how many NUMA nodes there are.

    Raises:
        InputError: it is something else, or on a node that there is not.
    """
    numbers = integers(placed, 2)
    if numbers is None:
        raise InputError(
            f"place returned {one_line(repr(placed)[:100])}, a Placement of NUMA node and MB is "
            "needed, whole numbers"
        )
    placement = Placement(*numbers)
    if not 0 <= placement.node < nodes:
        raise InputError(f"place returned NUMA node {placement.node}, allowed: 0 to {nodes - 1}")
    return placement


class Scheduler(Protocol):
    """Places functions.

    Attributes:
        name: what tables call it.
        kind: what it is compared as; references are never the best baseline.
        order: who goes next where functions wait centrally; None: in the order of submission.
        fit: who places there: the engine by one of its rules, or `asked`, the scheduler.
    """

    name: str
    kind: Kind
    order: Order | None
    fit: Fit

    def reset(self, env: RawEnv, objective: Objective, seed: np.random.SeedSequence) -> None:
        """Turns to a new episode; everything random comes from `seed`."""

    def place(self, decision: Decision) -> Placement:
        """NUMA node and MB for the current function."""


class Decider(Scheduler, Protocol):
    """A scheduler whose order asks it for more than places."""

    def choose(self, decision: Decision) -> int | None:
        """Which of `env.waiting` goes next; None holds back until something changes."""

    def grant(self, decision: Decision) -> float:
        """How many tickets of its tenant's own currency the workflow `env.newcomer` gets."""


def play(
    env: RawEnv, scheduler: Scheduler, objective: Objective, seed: np.random.SeedSequence
) -> None:
    """Lets a scheduler decide on every function of an episode.

    Where its order is `Chosen` or `TenantAgents` it has the method of `Decider` that goes with it.
    """
    shown = Shown(env)
    scheduler.reset(shown, objective, seed)
    decider = cast(Decider, scheduler)
    while not env.done:
        decision = Decision(shown, objective)
        if env.choosing:
            env.choose(decider.choose(decision))
        elif env.newcomer is not None:
            env.grant(decider.grant(decision))
        else:
            node, memory_alloc = scheduler.place(decision)
            env.step(*env.place_of(node), memory_alloc)
