"""The central queue: functions that wait for a container, in the order of a dispatch rule.

Requests of one declared function stand together, first come first served, and compete through
their first: a change of W or of a rank costs the logarithm of the number of functions.
"""

from typing import Final

import numpy as np

from env.base.jit import compiled, compiled_apart
from env.sim.queue.sharing import count_waiting, reset_sharing, take_turn
from env.sim.queue.tracking import track
from env.sim.queue.workflow_tickets import first_by_workflow
from env.sim.state.block import State
from env.sim.state.queue_records import QUEUE
from env.sim.state.records import INF, NONE

EMPTY = np.zeros(1, QUEUE)

# How the priority of a declared function comes about.
BY_RANK: Final = 0  # fixed: `rank`
SHORTEST_REMAINING: Final = 1
FUNCSCHED: Final = 2
CHOSEN: Final = 3  # the caller chooses; kept in the order of `funcsched`
BY_WORKFLOW: Final = 4  # where tenants take turns (env/sim/queue/workflow_tickets.py)


@compiled
def reset_queue(state: State) -> None:
    """Nobody waits."""
    queue, waiting = state.queue, state.waiting
    queue[0] = EMPTY[0]
    queue[0].first_that_waits = queue[0].last_that_waits = NONE
    queue[0].chosen = queue[0].ended_node = queue[0].first_number = NONE
    queue[0].free_idle = NONE
    queue[0].starvation_timer = queue[0].patience_timer = INF
    for index in range(len(state.requests)):
        state.requests[index].run = NONE
    for declared in range(len(waiting)):
        waiting[declared].first = waiting[declared].last = NONE
        waiting[declared].count = 0
        waiting[declared].arrivals = 0.0
    reset_matches(state, state.by_priority)
    reset_matches(state, state.by_age)
    reset_sharing(state)


@compiled
def reset_matches(state: State, tree: np.ndarray) -> None:
    """Every declared function is a leaf, NONE fills up; nobody waits, so that anybody may win."""
    tree[:] = NONE
    for declared in range(len(state.waiting)):
        tree[state.waiting[declared].tree + state.waiting[declared].leaf] = declared


@compiled
def priority(state: State, declared: int):
    """What the order compares, of the first waiting request of a declared function."""
    order = state.options[0].order
    waiting = state.waiting
    if order == SHORTEST_REMAINING:
        served = state.requests[waiting[declared].first].served_time
        return max(0.0, waiting[declared].execution - served)
    if order in (FUNCSCHED, CHOSEN):
        return time_and_memory(state, declared)
    return waiting[declared].rank


@compiled
def time_and_memory(state: State, declared: int):
    """(E + D * [W = 0]) * R of a declared function in MB s: what `funcsched` compares."""
    image = state.waiting[declared].image
    seconds = state.waiting[declared].execution
    if state.images[image].warm == 0:
        seconds += state.images[image].cold_start
    return seconds * state.images[image].memory


@compiled
def goes_first(waiting: np.ndarray, a: int, b: int, by_age: bool) -> bool:
    """Whether declared function `a` goes before `b`; of equal priority, who joined first."""
    if b == NONE or waiting[b].count == 0:
        return True
    if a == NONE or waiting[a].count == 0:
        return False
    if not by_age and waiting[a].priority != waiting[b].priority:
        return waiting[a].priority < waiting[b].priority
    return waiting[a].number < waiting[b].number


@compiled
def play_matches(tree: np.ndarray, waiting: np.ndarray, declared: int, by_age: bool) -> None:
    """Plays the matches of a declared function whose first request or priority has changed."""
    first, match = waiting[declared].tree, waiting[declared].leaf // 2
    while match >= 1:
        left, right = tree[first + 2 * match], tree[first + 2 * match + 1]
        tree[first + match] = left if goes_first(waiting, left, right, by_age) else right
        match //= 2


@compiled
def update_priority(state: State, declared: int) -> None:
    """Brings a declared function to its place among all that wait."""
    waiting = state.waiting
    if waiting[declared].count > 0:
        waiting[declared].priority = priority(state, declared)
    if several_wait(state):
        play_matches(state.by_priority, waiting, declared, False)


@compiled
def several_wait(state: State) -> bool:
    """Whether requests of several declared functions wait; of one alone no match is played."""
    return state.queue[0].first_that_waits != state.queue[0].last_that_waits


@compiled
def update_first(state: State, declared: int) -> None:
    """The first waiting request of a declared function has changed."""
    waiting = state.waiting
    if waiting[declared].count > 0:
        waiting[declared].number = state.requests[waiting[declared].first].number
    update_priority(state, declared)
    if state.options[0].starve_threshold < INF and several_wait(state):
        play_matches(state.by_age, waiting, declared, True)


@compiled
def update_image(state: State, image: int) -> None:
    """W of an image has changed: only the order of `funcsched` looks at it."""
    if state.options[0].order in (FUNCSCHED, CHOSEN):
        declared = state.images[image].first_declared
        while declared != NONE:
            if state.waiting[declared].count > 0:
                update_priority(state, declared)
            declared = state.waiting[declared].next_of_image


@compiled
def stands_behind(state: State, index: int, other: int) -> bool:
    """Whether a request of the same declared function comes after one that waits.

    Those that have run before have less left to do.
    """
    if state.options[0].order != SHORTEST_REMAINING:
        return True
    requests = state.requests
    execution = state.waiting[state.functions[index].declared].execution
    left = max(0.0, execution - requests[index].served_time)
    return left >= max(0.0, execution - requests[other].served_time)


