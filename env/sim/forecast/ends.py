"""Ends of containers in a forecast: lists of them by time, the finish bounds that they raise."""

from env.base.jit import compiled
from env.sim.state.records import INF, NONE


@compiled
def insert_ordered(containers, first, index, key):
    """Inserts a container into a list sorted by `order_key`; returns the head of the list."""
    containers[index].order_key = key
    previous = NONE
    following = first
    while following != NONE and containers[following].order_key <= key:
        previous = following
        following = containers[following].next_in_order
    containers[index].next_in_order = following
    if previous == NONE:
        return index
    containers[previous].next_in_order = index
    return first


@compiled
def insert_joined(containers, first, index, key):
    """Inserts a container into a list sorted by `joined_key`; returns the head of the list."""
    containers[index].joined_key = key
    previous = NONE
    following = first
    while following != NONE and containers[following].joined_key <= key:
        previous = following
        following = containers[following].next_joined
    containers[index].next_joined = following
    if previous == NONE:
        return index
    containers[previous].next_joined = index
    return first


@compiled
def demand_of(container):
    """Operations left by each thread; a container short of memory has more to do, in proportion."""
    return container.remaining_computation / (container.memory_ratio * container.parallelism)


@compiled
def raise_bound(state, index, completion, raised):
    """Notes the finish bound that a completion gives its workflow, if it is a later one.

    Returns:
        the head of the list of raised workflows.
    """
    workflows = state.workflows
    slot = state.containers[index].slot
    bound = completion + state.containers[index].chain_after
    if bound <= workflows[slot].finish_bound:
        return raised
    if workflows[slot].raised_bound == -INF:
        workflows[slot].next_raised = raised
        raised = slot
    workflows[slot].raised_bound = max(workflows[slot].raised_bound, bound)
    return raised


@compiled
def later_end(state, index, completion):
    """How much later than forecast a container ends.

    Returns:
        (seconds / critical path of its workflow, the same times seconds / (slack + seconds)), slack
        being the seconds that it can end later without moving the finish bound.
    """
    containers, workflows = state.containers, state.workflows
    forecast_end = containers[index].forecast_completion
    seconds = completion - forecast_end
    if seconds <= 0.0:
        return 0.0, 0.0
    slot = containers[index].slot
    growth = seconds / state.templates[workflows[slot].template].critical_path
    slack = workflows[slot].finish_bound - forecast_end - containers[index].chain_after
    return growth, growth * seconds / (max(0.0, slack) + seconds)


@compiled
def note_end(state, index, now, candidate, raised, later, tight):
    """Notes that a container ends, where a candidate is played, or none (`play` in play_node.py).

    Returns:
        the head of the list of raised workflows, the sums of `later_end`.
    """
    if candidate == NONE or index == candidate:
        state.containers[index].forecast_completion = now
    if candidate != NONE:
        raised = raise_bound(state, index, now, raised)
        if index != candidate:
            more, more_tight = later_end(state, index, now)
            later += more
            tight += more_tight
    return raised, later, tight
