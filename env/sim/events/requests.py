"""Requests: what is noted of a function of an image while it waits, starts and runs.

Only where functions belong to images (`State.images`): in a world in which they wait centrally, or
in which containers start cold or stay warm.
"""

from env.base.jit import compiled
from env.sim.node.keep_alive import request_arrives
from env.sim.node.warm import newest_idle, remove_idle
from env.sim.state.block import State
from env.sim.state.history import note_end
from env.sim.state.records import KILLED, NONE


@compiled
def begin_request(state: State, function: int, time: float) -> None:
    """A function has been submitted."""
    requests = state.requests
    if state.queue[0].first_number == NONE:
        requests[function].wf_id = state.functions[function].wf_id
    requests[function].run = NONE
    requests[function].served_time = 0.0
    request_arrives(state, state.waiting[state.functions[function].declared].image, time)


@compiled
def container_start(state: State, function: int, node: int):
    """Seconds until a function has a container of its image on a node: less where one is warm."""
    if len(state.images) == 0:
        return 0.0
    image = state.waiting[state.functions[function].declared].image
    idle = newest_idle(state, node, image)
    if idle != NONE:
        return max(0.0, state.idle[idle].ready_time - state.cluster[0].time)
    return state.images[image].cold_start


@compiled
def start_request(state: State, function: int, node: int):
    """A function gets a warm container of its image on a node, or a new one.

    Returns:
        seconds of the container cold start.
    """
    requests, images, time = state.requests, state.images, state.cluster[0].time
    image = state.waiting[state.functions[function].declared].image
    cold_start = container_start(state, function, node)
    idle = newest_idle(state, node, image)
    if idle != NONE:
        remove_idle(state, idle)
    elif cold_start > 0.0:
        state.queue[0].container_cold_starts += 1
    images[image].running += 1
    images[image].frequency += 1
    requests[function].run = state.queue[0].next_number
    state.queue[0].next_number += 1
    requests[function].dispatch_time = time
    requests[function].warm = 1 if idle != NONE else 0
    state.queue[0].queueing_time += time - state.functions[function].joined_time
    requests[function].cold_start = cold_start
    return cold_start


@compiled
def end_run(state: State, index: int, outcome: int) -> None:
    """A function has left its container."""
    requests, functions = state.requests, state.functions
    function, time = state.containers[index].function, state.cluster[0].time
    image = state.waiting[state.functions[function].declared].image
    started = functions[function].start_time
    if started <= time:  # else it is killed before its start, or while it waits for memory
        requests[function].served_time += time - started
    if outcome == KILLED:
        requests[function].served_time = 0.0
    state.images[image].running -= 1
    if state.cluster[0].listens == 1:
        note_end(state, index, outcome)
    requests[function].run = NONE
