"""Which workflows are looked at one by one, when it is forecast what has not ended.

All active ones are, but for those of one function that waits in the central queue: there may be
thousands of them, and all that is forecast of them follows from their declared function.
"""

from env.base.jit import compiled


@compiled
def track(state, slot):
    """A workflow is looked at from now on."""
    state.tracked[state.cluster[0].tracked_count] = slot
    state.cluster[0].tracked_count += 1


@compiled
def stop_tracking(state, slot):
    """A workflow has ended, or its only function waits again; the others stay in their order."""
    position = 0
    while state.tracked[position] != slot:
        position += 1
    state.cluster[0].tracked_count -= 1
    for each in range(position, state.cluster[0].tracked_count):
        state.tracked[each] = state.tracked[each + 1]


@compiled
def parallel_cores(state, slot):
    """Cores that a workflow can use at once: core-seconds not placed / seconds it still takes."""
    template = state.templates[state.workflows[slot].template]
    # What is left of a workflow that ends within a second counts as work for a second.
    seconds = max(1.0, state.workflows[slot].finish_bound - state.cluster[0].time)
    return (template.work - state.workflows[slot].placed_work) / seconds


@compiled
def all_that_wait(state, waiting):
    """What is forecast of the workflows of one function that wait, by their declared function.

    The finish bound of the first of them is written, as it may be in decision.

    Returns:
        (their flow times, seconds; the critical path of each; cores that they can use at once).
    """
    path = state.template_functions[waiting].upward_rank
    first = state.functions[state.waiting[waiting].first].slot
    bound = state.cluster[0].time + path
    state.workflows[first].finish_bound = bound
    count = state.waiting[waiting].count
    cores = count * parallel_cores(state, first)
    return count * bound - state.waiting[waiting].arrivals, path, cores
