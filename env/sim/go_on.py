"""`go_on`: what compiled code cannot do between two decisions: forecasts, emptying its log."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from env.base.errors import InputError
from env.sim.block import State
from env.sim.engine import play
from env.sim.idle_forecast import answer_forecasts
from env.sim.records import FORECAST, NO_SERVER, NO_WARM_SLOT, TAKE_RUNS
from env.sim.rules import LEAST_SHARE


def go_on(state: State, kind: int, take: Callable[[np.ndarray], None]) -> int:
    """Plays on until the episode ends or waits for its caller.

    Args:
        state: of an episode in which functions belong to images.
        kind: what `play` returned.
        take: is given the RUN records that have ended, in the order of their ends.

    Returns:
        DONE, PLACE, CHOOSE or MORE_ARRIVALS.

    Raises:
        InputError: see `cannot_go_on`.
    """
    while True:
        if kind == FORECAST:
            answer_forecasts(state)
        else:
            take(state.runs[: int(state.queue[0]["runs_size"])].copy())
            state.queue[0]["runs_size"] = 0
            if kind < 0:
                raise cannot_go_on(state, kind)
            if kind != TAKE_RUNS:
                return int(kind)
        kind = play(state)


def cannot_go_on(state: State, kind: int) -> InputError:
    """What is to be said where `play` returns `kind` < 0: no unused record, or no server.

    Without a server it goes on as soon as one is brought back.
    """
    if kind == NO_SERVER:
        waiting = int(state.cluster[0]["queue_size"] + state.queue[0]["waiting"])
        return InputError(
            f"{waiting} functions wait at {float(state.cluster[0]['time'])} s, and no server in "
            "service takes the first of them"
        )
    if kind == NO_WARM_SLOT:
        return InputError(
            f"more than {len(state.idle)} containers are warm at "
            f"{float(state.cluster[0]['time'])} s: functions were given less than "
            f"{LEAST_SHARE:.0%} of the memory they need"
        )
    return InputError(
        f"more than {len(state.workflows)} workflows are active at "
        f"{float(state.cluster[0]['time'])} s: more workflow_slots are needed"
    )
