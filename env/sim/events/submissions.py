"""Arrivals, the queue of submitted functions, and what follows a completion."""

from __future__ import annotations

import numpy as np

from env.base.jit import compiled, compiled_apart
from env.sim.events.requests import begin_request
from env.sim.node.fit import any_holds
from env.sim.queue.tracking import stop_tracking, track
from env.sim.state import records
from env.sim.state.block import State
from env.sim.state.change_records import PREDECESSOR, RETRIED
from env.sim.state.containers import declared_left
from env.sim.state.draws import is_called
from env.sim.state.records import NONE
from env.sim.state.timers import before, drop, drop_timer, push, set_timer

NO_WORKFLOW = np.zeros(1, records.WORKFLOW)
NO_WORKFLOW["wf_id"], NO_WORKFLOW["completion_time"] = NONE, np.nan
NO_WORKFLOW["raised_bound"] = -np.inf
NO_FUNCTION = np.zeros(1, records.FUNCTION)  # it is PENDING
NO_FUNCTION["node"] = NO_FUNCTION["region"] = NONE
NO_FUNCTION["submission_time"] = np.nan
NEVER_KILLED = np.zeros(1, RETRIED)
NEVER_KILLED["killed_time"] = np.nan


@compiled
def reset_workload(state: State) -> None:
    """Nothing has arrived, in a cluster as at time 0; the first arrival is on the timers."""
    cluster = state.cluster
    cluster[0].arrivals_left = len(state.arrivals)
    for position in range(len(state.arrivals)):
        template = state.arrivals[position].template
        cluster[0].declared_path += state.templates[template].critical_path
        cluster[0].declared_work += state.templates[template].work
    cluster[0].free_slots = len(state.workflows)
    for slot in range(len(state.workflows)):
        state.free_slots[slot] = slot
        state.workflows[slot] = NO_WORKFLOW[0]
    for index in range(len(state.functions)):
        state.functions[index] = NO_FUNCTION[0]
    state.slot_of[:] = NONE
    schedule_arrival(state, 0)


@compiled
def schedule_arrival(state: State, position: int) -> None:
    """Puts the arrival at a position of the list on the timers."""
    if position < len(state.arrivals):
        time, wf_id = state.arrivals[position].time, state.arrivals[position].wf_id
        set_timer(state, time, records.ARRIVAL, wf_id, position)


@compiled_apart
def arrive(state: State, position: int):
    """A workflow takes a free slot and submits its sources.

    Returns:
        0, or NO_WORKFLOW_SLOT if as many workflows are active as there are slots.
    """
    cluster, workflows, functions = state.cluster, state.workflows, state.functions
    if cluster[0].free_slots == 0:
        return records.NO_WORKFLOW_SLOT
    slot = state.free_slots[cluster[0].first_free_slot]
    following = cluster[0].first_free_slot + 1
    cluster[0].first_free_slot = following if following < len(workflows) else 0
    cluster[0].free_slots -= 1
    if workflows[slot].wf_id != NONE:
        state.slot_of[workflows[slot].wf_id] = records.RECYCLED
    drawn = state.arrivals[position].computation
    wf_id = state.arrivals[position].wf_id
    template = state.arrivals[position].template
    time = state.arrivals[position].time
    state.slot_of[wf_id] = slot
    workflows[slot] = NO_WORKFLOW[0]
    workflows[slot].wf_id = wf_id
    workflows[slot].template = template
    workflows[slot].tenant = state.arrivals[position].tenant
    workflows[slot].tickets = state.arrivals[position].tickets
    if state.options[0].asks_tickets == 1:
        state.queue[0].newcomer = slot
    workflows[slot].arrival_time = time
    workflows[slot].finish_bound = time + state.templates[template].critical_path
    if state.options[0].queued == 0 or state.templates[template].function_count > 1:
        track(state, slot)
    cluster[0].arrived += 1
    cluster[0].arrived_path += state.templates[template].critical_path
    cluster[0].arrived_work += state.templates[template].work
    first = slot * cluster[0].functions_per_slot
    first_declared = state.templates[template].first_function
    for fn_id in range(state.templates[template].function_count):
        index, declared = first + fn_id, first_declared + fn_id
        functions[index] = NO_FUNCTION[0]
        if len(state.retried) > 0:
            state.retried[index] = NEVER_KILLED[0]
        functions[index].wf_id = wf_id
        functions[index].fn_id = fn_id
        functions[index].slot = slot
        functions[index].declared = declared
        functions[index].computation = state.template_functions[declared].computation
        if drawn > 0:
            functions[index].surplus = drawn - functions[index].computation
            functions[index].computation = drawn
        functions[index].remaining_computation = functions[index].computation
        functions[index].memory_req = state.template_functions[declared].memory_req
        functions[index].parallelism = state.template_functions[declared].parallelism
        functions[index].unfinished_predecessors = state.template_functions[
            declared
        ].predecessor_count
        if functions[index].unfinished_predecessors == 0:
            submit(state, index, time)
    return 0


