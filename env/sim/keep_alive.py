"""Keep-alive: how long a finished container stays warm, and which one makes room for another.

The policies are those of keep_alive_policy.py, which documents their parameters and sources.
"""

from typing import Final

import numpy as np

from env.sim.jit import compiled
from env.sim.records import EXPIRY, INF, NONE, PREWARMING
from env.sim.timers import set_timer
from env.sim.warm import add_idle, free_memory, gone_cold, remove_idle

NO_KEEP_ALIVE: Final = 0
FIXED: Final = 1
LRU: Final = 2
FAASCACHE: Final = 3
HYBRID_HISTOGRAM: Final = 4


@compiled
def reset_keep_alive(controller):
    """Nothing is known of idle times."""
    controller.queue[0].forecasts_due = 0
    controller.histograms[:] = 0
    for image in range(len(controller.images)):
        controller.images[image].active = 0
        controller.images[image].last_end = np.nan
        controller.images[image].prewarm_after = 0.0
        controller.images[image].keep_until = controller.options[0].keep_seconds
        controller.images[image].number = NONE
        controller.images[image].idle_times = 0
        controller.images[image].out_of_bounds = 0
        controller.images[image].awaits_forecast = 0


@compiled
def release(state, controller, node, image, time, idle_image):
    """A container has nothing to do any more: it stays warm or goes.

    Args:
        idle_image: whether no other request of the image waits or runs.
    """
    images = controller.images
    policy = controller.options[0].keep_alive
    if policy == HYBRID_HISTOGRAM and idle_image and images[image].prewarm_after > 0.0:
        images[image].number = controller.queue[0].next_number
        controller.queue[0].next_number += 1
        due = time + images[image].prewarm_after
        set_timer(state, controller, due, PREWARMING, images[image].number, image)
    elif policy != NO_KEEP_ALIVE:
        expiration = INF
        if policy in (FIXED, HYBRID_HISTOGRAM):
            expiration = time + images[image].keep_until
        keep_warm(state, controller, node, image, time, expiration)
    gone_cold(controller, image)


@compiled
def keep_warm(state, controller, node, image, ready_time, expiration):
    """An idle container and the timer of its end."""
    index = add_idle(state, controller, node, image, ready_time, expiration)
    if expiration < INF:
        set_timer(state, controller, expiration, EXPIRY, controller.idle[index].number, index)


@compiled
def remove_warm(controller, index):
    """An idle container is stopped."""
    image = controller.idle[index].image
    remove_idle(controller, index)
    gone_cold(controller, image)


@compiled
def prewarm(state, controller, image, time):
    """Starts a container before its next request comes, where memory is free.

    A guess evicts nobody. Neither is a second container started beside one that is there.
    """
    images = controller.images
    images[image].number = NONE
    if images[image].active > 0 or images[image].warm > 0:
        return
    best, most = NONE, images[image].memory - 1
    for node in range(len(state.nodes)):
        free = free_memory(state, controller, node)
        if free > most:
            best, most = node, free
    expiration = images[image].last_end + images[image].keep_until
    if best != NONE and expiration > time:
        ready = time + images[image].cold_start
        keep_warm(state, controller, best, image, ready, expiration)


@compiled
def make_room(state, controller, node, memory):
    """Removes idle containers of a node until `memory` MB are free on it."""
    caches = controller.caches
    while free_memory(state, controller, node) < memory:
        victim = caches[node].first
        if controller.options[0].keep_alive == FAASCACHE:
            victim = least_valuable(controller, node)
            caches[node].clock = max(caches[node].clock, value(controller, victim))
        remove_warm(controller, victim)


@compiled
def value(controller, index):
    """Greedy-Dual-Size-Frequency: clock + frequency * cold start / size."""
    image = controller.idle[index].image
    benefit = controller.images[image].frequency * controller.images[image].cold_start
    return controller.idle[index].clock + benefit / controller.images[image].memory


@compiled
def least_valuable(controller, node):
    """The idle container of a node with the smallest value; of equal ones, the oldest."""
    best = index = controller.caches[node].first
    while index != NONE:
        if value(controller, index) < value(controller, best):
            best = index
        index = controller.idle[index].next
    return best


@compiled
def request_arrives(controller, image, time):
    """Notes how long an image was idle before a request of it."""
    images = controller.images
    idle = images[image].active == 0 and not np.isnan(images[image].last_end)
    if idle and controller.options[0].keep_alive == HYBRID_HISTOGRAM:
        note_idle_time(controller, image, time - images[image].last_end)
    images[image].active += 1


@compiled
def request_ends(controller, image, time):
    """A request of an image has finished."""
    controller.images[image].active -= 1
    controller.images[image].last_end = time


@compiled
def learn_idle_times(controller, image, begin, end):
    """Adds the idle times between requests, entry by entry: (K,) images, begins and ends."""
    images = controller.images
    for k in range(len(image)):
        last_end = images[image[k]].last_end
        if begin[k] >= last_end:
            note_idle_time(controller, image[k], begin[k] - last_end)
        if not end[k] <= last_end:
            images[image[k]].last_end = end[k]


@compiled
def note_idle_time(controller, image, seconds):
    """Adds an idle time to the histogram of an image and sets its windows."""
    images, idle_times = controller.images, controller.idle_times
    idle_times[image, images[image].idle_times % idle_times.shape[1]] = seconds
    images[image].idle_times += 1
    bins = controller.histograms.shape[1]
    place = seconds / controller.options[0].bin_seconds
    if place < bins:
        controller.histograms[image, int(place)] += 1
    else:
        images[image].out_of_bounds += 1
    set_windows(controller, image)


@compiled
def set_windows(controller, image):
    """When the next container of an image is to be started and until when it is kept."""
    images, options, histograms = controller.images, controller.options, controller.histograms
    images[image].prewarm_after = 0.0
    images[image].keep_until = options[0].keep_seconds
    images[image].awaits_forecast = 0
    count = images[image].idle_times
    outside = images[image].out_of_bounds
    if count < options[0].least_idle_times:
        return
    if outside > options[0].most_out_of_bounds * count:
        images[image].awaits_forecast = 1
        controller.queue[0].forecasts_due = 1
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
    margin, width = options[0].histogram_margin, options[0].bin_seconds
    images[image].prewarm_after = head * width * (1.0 - margin)
    images[image].keep_until = (tail + 1) * width * (1.0 + margin)


@compiled
def percentile_bin(histograms, image, rank):
    """The first bin up to which at least `rank` idle times were counted."""
    counted = 0
    for place in range(histograms.shape[1]):
        counted += histograms[image, place]
        if counted >= rank and counted > 0:
            return place
    return histograms.shape[1] - 1
