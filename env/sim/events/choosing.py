"""Where the order is `chosen`: who stands first, and what is chosen where there is no choice."""

from typing import Final

import numpy as np

from env.base.jit import compiled, compiled_apart
from env.sim.events.dispatch import node_for
from env.sim.events.engine import play
from env.sim.queue.central_queue import (
    choose,
    first_by_funcsched,
    starving,
    time_and_memory,
    winner,
)
from env.sim.state.block import State
from env.sim.state.records import CHOOSE, NONE

UNDECIDED: Final = -2
"""There is a choice."""

# One of the first K functions that wait, in the order of `funcsched`.
FIRST = np.dtype(
    [
        ("declared", np.int64),  # NONE behind the last
        ("priority", np.float64),  # -1 of the one that starves
        ("node", np.int64),  # where it fits now, or NONE
    ]
)


@compiled
def goes_before(state: State, priority: float, declared: int, other) -> bool:
    """Whether a declared function goes before a FIRST; of equal priority, who joined first."""
    if other.declared == NONE:
        return True
    if priority != other.priority:
        return priority < other.priority
    return state.waiting[declared].number < state.waiting[other.declared].number


@compiled
def find_first(state: State, first: np.ndarray):
    """Fills `first`, FIRST (K,), where functions wait; returns how many do."""
    for place in range(len(first)):
        first[place].declared = NONE
    waiting = 0
    starves = winner(state, state.by_age)
    if starves != NONE and not starving(state, state.waiting[starves].first):
        starves = NONE
    declared = state.queue[0].first_that_waits
    while declared != NONE:
        waiting += 1
        priority = -1.0 if declared == starves else time_and_memory(state, declared)
        place = min(waiting, len(first))
        while place > 0 and goes_before(state, priority, declared, first[place - 1]):
            place -= 1
            if place + 1 < len(first):
                first[place + 1].declared = first[place].declared
                first[place + 1].priority = first[place].priority
        if place < len(first):
            first[place].declared, first[place].priority = declared, priority
        declared = state.waiting[declared].next_that_waits
    for place in range(min(waiting, len(first))):
        first[place].node = node_for(state, state.waiting[first[place].declared].first)
    return waiting


@compiled_apart
def forced_choice(state: State, first: np.ndarray):
    """What is chosen where there is no choice: all wait where none fits, one alone starts.

    Args:
        state: where one of those that wait has to be chosen.
        first: out, FIRST (K,); nobody behind these is looked at.

    Returns:
        the declared function, NONE to hold back, or UNDECIDED.
    """
    waiting = find_first(state, first)
    for place in range(min(waiting, len(first))):
        if first[place].node != NONE:
            return first[0].declared if waiting == 1 else UNDECIDED
    return NONE


@compiled_apart
def play_to_choice(state: State, first: np.ndarray):
    """`play` up to where somebody has a choice, in a state to which nobody listens.

    Args:
        state: of an episode.
        first: out, FIRST (K,), where one of them has to be chosen.
    """
    while True:
        kind = play(state)
        if kind == CHOOSE:
            forced = forced_choice(state, first)
            if forced == UNDECIDED:
                return CHOOSE
            choose(state, forced)
        else:
            return kind


@compiled
def choose_first(state: State):
    """Chooses as `funcsched`: the first one starts, or all wait. Returns whether it fits."""
    declared = first_by_funcsched(state)
    fits = node_for(state, state.waiting[declared].first) != NONE
    if fits:
        choose(state, declared)
    return fits
