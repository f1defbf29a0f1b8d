"""Queued dispatch: who of those that wait centrally starts where, once a node has room.

A container takes its memory and named resources from dispatch on, its cores only while it
executes; there it has the speed that the node's rules give it (`projection.py`). The sources that
compare dispatch orders count memory alone: a node with as many cores as its containers have threads
is their model.
"""

from env.base.jit import compiled, compiled_apart
from env.sim.events.endings import preempt
from env.sim.events.placing import place
from env.sim.events.submissions import offer
from env.sim.node.fit import any_holds, available_memory, can_go_to, free_memory, need_of, short_of
from env.sim.node.server_state import is_leased, may_be_started
from env.sim.node.warm import newest_idle
from env.sim.queue.central_queue import (
    SHORTEST_REMAINING,
    first_in_order,
    leave_queue,
    starving,
    winner,
)
from env.sim.queue.sharing import give_turn_back
from env.sim.queue.tracking import stop_tracking
from env.sim.state.block import State
from env.sim.state.queue_records import NodeBy
from env.sim.state.records import CHOOSE, INF, NONE, PATIENCE, PLACE, SLICE_END, STARVATION
from env.sim.state.timers import set_timer


@compiled_apart
def dispatch(state: State):
    """Starts waiting functions in order until the first of them can go nowhere.

    Those that no server in service holds wait aside meanwhile, and nobody waits behind them.

    Returns:
        0, CHOOSE, PLACE, or a negative error code.
    """
    queue = state.queue
    while queue[0].waiting > 0:
        declared = first_in_order(state)
        if declared == NONE:
            watch_starvation(state)
            return CHOOSE if any_fits(state) else 0
        index = state.waiting[declared].first
        node = node_for(state, index)
        if node == NONE:
            if set_aside(state, declared):
                continue
            watch_starvation(state)
            return 0
        state.cluster[0].deciding = index
        if state.options[0].placement == NodeBy.asked:
            queue[0].due = 1  # others may start at this moment, too
            return PLACE
        error = place(state, node, need_of(state, index))
        if error != 0:
            return error
    return 0


@compiled_apart
def set_aside(state: State, declared: int) -> bool:
    """All requests of a declared function leave the queue, if no server in service holds them.

    They join it again in the places that they had, once some server comes back. Returns whether
    they have left.
    """
    first = state.waiting[declared].first
    if any_holds(state, first, need_of(state, first)):
        return False
    while state.waiting[declared].count > 0:
        index = leave_queue(state, declared)
        if state.waiting[declared].alone == 1:
            stop_tracking(state, state.functions[index].slot)
        state.requests[index].aside = 1
        offer(state, index, state.functions[index].joined_time)
    give_turn_back(state)
    return True


@compiled
def be_patient(state: State, index: int) -> None:
    """Whether a waiting function may start a server by now; if not yet, a timer tells when.

    It may where there is nothing to wait for: no server is leased that could ever hold it.
    """
    queue, nodes = state.queue, state.nodes
    time, memory = state.cluster[0].time, need_of(state, index)
    due = state.functions[index].joined_time + state.options[0].patience
    queue[0].may_start = 1
    if state.options[0].always_up == 1 or time >= due:
        return
    could_start = False
    for node in range(len(nodes)):
        if short_of(state, node, index, memory, True) == NONE:
            if is_leased(state, nodes[node].server):
                queue[0].may_start = 0
            elif may_be_started(state, nodes[node].server):
                could_start = True
    waits = queue[0].may_start == 0 and could_start
    if waits and due < queue[0].patience_timer:
        look_again_at(state, due)


@compiled
def look_again_at(state: State, time: float) -> None:
    """Patience ends at a time (s): the queue is looked at then, and not when that was to be."""
    state.queue[0].patience_timer = time
    set_timer(state, time, PATIENCE, 0, 0)


@compiled
def node_for(state: State, index: int):
    """`choose_node` with the patience that the function has."""
    be_patient(state, index)
    return choose_node(state, index)


@compiled
def choose_node(state: State, index: int):
    """The node for a container of a function: warm, free, reclaimable or off, in this order.

    Returns:
        the index of the node, NONE if none suits.
    """
    memory = need_of(state, index)
    image = state.waiting[state.functions[index].declared].image
    placement = state.options[0].placement
    best, best_tier, best_key = NONE, 4, 0
    for node in range(len(state.nodes)):
        if not can_go_to(state, node, index, memory):
            continue
        available = available_memory(state, node)
        tier = 2
        if newest_idle(state, node, image) != NONE:
            tier = 0
        elif not is_leased(state, state.nodes[node].server):
            tier = 3
        elif free_memory(state, node) >= memory:
            tier = 1
        key = 0
        if placement == NodeBy.best_fit:
            key = available
        elif placement == NodeBy.worst_fit:
            key = -available
        if tier < best_tier or (tier == best_tier and key < best_key):
            best, best_tier, best_key = node, tier, key
    return best


@compiled
def any_fits(state: State) -> bool:
    """Whether any waiting function could start now."""
    most = 0
    for node in range(len(state.nodes)):
        if is_leased(state, state.nodes[node].server):
            most = max(most, available_memory(state, node))
    declared = state.queue[0].first_that_waits
    while declared != NONE:
        index = state.waiting[declared].first
        if need_of(state, index) <= most and has_room_now(state, index):
            return True
        if state.options[0].always_up == 0 and node_for(state, index) != NONE:
            return True
        declared = state.waiting[declared].next_that_waits
    return False


@compiled
def has_room_now(state: State, index: int) -> bool:
    """Whether a leased server has room for a waiting function."""
    memory = need_of(state, index)
    for node in range(len(state.nodes)):
        leased = is_leased(state, state.nodes[node].server)
        if leased and short_of(state, node, index, memory, False) == NONE:
            return True
    return False


@compiled
def watch_starvation(state: State) -> None:
    """Sets the timer of the moment at which the oldest waiting function starves, if it will."""
    queue = state.queue
    if state.options[0].starve_threshold == INF:
        return
    index = state.waiting[winner(state, state.by_age)].first
    due = state.functions[index].submission_time + state.options[0].starve_threshold
    if not starving(state, index) and due < queue[0].starvation_timer:
        queue[0].starvation_timer = due
        set_timer(state, due, STARVATION, 0, 0)


@compiled_apart
def end_slice(state: State, container: int) -> None:
    """A running function gives way to the first that waits, or goes on for another slice.

    With `srtf` only to one that has less left to do.
    """
    index, time = state.containers[container].function, state.cluster[0].time
    first = first_in_order(state)
    gives_way = first != NONE
    if gives_way and state.options[0].order == SHORTEST_REMAINING:
        served = state.requests[index].served_time + time - state.functions[index].start_time
        left = max(0.0, state.waiting[state.functions[index].declared].execution - served)
        gives_way = state.waiting[first].priority < left
    if gives_way:
        preempt(state, container)
    else:
        due = time + state.options[0].time_slice
        set_timer(state, due, SLICE_END, state.requests[index].run, container)
