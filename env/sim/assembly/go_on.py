"""`go_on`: what compiled code cannot do between two decisions: forecasts, logs, larger tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from env.base.errors import InputError
from env.sim.assembly.with_rules import with_more_warm
from env.sim.events.engine import play
from env.sim.node.idle_forecast import answer_forecasts
from env.sim.state.block import State
from env.sim.state.records import FORECAST, MORE_WARM, NO_SERVER, TAKE_HISTORY


class Played(Protocol):
    """Whose state `go_on` may replace by a larger one."""

    state: State


def go_on(played: Played, kind: int, take: Callable[[np.ndarray], None]) -> int:
    """Plays on until the episode ends or waits for its caller.

    Args:
        played: an episode.
        kind: what `play` returned.
        take: is given the entries of its history.

    Returns:
        DONE, PLACE, CHOOSE or MORE_ARRIVALS.

    Raises:
        InputError: there is no unused record, or no server in service holds what waits; it goes on
            as soon as one is brought back.
    """
    while True:
        state = played.state
        if kind == FORECAST:
            answer_forecasts(state)
        elif kind == MORE_WARM:
            played.state = with_more_warm(state)
        else:
            if entries := int(state.cluster[0]["entries"]):
                take(state.history[:entries].copy())
                state.cluster[0]["entries"] = 0
            if kind < 0:
                raise cannot_go_on(state, kind)
            if kind != TAKE_HISTORY:
                return int(kind)
        kind = play(played.state)


def cannot_go_on(state: State, kind: int) -> InputError:
    """What is to be said where `play` returns `kind` < 0."""
    if kind == NO_SERVER:
        waiting = int(state.cluster[0]["queue_size"] + state.queue[0]["waiting"])
        return InputError(
            f"{waiting} functions wait at {float(state.cluster[0]['time'])} s, and no server in "
            "service holds any of them"
        )
    return InputError(
        f"more than {len(state.workflows)} workflows are active at "
        f"{float(state.cluster[0]['time'])} s: more workflow_slots are needed"
    )
