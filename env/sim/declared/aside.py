"""What is decided and what changes beside the engine, which stops after every event for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from env.base.errors import InputError
from env.sim.declared.bounds import LONGEST

if TYPE_CHECKING:
    from env.sim.state.block import State


@dataclass(frozen=True)
class DecisionKind:
    """A kind of decision beside the engine's own: of each subject a row of a table is chosen.

    What is compiled (`compiled` in env/base/jit.py) gets the `State`.

    Attributes:
        name: of the kind, and of the agent that decides.
        features: names of the columns of a row.
        rows: M, of which one is chosen.
        due: compiled, `due(state, after)`: after an event, the first subject above `after`, such as
            a server, about which there is something to decide now; NONE for none; `after` again,
            to ask about the same one once more.
        fill: compiled, `fill(state, subject, rows, mask)`: out, float32 (M, I), and (M,), 1 where a
            row may be chosen; both are 0 before.
        apply: compiled, `apply(state, subject, row)` carries it out.
        ticks: whether it is due at the ticks of the world (`Autoscale`) in place of after events.
        subjects: names of those that have an agent each, NAME_SUBJECT; none: there is one agent.
    """

    name: str
    features: tuple[str, ...]
    rows: int
    due: Any
    fill: Any
    apply: Any
    ticks: bool = False
    subjects: tuple[str, ...] = ()


@dataclass(frozen=True)
class Change:
    """A change of the cluster at a moment, such as a failure.

    Attributes:
        time: seconds; it comes after all completions of this moment.
        apply: makes the change, by what env/sim/events/endings.py has for servers.
        events: if given, it comes once so many events have happened, as far as it is time.

    Raises:
        InputError: there is no such time.
    """

    time: float
    apply: Callable[[State], object]
    events: int | None = None

    def __post_init__(self) -> None:
        if not 0.0 <= self.time <= LONGEST:
            raise InputError(f"changes: time {self.time}, 0 to {LONGEST:g} s are possible")
