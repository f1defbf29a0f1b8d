"""The questions of an episode: decisions of the kinds of env/sim/declared/aside.py that are due."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from env.sim.declared.aside import DecisionKind
from env.sim.state.block import State
from env.sim.state.records import NONE


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
