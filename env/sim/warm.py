"""Warm containers: idle ones that stay in their node's memory until reused or removed.

W of an image, the number of its idle containers, changes here alone. Their memory is reclaimable.
"""

from env.sim.central_queue import update_image
from env.sim.jit import compiled
from env.sim.records import NONE


@compiled
def reset_warm(state, controller):
    """No container is idle."""
    controller.queue[0].free_idle = NONE
    controller.queue[0].idle_used = 0
    controller.newest[:] = NONE
    for node in range(len(controller.caches)):
        controller.caches[node].first = controller.caches[node].last = NONE
        controller.caches[node].memory = 0
        controller.caches[node].clock = 0.0
    for image in range(len(controller.images)):
        controller.images[image].warm = 0
        controller.images[image].running = 0
        controller.images[image].frequency = 0


@compiled
def available_memory(state, node):
    """MB of a node that are free or reclaimable: all that running containers do not hold."""
    return state.nodes[node].memory - state.nodes[node].allocated_memory


@compiled
def free_memory(state, controller, node):
    """MB of a node that no container holds, neither a running nor an idle one."""
    return available_memory(state, node) - controller.caches[node].memory


@compiled
def newest_idle(controller, node, image):
    """The idle container of an image that was used last on a node, NONE if there is none."""
    return controller.newest[node * len(controller.images) + image]


@compiled
def add_idle(state, controller, node, image, ready_time, expiration_time):
    """Keeps a container of an image warm on a node; W grows by 1. Returns its record.

    There are records for as many as fit into the nodes' memory.
    """
    queue, idle, caches = controller.queue, controller.idle, controller.caches
    index = queue[0].free_idle
    if index != NONE:
        queue[0].free_idle = idle[index].next
    else:
        index = queue[0].idle_used
        queue[0].idle_used += 1
    idle[index].node = node
    idle[index].image = image
    idle[index].number = queue[0].next_number
    queue[0].next_number += 1
    idle[index].ready_time = ready_time
    idle[index].expiration_time = expiration_time
    idle[index].clock = caches[node].clock
    idle[index].next = NONE
    idle[index].previous = caches[node].last
    if caches[node].last == NONE:
        caches[node].first = index
    else:
        idle[caches[node].last].next = index
    caches[node].last = index
    caches[node].memory += controller.images[image].memory
    place = node * len(controller.images) + image
    idle[index].newer = NONE
    idle[index].older = controller.newest[place]
    if idle[index].older != NONE:
        idle[idle[index].older].newer = index
    controller.newest[place] = index
    controller.images[image].warm += 1
    update_image(controller, image)
    return index


@compiled
def remove_idle(controller, index):
    """A container is idle no longer, because it is used or removed; W falls by 1."""
    idle, caches = controller.idle, controller.caches
    node, image = idle[index].node, idle[index].image
    if idle[index].previous == NONE:
        caches[node].first = idle[index].next
    else:
        idle[idle[index].previous].next = idle[index].next
    if idle[index].next == NONE:
        caches[node].last = idle[index].previous
    else:
        idle[idle[index].next].previous = idle[index].previous
    if idle[index].newer == NONE:
        controller.newest[node * len(controller.images) + image] = idle[index].older
    else:
        idle[idle[index].newer].older = idle[index].older
    if idle[index].older != NONE:
        idle[idle[index].older].newer = idle[index].newer
    caches[node].memory -= controller.images[image].memory
    idle[index].number = NONE
    idle[index].next = controller.queue[0].free_idle
    controller.queue[0].free_idle = index
    controller.images[image].warm -= 1
    update_image(controller, image)


@compiled
def gone_cold(controller, image):
    """Forgets how often an image is used once it has no container left, idle or at work."""
    if controller.images[image].warm == 0 and controller.images[image].running == 0:
        controller.images[image].frequency = 0
