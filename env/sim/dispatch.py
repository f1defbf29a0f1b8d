"""Queued dispatch: plays an episode whose functions wait centrally until a node has memory.

`play` is to the controller what `advance` is to a caller who places each function at once. Servers
are leased and up from the start. A container takes its memory from dispatch on, its cores only
while it executes; there it has the speed that the node's rules give it (`projection.py`). The
sources that compare dispatch orders count memory alone: a node with as many cores as its
containers have threads is their model.
"""

from typing import Final

from env.sim.central_queue import (
    SHORTEST_REMAINING,
    first_in_order,
    join_queue,
    leave_queue,
    oldest,
    reset_queue,
    starving,
)
from env.sim.containers import give_back_container, take_container
from env.sim.engine import complete_next, fill_container, transfer_seconds
from env.sim.jit import compiled
from env.sim.keep_alive import (
    make_room,
    prewarm,
    release,
    remove_warm,
    request_arrives,
    request_ends,
    reset_keep_alive,
)
from env.sim.lease import server_on_container_creation
from env.sim.projection import node_on_container_removal
from env.sim.records import (
    ARRIVAL,
    CHOOSE,
    DONE,
    EXPIRY,
    FORECAST,
    INF,
    MORE_ARRIVALS,
    NO_CONTAINER_SLOT,
    NONE,
    PREWARMING,
    SLICE_END,
    STARVATION,
    TAKE_RUNS,
)
from env.sim.state import reset
from env.sim.submissions import declared as declared_of
from env.sim.submissions import fire_timer, get, run_function
from env.sim.timers import drop_timer, set_timer, up_to_date
from env.sim.tournament import earliest_node
from env.sim.warm import available_memory, free_memory, newest_idle, remove_idle, reset_warm

# Which of several equally suited nodes: as the placement rules of these names.
FIRST_FIT: Final = 0
BEST_FIT: Final = 1
WORST_FIT: Final = 2


@compiled
def reset_episode(state, controller):
    """Back to time 0: all servers leased and up, nothing warm, nobody waits."""
    reset(state)
    for server in range(len(state.servers)):
        state.servers[server].expiration_time = INF
    reset_queue(state, controller)
    reset_warm(state, controller)
    reset_keep_alive(controller)
    for index in range(len(controller.requests)):
        controller.requests[index].run = NONE
    controller.queue[0].starvation_timer = INF
    controller.queue[0].runs_size = 0
    controller.queue[0].ended_node = NONE
    controller.queue[0].arrivals_left = len(state.arrivals)


@compiled
def play(state, controller):
    """Plays events until the caller is needed: completions first, then timers, then dispatch.

    Returns:
        DONE, CHOOSE, MORE_ARRIVALS, TAKE_RUNS, FORECAST, or a negative error code.
    """
    cluster, queue = state.cluster, controller.queue
    while True:
        if queue[0].forecasts_due == 1:
            return FORECAST
        if queue[0].ended_node != NONE:
            release_ended(state, controller)
        if queue[0].runs_size == len(controller.runs):
            return TAKE_RUNS
        if queue[0].arrivals_left == 0 and queue[0].more_arrivals == 1:
            return MORE_ARRIVALS
        completion = state.nodes[earliest_node(state)].next_completion
        if completion == INF and queue[0].waiting == 0 and queue[0].arrivals_left == 0:
            return DONE
        timer = state.timers[0].time if cluster[0].timers_size > 0 else INF
        moment = cluster[0].time if queue[0].due == 1 else INF
        error = 0
        if completion < INF and completion <= timer and completion <= moment:
            cluster[0].time = completion
            complete(state, controller)
        elif cluster[0].timers_size > 0 and timer <= moment:
            error = fire(state, controller)
        else:
            queue[0].due = 0
            error = dispatch(state, controller)
        if error != 0:
            return error


@compiled
def complete(state, controller):
    """The container that ends first has finished its function; it is still to be released."""
    time = state.cluster[0].time
    node = earliest_node(state)
    container = state.nodes[node].next_container
    index = state.containers[container].function
    image = controller.waiting[controller.requests[index].declared].image
    complete_next(state)
    state.log[0].completed_count = 0
    end_run(state, controller, index, node, time, 1)
    request_ends(controller, image, time)
    join_submitted(state, controller)
    controller.queue[0].ended_node = node
    controller.queue[0].ended_image = image
    controller.queue[0].due = 1


