"""Keep-alive: how long a finished container stays warm, and which one makes room for another.

The policies are those of keep_alive_policy.py, which documents their parameters and sources.
"""

from typing import Final

import numpy as np

from env.base.jit import compiled, compiled_apart
from env.sim.node.fit import free_memory
from env.sim.node.server_state import is_leased
from env.sim.node.warm import add_idle, gone_cold, remove_idle
from env.sim.state.block import State
from env.sim.state.records import EXPIRY, IN_SERVICE, INF, NONE, PREWARMING
from env.sim.state.timers import set_timer

NO_KEEP_ALIVE: Final = 0
FIXED: Final = 1
LRU: Final = 2
FAASCACHE: Final = 3
HYBRID_HISTOGRAM: Final = 4
ECOLIFE: Final = 5


@compiled
def reset_keep_alive(state: State) -> None:
    """No container is idle, and no idle time has been observed."""
    state.newest[:] = NONE
    state.histograms[:] = 0
    for node in range(len(state.nodes)):
        state.nodes[node].first_idle = state.nodes[node].last_idle = NONE
        state.nodes[node].idle_memory = 0
        state.nodes[node].cache_clock = 0.0
    for image in range(len(state.images)):
        state.images[image].warm = state.images[image].running = 0
        state.images[image].frequency = state.images[image].active = 0
        state.images[image].last_end = np.nan
        state.images[image].prewarm_after = 0.0
        state.images[image].keep_until = state.options[0].keep_seconds
        state.images[image].number = NONE
        state.images[image].idle_times = 0
        state.images[image].out_of_bounds = 0
        state.images[image].awaits_forecast = 0


@compiled_apart
def release(state: State, node: int, image: int, memory: int, time: float, idle_image: bool):
    """A container has nothing to do any more: it stays warm, with the `memory` it had, or goes.

    Args:
        idle_image: whether no other request of the image waits or runs.
    """
    images = state.images
    server = state.nodes[node].server
    policy = state.options[0].keep_alive
    if policy == HYBRID_HISTOGRAM and idle_image and images[image].prewarm_after > 0.0:
        images[image].number = state.queue[0].next_number
        state.queue[0].next_number += 1
        due = time + images[image].prewarm_after
        set_timer(state, due, PREWARMING, images[image].number, image)
    elif policy != NO_KEEP_ALIVE and state.servers[server].condition == IN_SERVICE:
        expiration = INF
        if policy in (FIXED, HYBRID_HISTOGRAM, ECOLIFE):
            expiration = time + images[image].keep_until
        keep_warm(state, node, image, memory, time, expiration)
        make_room(state, node)
    gone_cold(state, image)


@compiled
def keep_warm(state: State, node, image, memory, ready_time, expiration) -> None:
    """An idle container and the timer of its end."""
    index = add_idle(state, node, image, memory, ready_time)
    if expiration < INF:
        set_timer(state, expiration, EXPIRY, state.idle[index].number, index)


@compiled
def remove_warm(state: State, index: int) -> None:
    """An idle container is stopped."""
    image = state.idle[index].image
    remove_idle(state, index)
    gone_cold(state, image)


@compiled_apart
def prewarm(state: State, image: int, time: float) -> None:
    """Starts a container before its next request comes, where memory is free.

    A guess evicts nobody and starts no server. Neither is a second container started beside one
    that is there.
    """
    images = state.images
    images[image].number = NONE
    if images[image].active > 0 or images[image].warm > 0:
        return
    best, most = NONE, images[image].memory - 1
    for node in range(len(state.nodes)):
        free = free_memory(state, node) - state.nodes[node].waiting_memory
        if free > most and is_leased(state, state.nodes[node].server):
            best, most = node, free
    expiration = images[image].last_end + images[image].keep_until
    if best != NONE and expiration > time:
        ready = time + images[image].cold_start
        keep_warm(state, best, image, images[image].memory, ready, expiration)


@compiled_apart
def make_room(state: State, node: int) -> None:
    """Removes idle containers of a node until no more than its memory is held."""
    nodes = state.nodes
    while free_memory(state, node) < 0 and nodes[node].first_idle != NONE:
        victim = nodes[node].first_idle
        if state.options[0].keep_alive == FAASCACHE:
            victim = least_valuable(state, node)
            nodes[node].cache_clock = max(nodes[node].cache_clock, value(state, victim))
        remove_warm(state, victim)


