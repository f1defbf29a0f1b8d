"""Timers on the one heap of an episode: set, checked, and dropped when out of date.

A timer is not taken back: what it was for carries another number by the time it fires.
"""

from env.base.jit import compiled, compiled_apart
from env.sim.state.block import State
from env.sim.state.heap import drop, push
from env.sim.state.records import (
    EXPIRY,
    FOLLOW_UP,
    LEASE_END,
    PATIENCE,
    PREWARMING,
    RETRY,
    SLICE_END,
    STARVATION,
)


@compiled
def up_to_date(state: State, position: int) -> bool:
    """Whether a timer still means something."""
    kind, number = state.timers[position].major, state.timers[position].minor
    index = state.timers[position].index
    if kind == SLICE_END:
        return state.requests[state.containers[index].function].run == number
    if kind == EXPIRY:
        return state.idle[index].number == number
    if kind == PREWARMING:
        return state.images[index].number == number
    if kind == LEASE_END:
        return state.servers[number].lease_number == index
    if kind == PATIENCE:
        return state.queue[0].patience_timer == state.timers[position].time
    if kind == STARVATION:
        return state.queue[0].starvation_timer == state.timers[position].time
    if kind == RETRY:
        return state.retried[number].backs_off == 1 and state.functions[number].attempt == index
    if kind == FOLLOW_UP:
        return state.servers[number].follow_up == index
    return True


@compiled_apart
def set_timer(state: State, time: float, kind: int, number: int, index: int) -> None:
    """Sets a timer; when the heap is full, those that are out of date make room.

    The heap holds twice as many as can be up to date at once.
    """
    timers, cluster = state.timers, state.cluster
    if cluster[0].timers_size == len(timers):
        kept = 0
        for position in range(len(timers)):
            if up_to_date(state, position):
                event_time, event_index = timers[position].time, timers[position].index
                major, minor = timers[position].major, timers[position].minor
                push(timers, kept, event_time, major, minor, event_index)
                kept += 1
        cluster[0].timers_size = kept
    push(timers, cluster[0].timers_size, time, kind, number, index)
    cluster[0].timers_size += 1


@compiled
def drop_timer(state: State) -> None:
    """Removes the first timer."""
    drop(state.timers, state.cluster[0].timers_size, 0)
    state.cluster[0].timers_size -= 1