@compiled
def release_ended(state, controller):
    """Releases the container that ended last.

    Its successors may have asked for forecasts, that of its own image among them: they come first.
    """
    node, image = controller.queue[0].ended_node, controller.queue[0].ended_image
    controller.queue[0].ended_node = NONE
    unused = controller.images[image].active == 0
    release(state, controller, node, image, state.cluster[0].time, unused)


@compiled
def join_submitted(state, controller):
    """Functions that have become ready wait in the central queue."""
    while state.cluster[0].queue_size > 0:
        index = get(state)
        declared = declared_of(state, index)
        time = state.functions[index].submission_time
        requests = controller.requests
        if controller.queue[0].first_number == NONE:
            requests[index].wf_id = state.functions[index].wf_id
        requests[index].declared = declared
        requests[index].remaining_computation = state.functions[index].computation
        requests[index].queueing_time = 0.0
        requests[index].cold_start_time = 0.0
        requests[index].data_transfer_time = 0.0
        requests[index].execution_time = 0.0
        request_arrives(controller, controller.waiting[declared].image, time)
        join_queue(state, controller, index, time)


@compiled
def fire(state, controller):
    """Fires the next timer; returns 0 or a negative error code."""
    time, kind, index = state.timers[0].time, state.timers[0].major, state.timers[0].index
    if kind == ARRIVAL:
        state.cluster[0].time = time
        return arrive(state, controller, index)
    valid = up_to_date(state, controller, 0)
    drop_timer(state)
    if valid:
        state.cluster[0].time = time
        if kind == SLICE_END:
            end_slice(state, controller, index, time)
        elif kind == EXPIRY:
            remove_warm(controller, index)
        elif kind == PREWARMING:
            prewarm(state, controller, index, time)
        elif kind == STARVATION:
            controller.queue[0].starvation_timer = INF
            controller.queue[0].due = 1
    return 0


@compiled
def arrive(state, controller, position):
    """A workflow arrives; the request of a trace does as much work as was drawn for it."""
    slot = state.free_slots[state.cluster[0].first_free_slot]
    number = controller.queue[0].first_number
    if number != NONE:
        # The ids of an endless trace would outgrow `slot_of`: the workflow is called by its slot.
        state.arrivals[position].wf_id = slot
    error = fire_timer(state)
    if error == 0:
        controller.queue[0].arrivals_left -= 1
        if number != NONE:
            controller.requests[slot].wf_id = number + position
            drawn = controller.draws[position]
            state.cluster[0].queue_computation += drawn - state.functions[slot].computation
            state.functions[slot].computation = drawn
        join_submitted(state, controller)
    return error


@compiled
def dispatch(state, controller):
    """Starts waiting functions in order until the first of them fits nowhere.

    Returns:
        0, CHOOSE, or a negative error code.
    """
    while controller.queue[0].waiting > 0:
        declared = first_in_order(state, controller)
        if declared == NONE:
            watch_starvation(state, controller)
            return CHOOSE if any_fits(state, controller) else 0
        image = controller.waiting[declared].image
        node = controller.queue[0].chosen_node
        if node == NONE:
            node = choose_node(state, controller, image)
        if node == NONE:
            watch_starvation(state, controller)
            return 0
        error = start(state, controller, declared, node)
        if error != 0:
            return error
    return 0


@compiled
def choose_node(state, controller, image):
    """The node for a container of an image: warm ones first, then free memory, then reclaimable.

    Returns:
        the index of the node, NONE if no node has the memory now.
    """
    memory = controller.images[image].memory
    placement = controller.options[0].placement
    best, best_tier, best_key = NONE, 3, 0
    for node in range(len(state.nodes)):
        available = available_memory(state, node)
        if available < memory:
            continue
        tier = 2
        if newest_idle(controller, node, image) != NONE:
            tier = 0
        elif free_memory(state, controller, node) >= memory:
            tier = 1
        key = 0
        if placement == BEST_FIT:
            key = available
        elif placement == WORST_FIT:
            key = -available
        if tier < best_tier or (tier == best_tier and key < best_key):
            best, best_tier, best_key = node, tier, key
    return best


@compiled
def any_fits(state, controller):
    """Whether any waiting function could start now."""
    most = 0
    for node in range(len(state.nodes)):
        most = max(most, available_memory(state, node))
    for declared in range(len(controller.waiting)):
        image = controller.waiting[declared].image
        if controller.waiting[declared].count > 0 and controller.images[image].memory <= most:
            return True
    return False


