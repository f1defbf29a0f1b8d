"""Warm containers: idle ones that stay in their node's memory until reused or removed.

W of an image, the number of its idle containers, changes here alone. Their memory is reclaimable.
"""

from env.base.jit import compiled, compiled_apart
from env.sim.queue.central_queue import update_image
from env.sim.state.block import State
from env.sim.state.history import COLD, WARM, note_idle
from env.sim.state.records import NONE


@compiled
def newest_idle(state: State, node: int, image: int):
    """The idle container of an image that was used last on a node, NONE if there is none."""
    return state.newest[node * len(state.images) + image]


@compiled_apart
def add_idle(state: State, node: int, image: int, memory: int, ready_time: float):
    """Keeps a container of an image warm on a node; W grows by 1. Returns its record."""
    queue, idle, nodes = state.queue, state.idle, state.nodes
    index = queue[0].free_idle
    if index != NONE:
        queue[0].free_idle = idle[index].next
    else:
        index = queue[0].idle_used
        queue[0].idle_used += 1
    idle[index].node = node
    idle[index].image = image
    idle[index].memory = memory
    idle[index].number = queue[0].next_number
    queue[0].next_number += 1
    idle[index].ready_time = ready_time
    idle[index].clock = nodes[node].cache_clock
    idle[index].next = NONE
    idle[index].previous = nodes[node].last_idle
    if nodes[node].last_idle == NONE:
        nodes[node].first_idle = index
    else:
        idle[nodes[node].last_idle].next = index
    nodes[node].last_idle = index
    nodes[node].idle_memory += memory
    place = node * len(state.images) + image
    idle[index].newer = NONE
    idle[index].older = state.newest[place]
    if idle[index].older != NONE:
        idle[idle[index].older].newer = index
    state.newest[place] = index
    state.images[image].warm += 1
    note_idle(state, WARM, index)
    update_image(state, image)
    return index


@compiled_apart
def remove_idle(state: State, index: int) -> None:
    """A container is idle no longer, because it is used or removed; W falls by 1."""
    idle, nodes = state.idle, state.nodes
    node, image = idle[index].node, idle[index].image
    note_idle(state, COLD, index)
    if idle[index].previous == NONE:
        nodes[node].first_idle = idle[index].next
    else:
        idle[idle[index].previous].next = idle[index].next
    if idle[index].next == NONE:
        nodes[node].last_idle = idle[index].previous
    else:
        idle[idle[index].next].previous = idle[index].previous
    if idle[index].newer == NONE:
        state.newest[node * len(state.images) + image] = idle[index].older
    else:
        idle[idle[index].newer].older = idle[index].older
    if idle[index].older != NONE:
        idle[idle[index].older].newer = idle[index].newer
    nodes[node].idle_memory -= idle[index].memory
    idle[index].number = NONE
    idle[index].next = state.queue[0].free_idle
    state.queue[0].free_idle = index
    state.images[image].warm -= 1
    update_image(state, image)


@compiled
def gone_cold(state: State, image: int) -> None:
    """Forgets how often an image is used once it has no container left, idle or at work."""
    if state.images[image].warm == 0 and state.images[image].running == 0:
        state.images[image].frequency = 0