@compiled
def arrive_next(state: State):
    """The arrival that is the next timer takes place; returns what `arrive` returns."""
    position = state.timers[0].index
    drop_timer(state)
    error = arrive(state, position)
    if error == 0:
        state.cluster[0].arrivals_left -= 1
        schedule_arrival(state, position + 1)
    return error


@compiled
def forget_future(state: State) -> None:
    """No further workflow arrives, and functions that end from now on call all that they can."""
    state.cluster[0].arrivals_left = 0
    state.cluster[0].drawn_until = state.cluster[0].time


@compiled
def submit(state: State, index: int, time: float) -> None:
    """A function becomes ready."""
    functions = state.functions
    functions[index].submission_time = time
    if len(state.images) > 0:
        begin_request(state, index, time)
    offer(state, index, time)


@compiled
def offer(state: State, index: int, time: float) -> None:
    """A function is there to be placed, or to join the central queue."""
    functions, size = state.functions, state.cluster[0].queue_size
    functions[index].state = records.SUBMITTED
    functions[index].joined_time = time
    push(state.submitted, size, time, functions[index].wf_id, functions[index].fn_id, index)
    count_submitted(state, index, 1)


@compiled
def count_submitted(state: State, index: int, sign: int) -> None:
    """A function is one of those that are submitted (`sign` 1), or no longer (-1)."""
    cluster, threads = state.cluster, sign * state.functions[index].parallelism
    cluster[0].queue_size += sign
    cluster[0].queue_threads += threads
    cluster[0].queue_computation += sign * declared_left(state.functions, index)
    state.workflows[state.functions[index].slot].queue_threads += threads


@compiled_apart
def any_to_place(state: State) -> bool:
    """Whether a submitted function can be placed; the first of them becomes `deciding`.

    A function waits while no server in service holds it with all the memory that it needs.
    """
    submitted, first = state.submitted, NONE
    for position in range(state.cluster[0].queue_size):
        if first == NONE or before(submitted, position, first):
            index = submitted[position].index
            if any_holds(state, index, state.functions[index].memory_req):
                first, state.cluster[0].deciding = position, index
        if first == 0:
            break  # the first of a heap comes before all others
    return first != NONE


@compiled
def get(state: State, index: int) -> None:
    """Takes a function from those that are submitted, mostly the first of them."""
    position = 0
    while state.submitted[position].index != index:
        position += 1
    drop(state.submitted, state.cluster[0].queue_size, position)
    count_submitted(state, index, -1)


@compiled
def run_function(state: State, index: int, node: int, memory_alloc: int, creation_time: float):
    """A function has been placed."""
    functions = state.functions
    functions[index].state = records.RUNNING
    functions[index].node = node
    functions[index].memory_alloc = memory_alloc
    functions[index].creation_time = creation_time
    functions[index].start_time = np.nan
    count_placed(state, index, 1)


@compiled
def end_function(state: State, index: int, time: float, outcome: int) -> None:
    """The one way out of a function: it has finished, or is skipped or has failed.

    Successors wait for predecessors to finish or be skipped; what follows a failed function fails,
    and what nobody calls is skipped (`settle`). Who is skipped or fails is in no queue and in no
    container.
    """
    slot = state.functions[index].slot
    note_end(state, index, slot, time, outcome)
    if outcome == records.FAILED:
        fail_successors(state, slot, time)
    else:
        release_successors(state, index, time)
        if state.template_functions[state.functions[index].declared].conditional == 1:
            settle(state, slot, time)
    end_if_over(state, slot, time)