@compiled
def declared_begins_to_wait(state: State, declared: int) -> None:
    """Puts a declared function at the end of the list of those that wait, few of many thousands."""
    queue, waiting = state.queue, state.waiting
    previous = queue[0].last_that_waits
    waiting[declared].previous_that_waits, waiting[declared].next_that_waits = previous, NONE
    queue[0].last_that_waits = declared
    if previous == NONE:
        queue[0].first_that_waits = declared
    else:
        waiting[previous].next_that_waits = declared
        if previous == queue[0].first_that_waits:  # it waited alone so far
            update_first(state, previous)


@compiled
def declared_stops_to_wait(state: State, declared: int) -> None:
    """Takes a declared function out of that list."""
    queue, waiting = state.queue, state.waiting
    previous, following = waiting[declared].previous_that_waits, waiting[declared].next_that_waits
    if previous == NONE:
        queue[0].first_that_waits = following
    else:
        waiting[previous].next_that_waits = following
    if following == NONE:
        queue[0].last_that_waits = previous
    else:
        waiting[following].previous_that_waits = previous


@compiled
def join_queue(state: State, index: int, time: float) -> None:
    """A submitted or preempted function starts to wait; since `time` if it was set aside."""
    queue, waiting, requests = state.queue, state.waiting, state.requests
    declared = state.functions[index].declared
    if time == state.cluster[0].time:
        requests[index].number = queue[0].next_number
        queue[0].next_number += 1
    state.functions[index].joined_time = time
    requests[index].aside = 0
    queue[0].waiting += 1
    queue[0].due = 1
    previous, following = waiting[declared].last, NONE
    if previous != NONE and not stands_behind(state, index, previous):
        previous, following = NONE, waiting[declared].first
        while stands_behind(state, index, following):
            previous, following = following, requests[following].next
    requests[index].next = following
    if previous == NONE:
        waiting[declared].first = index
    else:
        requests[previous].next = index
    if following == NONE:
        waiting[declared].last = index
    waiting[declared].count += 1
    if waiting[declared].count == 1:
        declared_begins_to_wait(state, declared)
    slot = state.functions[index].slot
    waiting[declared].arrivals += state.workflows[slot].arrival_time
    if previous == NONE:
        update_first(state, declared)
    if len(state.tenants) > 0:
        tenant = state.workflows[slot].tenant
        state.workflows[slot].waiting += 1
        if state.workflows[slot].waiting == 1:  # it has nothing to make up for
            clock = state.tenants[tenant].workflow_clock
            state.workflows[slot].passed = max(state.workflows[slot].passed, clock)
        count_waiting(state, tenant, 1)


@compiled
def starving(state: State, index: int) -> bool:
    """Whether a request has waited so long that it goes before all others."""
    submission = state.functions[index].submission_time
    return state.cluster[0].time >= submission + state.options[0].starve_threshold


@compiled
def winner(state: State, tree: np.ndarray):
    """The declared function that wins a tournament, NONE if nobody waits.

    Where tenants take turns, among the functions of the tenant whose turn it is. `by_age`, whose
    winner joined first, is kept up to date where requests can starve.
    """
    if not several_wait(state):
        return state.queue[0].first_that_waits
    first = state.tenants[state.queue[0].turn].tree if state.options[0].shared == 1 else 0
    return tree[first + 1]


@compiled
def first_in_order(state: State):
    """The declared function whose first request goes next, NONE if nobody waits."""
    if state.queue[0].waiting == 0:
        return NONE
    order = state.options[0].order
    if order == CHOSEN:
        return state.queue[0].chosen
    if state.options[0].shared == 1:
        take_turn(state)
    if order == FUNCSCHED:
        return first_by_funcsched(state)
    if order == BY_WORKFLOW:
        return put_first(state, first_by_workflow(state, state.queue[0].turn))
    return winner(state, state.by_priority)


@compiled_apart
def put_first(state: State, index: int):
    """Puts a waiting request before the others of its declared function; returns that."""
    requests, waiting, declared = state.requests, state.waiting, state.functions[index].declared
    if waiting[declared].first != index:
        previous = waiting[declared].first
        while requests[previous].next != index:
            previous = requests[previous].next
        requests[previous].next = requests[index].next
        if waiting[declared].last == index:
            waiting[declared].last = previous
        requests[index].next = waiting[declared].first
        waiting[declared].first = index
        update_first(state, declared)
    return declared


@compiled
def first_by_funcsched(state: State):
    """The declared function that goes next by the order of `funcsched`; somebody waits."""
    declared = winner(state, state.by_age)
    if declared != NONE and starving(state, state.waiting[declared].first):
        return declared
    return winner(state, state.by_priority)


@compiled
def leave_queue(state: State, declared: int):
    """Takes the first request of a declared function out of the queue."""
    waiting = state.waiting
    index, slot = waiting[declared].first, state.functions[waiting[declared].first].slot
    waiting[declared].first = state.requests[index].next
    if waiting[declared].first == NONE:
        waiting[declared].last = NONE
    waiting[declared].count -= 1
    waiting[declared].arrivals -= state.workflows[slot].arrival_time
    if waiting[declared].count == 0:
        waiting[declared].arrivals = 0.0  # without what rounding has left
        declared_stops_to_wait(state, declared)
    state.queue[0].waiting -= 1
    if waiting[declared].alone == 1:
        track(state, slot)
    if state.queue[0].chosen == declared:
        state.queue[0].chosen = NONE
    update_first(state, declared)
    if len(state.tenants) > 0:
        tenant = state.workflows[slot].tenant
        state.workflows[slot].waiting -= 1
        count_waiting(state, tenant, -1)
    return index


@compiled
def choose(state: State, declared: int) -> None:
    """Lets the first waiting request of a declared function go next, where the order is `chosen`.

    NONE holds back until something changes.
    """
    if declared != NONE:
        state.queue[0].chosen = declared
        state.queue[0].due = 1
