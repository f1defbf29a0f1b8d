"""What is decided and what changes beside the engine, which stops after every event for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from env.base.errors import InputError
from env.sim.declared.bounds import LONGEST
from env.sim.state.block import State
from env.sim.state.records import NONE


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


class Question(NamedTuple):
    """A decision that is due.

    Attributes:
        kind: of the decision.
        subject: what it is about.
        rows: float32 (M, I), of which one is to be chosen.
        mask: float32 (M,), 1 where a row may be.
    """

    kind: DecisionKind
    subject: int
    rows: np.ndarray
    mask: np.ndarray


def next_question(
    state: State, asked: Sequence[DecisionKind], after: Question | None
) -> Question | None:
    """The first question after another one of this moment, kind by kind and subject by subject."""
    first = 0 if after is None else asked.index(after.kind)
    for kind in asked[first:]:
        if kind.ticks != state.cluster[0]["ticked"]:
            continue
        subject = int(kind.due(state, after.subject if after and after.kind is kind else NONE))
        if subject != NONE:
            rows = np.zeros((kind.rows, len(kind.features)), np.float32)
            question = Question(kind, subject, rows, np.zeros(kind.rows, np.float32))
            kind.fill(state, subject, rows, question.mask)
            return question
    return None