@compiled
def end_if_over(state: State, slot: int, time: float) -> None:
    """A workflow ends once all its functions have: its slot is free for another."""
    cluster, workflows = state.cluster, state.workflows
    template = state.templates[workflows[slot].template]
    if workflows[slot].ended < template.function_count:
        return
    workflows[slot].completion_time = time
    flow_time = time - workflows[slot].arrival_time
    cluster[0].finished_workflows += 1
    stop_tracking(state, slot)
    cluster[0].finished_slowdown += flow_time / template.critical_path
    cluster[0].finished_flow_time += flow_time
    give_slot_back(state, slot)


@compiled
def note_end(state: State, index: int, slot: int, time: float, outcome: int) -> None:
    """A function has ended. The work of one that has not finished will never be placed."""
    state.functions[index].state = outcome
    state.functions[index].completion_time = time
    state.workflows[slot].ended += 1
    if outcome != records.FINISHED:
        count_placed(state, index, 1)
    if outcome == records.FAILED and len(state.recovery) > 0:
        state.recovery[0].failed += 1
        left = state.functions[index].remaining_computation
        lose_work(state, state.functions[index].computation - left)
        if state.retried[index].reason == 0:
            state.retried[index].reason = PREDECESSOR


@compiled
def lose_work(state: State, operations: int) -> None:
    """Operations that were done do not count."""
    state.recovery[0].work_lost += operations / state.cluster[0].single_core_speed


@compiled
def count_placed(state: State, index: int, sign: int) -> None:
    """Adds the work that a function has left to that which is placed, or takes it away again."""
    cluster = state.cluster
    work = sign * declared_left(state.functions, index) / cluster[0].single_core_speed
    cluster[0].placed_work += work
    state.workflows[state.functions[index].slot].placed_work += work


@compiled
def release_successors(state: State, index: int, time: float) -> None:
    """Submits the successors of a function that wait for nothing else, where calls are certain."""
    functions = state.functions
    first = index - functions[index].fn_id
    declared = state.functions[index].declared
    certain = state.template_functions[declared].conditional == 0
    begin = state.template_functions[declared].first_successor
    for edge in range(begin, begin + state.template_functions[declared].successor_count):
        successor = first + state.successors[edge].function
        functions[successor].unfinished_predecessors -= 1
        ready = functions[successor].unfinished_predecessors == 0
        if ready and certain and functions[successor].state == records.PENDING:
            submit(state, successor, time)


@compiled_apart
def settle(state: State, slot: int, time: float) -> None:
    """Where all callers of a function have ended it is submitted, or skipped if none has called it.

    A function that is skipped calls nobody, so others may be skipped behind it.
    """
    functions, first = state.functions, slot * state.cluster[0].functions_per_slot
    count = state.templates[state.workflows[slot].template].function_count
    changed = True
    while changed:
        changed = False
        for index in range(first, first + count):
            waits = functions[index].unfinished_predecessors > 0
            if waits or functions[index].state != records.PENDING:
                continue
            if is_called(state, index, NONE):
                submit(state, index, time)
            else:
                note_end(state, index, slot, time, records.NOT_CALLED)
                release_successors(state, index, time)
                changed = True


@compiled_apart
def fail_successors(state: State, slot: int, time: float) -> None:
    """What is behind failed functions of a workflow fails, too: it can never be submitted."""
    functions, first = state.functions, slot * state.cluster[0].functions_per_slot
    count = state.templates[state.workflows[slot].template].function_count
    changed = True
    while changed:
        changed = False
        for source in range(first, first + count):
            if functions[source].state != records.FAILED:
                continue
            declared = state.functions[source].declared
            begin = state.template_functions[declared].first_successor
            for edge in range(begin, begin + state.template_functions[declared].successor_count):
                successor = first + state.successors[edge].function
                if functions[successor].state == records.PENDING:
                    note_end(state, successor, slot, time, records.FAILED)
                    changed = True


@compiled
def give_slot_back(state: State, slot: int) -> None:
    """A slot is free: the last to be taken, so that what has ended can still be looked at.

    Where a trace is played piece by piece nobody looks back, and it is the first to be taken: few
    records in turn stay in the processor's caches.
    """
    cluster, slots = state.cluster, len(state.workflows)
    if state.queue[0].first_number == NONE:
        last = cluster[0].first_free_slot + cluster[0].free_slots
        state.free_slots[last if last < slots else last - slots] = slot
    else:
        first = cluster[0].first_free_slot
        cluster[0].first_free_slot = (first if first > 0 else slots) - 1
        state.free_slots[cluster[0].first_free_slot] = slot
    cluster[0].free_slots += 1