@compiled_apart
def remove_all_warm(state: State, server: int) -> None:
    """The idle containers of a server end with its lease."""
    first = state.servers[server].first_node
    for node in range(first, first + state.servers[server].node_count):
        while state.nodes[node].first_idle != NONE:
            remove_warm(state, state.nodes[node].first_idle)


@compiled
def value(state: State, index: int):
    """Greedy-Dual-Size-Frequency: clock + frequency * cold start / size."""
    image = state.idle[index].image
    benefit = state.images[image].frequency * state.images[image].cold_start
    return state.idle[index].clock + benefit / state.idle[index].memory


@compiled
def least_valuable(state: State, node: int):
    """The idle container of a node with the smallest value; of equal ones, the oldest."""
    best = index = state.nodes[node].first_idle
    while index != NONE:
        if value(state, index) < value(state, best):
            best = index
        index = state.idle[index].next
    return best


@compiled
def request_arrives(state: State, image: int, time: float) -> None:
    """Notes how long an image was idle before a request of it."""
    images = state.images
    # False where it never ran, and where a request of before time 0 still does.
    idle = images[image].active == 0 and time >= images[image].last_end
    if idle and state.options[0].keep_alive in (HYBRID_HISTOGRAM, ECOLIFE):
        note_idle_time(state, image, time - images[image].last_end)
    images[image].active += 1


@compiled
def ends_last(state: State, image: int, time: float) -> None:
    """Notes an end of a request, if none ends later; `last_end` is NaN before the first."""
    if not time <= state.images[image].last_end:
        state.images[image].last_end = time


@compiled
def learn_idle_times(state: State, image: np.ndarray, begin: np.ndarray, end: np.ndarray) -> None:
    """Adds the idle times between requests, entry by entry: (K,) images, begins and ends."""
    images = state.images
    for k in range(len(image)):
        last_end = images[image[k]].last_end
        if begin[k] >= last_end:
            note_idle_time(state, image[k], begin[k] - last_end)
        ends_last(state, image[k], end[k])


@compiled_apart
def note_idle_time(state: State, image: int, seconds: float) -> None:
    """Adds an idle time to the histogram of an image and sets its windows."""
    images, idle_times = state.images, state.idle_times
    idle_times[image, images[image].idle_times % idle_times.shape[1]] = seconds
    images[image].idle_times += 1
    bins = state.histograms.shape[1]
    place = seconds / state.options[0].bin
    if place < bins:
        state.histograms[image, int(place)] += 1
    else:
        images[image].out_of_bounds += 1
    if state.options[0].keep_alive == HYBRID_HISTOGRAM:
        set_windows(state, image)


@compiled
def set_windows(state: State, image: int) -> None:
    """When the next container of an image is to be started and until when it is kept."""
    images, options, histograms = state.images, state.options, state.histograms
    images[image].prewarm_after = 0.0
    images[image].keep_until = options[0].keep_seconds
    images[image].awaits_forecast = 0
    count = images[image].idle_times
    outside = images[image].out_of_bounds
    if count < options[0].least_idle_times:
        return
    if outside > options[0].most_out_of_bounds * count:
        images[image].awaits_forecast = 1
        state.queue[0].forecasts_due = 1
        return
    bins = histograms.shape[1]
    inside = count - outside
    mean = inside / bins
    squares = 0.0
    for place in range(bins):
        squares += (histograms[image, place] - mean) ** 2
    if np.sqrt(squares / bins) < options[0].least_variation * mean:
        return
    head = percentile_bin(histograms, image, inside * options[0].prewarm_percentile / 100.0)
    tail = percentile_bin(histograms, image, inside * options[0].keep_percentile / 100.0)
    margin, width = options[0].margin, options[0].bin
    images[image].prewarm_after = head * width * (1.0 - margin)
    images[image].keep_until = (tail + 1) * width * (1.0 + margin)


@compiled
def percentile_bin(histograms: np.ndarray, image: int, rank: float):
    """The first bin up to which at least `rank` idle times were counted."""
    counted = 0
    for place in range(histograms.shape[1]):
        counted += histograms[image, place]
        if counted >= rank and counted > 0:
            return place
    return histograms.shape[1] - 1
