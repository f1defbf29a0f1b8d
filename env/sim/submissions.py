"""Arrivals, the queue of submitted functions, and what follows a completion."""

from __future__ import annotations

import numpy as np

from env.sim.heap import drop_first, push
from env.sim.jit import compiled
from env.sim.records import (
    ARRIVAL,
    FINISHED,
    NO_WORKFLOW_SLOT,
    NONE,
    PENDING,
    RECYCLED,
    RUNNING,
    SUBMITTED,
)


@compiled
def reset_workload(state):
    """Nothing has arrived; the first arrival is on the timers."""
    cluster, workflows = state.cluster, state.workflows
    cluster[0].queue_size = 0
    cluster[0].timers_size = 0
    cluster[0].arrived = 0
    cluster[0].arrived_work = 0.0
    cluster[0].placed_work = 0.0
    cluster[0].queue_threads = 0
    cluster[0].queue_computation = 0
    cluster[0].finished_workflows = 0
    cluster[0].finished_slowdown = 0.0
    cluster[0].first_free_slot = 0
    cluster[0].free_slots = len(workflows)
    for slot in range(len(workflows)):
        state.free_slots[slot] = slot
        workflows[slot].wf_id = NONE
    for index in range(len(state.functions)):
        state.functions[index].state = PENDING
        state.functions[index].node = NONE
    state.slot_of[:] = NONE
    schedule_arrival(state, 0)


@compiled
def schedule_arrival(state, position):
    """Puts the arrival at a position of the list on the timers."""
    if position < len(state.arrivals):
        wf_id = state.arrivals[position].wf_id
        push(
            state.timers,
            state.cluster[0].timers_size,
            state.arrivals[position].time,
            ARRIVAL,
            wf_id,
            position,
        )
        state.cluster[0].timers_size += 1


@compiled
def arrive(state, position):
    """A workflow takes a free slot and submits its sources.

    Returns:
        0, or NO_WORKFLOW_SLOT if as many workflows are active as there are slots.
    """
    cluster, workflows, functions = state.cluster, state.workflows, state.functions
    if cluster[0].free_slots == 0:
        return NO_WORKFLOW_SLOT
    slot = state.free_slots[cluster[0].first_free_slot]
    cluster[0].first_free_slot = (cluster[0].first_free_slot + 1) % len(workflows)
    cluster[0].free_slots -= 1
    if workflows[slot].wf_id != NONE:
        state.slot_of[workflows[slot].wf_id] = RECYCLED
    wf_id = state.arrivals[position].wf_id
    template = state.arrivals[position].template
    time = state.arrivals[position].time
    state.slot_of[wf_id] = slot
    workflows[slot].wf_id = wf_id
    workflows[slot].template = template
    workflows[slot].arrival_time = time
    workflows[slot].completion_time = np.nan
    workflows[slot].finished = 0
    workflows[slot].placed_work = 0.0
    workflows[slot].queue_threads = 0
    workflows[slot].finish_bound = time + state.templates[template].critical_path
    cluster[0].arrived += 1
    cluster[0].arrived_work += state.templates[template].work
    first = slot * cluster[0].functions_per_slot
    known = state.templates[template].first_function
    for fn_id in range(state.templates[template].function_count):
        index, declared = first + fn_id, known + fn_id
        functions[index].wf_id = wf_id
        functions[index].fn_id = fn_id
        functions[index].computation = state.template_functions[declared].computation
        functions[index].memory_req = state.template_functions[declared].memory_req
        functions[index].parallelism = state.template_functions[declared].parallelism
        functions[index].unfinished_predecessors = state.template_functions[
            declared
        ].predecessor_count
        functions[index].state = PENDING
        functions[index].memory_alloc = 0
        functions[index].node = NONE
        if functions[index].unfinished_predecessors == 0:
            submit(state, index, time)
    schedule_arrival(state, position + 1)
    return 0


@compiled
def fire_timer(state):
    """Fires the next timer, which today is an arrival; returns what `arrive` returns."""
    position = state.timers[0].index
    drop_first(state.timers, state.cluster[0].timers_size)
    state.cluster[0].timers_size -= 1
    return arrive(state, position)


@compiled
def declared(state, index):
    """Index of a function in `template_functions`."""
    slot = index // state.cluster[0].functions_per_slot
    template = state.workflows[slot].template
    return state.templates[template].first_function + state.functions[index].fn_id


@compiled
def submit(state, index, time):
    """A function becomes ready: it joins the queue."""
    functions = state.functions
    slot = index // state.cluster[0].functions_per_slot
    functions[index].state = SUBMITTED
    functions[index].submission_time = time
    push(
        state.queue,
        state.cluster[0].queue_size,
        time,
        functions[index].wf_id,
        functions[index].fn_id,
        index,
    )
    state.cluster[0].queue_size += 1
    state.cluster[0].queue_threads += functions[index].parallelism
    state.workflows[slot].queue_threads += functions[index].parallelism
    state.cluster[0].queue_computation += functions[index].computation


@compiled
def get(state):
    """Takes the next function from the queue."""
    index = state.queue[0].index
    drop_first(state.queue, state.cluster[0].queue_size)
    state.cluster[0].queue_size -= 1
    state.cluster[0].queue_threads -= state.functions[index].parallelism
    slot = index // state.cluster[0].functions_per_slot
    state.workflows[slot].queue_threads -= state.functions[index].parallelism
    state.cluster[0].queue_computation -= state.functions[index].computation
    return index


@compiled
def run_function(state, index, node, memory_alloc, creation_time):
    """A function has been placed."""
    functions = state.functions
    functions[index].state = RUNNING
    functions[index].node = node
    functions[index].memory_alloc = memory_alloc
    functions[index].creation_time = creation_time
    functions[index].start_time = np.nan
    cluster = state.cluster
    work = functions[index].computation / cluster[0].single_core_speed
    cluster[0].placed_work += work
    state.workflows[index // cluster[0].functions_per_slot].placed_work += work


@compiled
def finish_function(state, index, time):
    """A function has ended: submits successors that wait for nothing else, or ends the workflow."""
    cluster, workflows, functions = state.cluster, state.workflows, state.functions
    functions[index].state = FINISHED
    functions[index].completion_time = time
    slot = index // cluster[0].functions_per_slot
    template = workflows[slot].template
    known = declared(state, index)
    first = slot * cluster[0].functions_per_slot
    begin = state.template_functions[known].first_successor
    for edge in range(begin, begin + state.template_functions[known].successor_count):
        successor = first + state.successors[edge].function
        functions[successor].unfinished_predecessors -= 1
        if functions[successor].unfinished_predecessors == 0:
            submit(state, successor, time)
    workflows[slot].finished += 1
    if workflows[slot].finished == state.templates[template].function_count:
        workflows[slot].completion_time = time
        flow_time = time - workflows[slot].arrival_time
        cluster[0].finished_workflows += 1
        cluster[0].finished_slowdown += flow_time / state.templates[template].critical_path
        free = (cluster[0].first_free_slot + cluster[0].free_slots) % len(workflows)
        state.free_slots[free] = slot
        cluster[0].free_slots += 1