@compiled
def watch_starvation(state, controller):
    """Sets the timer of the moment at which the oldest waiting function starves, if it will."""
    queue = controller.queue
    if controller.options[0].starve_threshold == INF:
        return
    index = controller.waiting[oldest(controller)].first
    if not starving(state, controller, index) and queue[0].starvation_timer == INF:
        due = state.functions[index].submission_time + controller.options[0].starve_threshold
        queue[0].starvation_timer = due
        set_timer(state, controller, due, STARVATION, 0, 0)


@compiled
def start(state, controller, declared, node):
    """The first waiting request of a declared function gets a container on a node.

    Returns:
        0 or a negative error code.
    """
    requests, images = controller.requests, controller.images
    container = take_container(state)
    if container == NONE:
        return NO_CONTAINER_SLOT
    index = leave_queue(controller, declared)
    time = state.cluster[0].time
    image = controller.waiting[declared].image
    idle = newest_idle(controller, node, image)
    cold_start = images[image].cold_start
    if idle != NONE:
        cold_start = max(0.0, controller.idle[idle].ready_time - time)
        remove_idle(controller, idle)
    else:
        make_room(state, controller, node, images[image].memory)
    images[image].running += 1
    images[image].frequency += 1
    transfer = transfer_seconds(state, index, node)
    creation = time + cold_start + transfer
    remaining = requests[index].remaining_computation
    memory = images[image].memory
    fill_container(state, container, index, memory, remaining, transfer, creation)
    run_function(state, index, node, memory, creation)
    server_on_container_creation(state, node, container, time)
    requests[index].run = controller.queue[0].next_number
    controller.queue[0].next_number += 1
    requests[index].dispatch_time = time
    requests[index].warm = 1 if idle != NONE else 0
    requests[index].queueing_time += time - requests[index].joined_time
    requests[index].cold_start_time += cold_start
    requests[index].data_transfer_time += transfer
    if controller.options[0].time_slice < INF:
        due = creation + controller.options[0].time_slice
        set_timer(state, controller, due, SLICE_END, requests[index].run, container)
    state.cluster[0].decisions += 1
    return 0


@compiled
def end_slice(state, controller, container, time):
    """A running function gives way to the first that waits, or goes on for another slice.

    With `srtf` only to one that has less left to do.
    """
    index = state.containers[container].function
    request = controller.requests[index]
    first = first_in_order(state, controller)
    gives_way = first != NONE
    if gives_way and controller.options[0].order == SHORTEST_REMAINING:
        served = request.execution_time + time - state.functions[index].start_time
        left = max(0.0, controller.waiting[request.declared].execution - served)
        gives_way = controller.waiting[first].priority < left
    if gives_way:
        preempt(state, controller, container, time)
    else:
        due = time + controller.options[0].time_slice
        set_timer(state, controller, due, SLICE_END, request.run, container)


@compiled
def preempt(state, controller, container, time):
    """Takes a running function off its node; it waits again, with the work left that it had."""
    index = state.containers[container].function
    node = state.functions[index].node
    image = controller.waiting[controller.requests[index].declared].image
    node_on_container_removal(state, node, container, time)
    state.servers[state.nodes[node].server].container_count -= 1
    remaining = max(1, state.containers[container].remaining_computation)
    controller.requests[index].remaining_computation = remaining
    give_back_container(state, container)
    end_run(state, controller, index, node, time, 0)
    release(state, controller, node, image, time, False)
    join_queue(state, controller, index, time)


@compiled
def end_run(state, controller, index, node, time, finished):
    """A function has left its container: sums its times and logs the run."""
    requests, functions, runs = controller.requests, state.functions, controller.runs
    declared = requests[index].declared
    image = controller.waiting[declared].image
    requests[index].execution_time += time - functions[index].start_time
    controller.images[image].running -= 1
    row = controller.queue[0].runs_size
    runs[row].wf_id = requests[index].wf_id
    runs[row].fn_id = functions[index].fn_id
    runs[row].declared = declared
    runs[row].image = image
    runs[row].node = node
    runs[row].memory_alloc = functions[index].memory_alloc
    runs[row].warm = requests[index].warm
    runs[row].joined = requests[index].number
    runs[row].dispatched = requests[index].run
    runs[row].submission_time = functions[index].submission_time
    runs[row].joined_time = requests[index].joined_time
    runs[row].dispatch_time = requests[index].dispatch_time
    runs[row].start_time = functions[index].start_time
    runs[row].end_time = time
    runs[row].finished = finished
    runs[row].queueing_time = requests[index].queueing_time
    runs[row].cold_start_time = requests[index].cold_start_time
    runs[row].data_transfer_time = requests[index].data_transfer_time
    runs[row].execution_time = requests[index].execution_time
    controller.queue[0].runs_size += 1
    requests[index].run = NONE
