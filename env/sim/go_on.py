"""`go_on`: what compiled code cannot do between two decisions: forecasts, emptying its log."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from env.base.errors import InputError
from env.sim.block import State
from env.sim.engine import play
from env.sim.idle_forecast import answer_forecasts
from env.sim.records import FORECAST, NO_WARM_SLOT, TAKE_RUNS
from env.sim.rules import LEAST_SHARE, Chooser


def go_on(
    state: State,
    kind: int,
    take: Callable[[np.ndarray], None],
    chooser: Chooser | None = None,
) -> int:
    """Plays on until the episode ends or waits for its caller.

    Args:
        state: of an episode in which functions belong to images.
        kind: what `play` returned.
        take: is given the RUN records that have ended, in the order of their ends.
        chooser: of its `Rules`; says when there is something to choose.

    Returns:
        DONE, PLACE, CHOOSE or MORE_ARRIVALS.

    Raises:
        InputError: more workflows are active than there are slots.
    """
    while True:
        if kind == FORECAST:
            answer_forecasts(state)
        else:
            take(state.runs[: int(state.queue[0]["runs_size"])].copy())
            state.queue[0]["runs_size"] = 0
            if kind < 0:
                raise out_of_records(state, kind)
            if kind != TAKE_RUNS:
                return int(kind)
        kind = (play if chooser is None else chooser.play)(state)


def out_of_records(state: State, kind: int) -> InputError:
    """What is to be said where `play` finds no unused record; `kind` is the code it returned."""
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
