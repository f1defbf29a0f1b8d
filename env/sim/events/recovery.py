"""What becomes of killed functions and of lost data: retries, back-off, checkpoints, failures.

The settings are those of env/sim/declared/server_changes.py, which says what each of them does.
"""

from __future__ import annotations

import math

import numpy as np

from env.base.jit import compiled, compiled_apart
from env.sim.events.submissions import (
    count_placed,
    end_function,
    end_if_over,
    fail_successors,
    get,
    lose_work,
    offer,
    submit,
)
from env.sim.node.fit import need_of, short_of
from env.sim.queue.central_queue import join_queue, leave_queue, put_first
from env.sim.queue.sharing import give_turn_back
from env.sim.queue.tracking import stop_tracking, track
from env.sim.state.block import State
from env.sim.state.change_records import NO_SERVER_LEFT, RETRIES
from env.sim.state.draws import BACK_OFF, is_called, uniform
from env.sim.state.records import FAILED, FINISHED, INF, LONGEST, NONE, PENDING, RETRY, SUBMITTED
from env.sim.state.timers import set_timer


@compiled
def reset_recovery(state: State) -> None:
    """Nothing has been killed."""
    recovery = state.recovery
    for one in range(len(recovery)):
        recovery[one].retries = recovery[one].failed = recovery[one].recovered = 0
        recovery[one].work_lost = recovery[one].recovery_time = 0.0
        recovery[one].out_time = recovery[one].out_until = 0.0


@compiled_apart
def join_submitted(state: State) -> None:
    """Functions that are there to be placed wait in the central queue, if there is one."""
    while state.options[0].queued == 1 and state.cluster[0].queue_size > 0:
        index, time = state.submitted[0].index, state.submitted[0].time
        get(state, index)
        join_queue(state, index, time)


@compiled
def offer_again(state: State, function: int) -> None:
    """A function that has left its container is there to be placed again."""
    if is_alone(state, function):
        stop_tracking(state, state.functions[function].slot)
    offer(state, function, state.cluster[0].time)


@compiled
def is_alone(state: State, function: int) -> bool:
    """Whether a function is all of its workflow, which then is not tracked while it waits."""
    if state.options[0].queued == 0:
        return False
    return state.waiting[state.functions[function].declared].alone == 1


@compiled_apart
def note_start(state: State, function: int) -> None:
    """A function leaves its container: it may have started in it for the first time since a kill.

    One that has not is killed before its start.
    """
    started = state.functions[function].start_time
    if started <= state.cluster[0].time and state.retried[function].killed_time <= started:
        state.recovery[0].recovered += 1
        state.recovery[0].recovery_time += started - state.retried[function].killed_time
        state.retried[function].killed_time = np.nan


@compiled
def work_left(state: State, function: int, left: int):
    """Operations that a killed function begins with, of which it had `left`.

    What it has done is kept in whole multiples of what it does in `checkpoint` seconds at full
    speed.
    """
    computation, seconds = state.functions[function].computation, state.recovery[0].checkpoint
    if seconds == INF:
        return computation
    declared = state.template_functions[state.functions[function].declared]
    step = declared.computation * seconds / declared.best_time
    kept = int(math.floor((computation - left) / step) * step)
    return max(1, computation - kept)


@compiled_apart
def recover(state: State, function: int, left: int) -> None:
    """A function has been killed with `left` operations to do: it waits, or has failed for good."""
    functions, retried, recovery = state.functions, state.retried, state.recovery
    time, attempt = state.cluster[0].time, state.functions[function].attempt
    functions[function].remaining_computation = work_left(state, function, left)
    lose_work(state, functions[function].remaining_computation - left)
    count_placed(state, function, -1)
    if not retried[function].killed_time <= time:
        retried[function].killed_time = time
    if recovery[0].limit != NONE and attempt > recovery[0].limit:
        fail(state, function, RETRIES)
        return
    recovery[0].retries += 1
    wait = back_off(state, function)
    if wait == 0.0:
        offer_again(state, function)
        return
    functions[function].state = SUBMITTED
    retried[function].backs_off = 1
    if state.options[0].queued == 1:
        state.requests[function].aside = 1
    state.cluster[0].backing_off += 1
    set_timer(state, time + wait, RETRY, function, attempt)


@compiled
def back_off(state: State, function: int):
    """Seconds until a function that was killed is submitted again."""
    recovery, attempt = state.recovery, state.functions[function].attempt
    wait = recovery[0].wait * recovery[0].factor ** (attempt - 1.0)
    if recovery[0].jitter > 0.0:
        fn_id = state.functions[function].fn_id
        stream = BACK_OFF + state.functions[function].wf_id
        number = uniform(state.cluster[0].seed, stream, fn_id * (1 << 20) + attempt)
        wait *= 1.0 + recovery[0].jitter * (2.0 * number - 1.0)
    return min(wait, LONGEST)


@compiled_apart
def retry(state: State, function: int) -> None:
    """The back-off of a function ends."""
    stop_backing_off(state, function)
    offer_again(state, function)
    join_submitted(state)


@compiled
def stop_backing_off(state: State, function: int) -> None:
    """A function does not wait to be submitted again any more."""
    state.retried[function].backs_off = 0
    state.cluster[0].backing_off -= 1


@compiled_apart
def fail(state: State, function: int, reason: int) -> None:
    """A function that waits nowhere has failed, and all that follows it."""
    state.retried[function].reason = reason
    stop_asking(state, function)
    end_function(state, function, state.cluster[0].time, FAILED)


@compiled
def stop_asking(state: State, function: int) -> None:
    """A function that was submitted asks for its image no longer."""
    if len(state.images) > 0:
        image = state.waiting[state.functions[function].declared].image
        state.images[image].active -= 1


@compiled_apart
def fail_all_waiting(state: State) -> None:
    """No server that holds those who wait is in service or to come: they have failed."""
    for function in range(len(state.functions)):
        if state.functions[function].state == SUBMITTED:
            withdraw(state, function)
            fail(state, function, NO_SERVER_LEFT)


@compiled_apart
def withdraw(state: State, function: int) -> None:
    """Takes a submitted function from all that wait, wherever it does; its workflow is tracked."""
    if state.retried[function].backs_off == 1:
        stop_backing_off(state, function)
        return
    if state.options[0].queued == 0 or state.requests[function].aside == 1:
        get(state, function)
        if is_alone(state, function):
            track(state, state.functions[function].slot)
        return
    leave_queue(state, put_first(state, function))
    give_turn_back(state)


@compiled_apart
def holds_any_waiting(state: State, server: int) -> bool:
    """Whether a server, when it is empty, holds one of the functions that wait."""
    node = state.servers[server].first_node  # the others have as much
    for function in range(len(state.functions)):
        waits, memory = state.functions[function].state == SUBMITTED, need_of(state, function)
        if waits and short_of(state, node, function, memory, True) == NONE:
            return True
    return False


@compiled_apart
def lose_data(state: State, server: int) -> None:
    """The data of finished functions that lay on a server are lost; who is needed runs again."""
    workflows, functions = state.workflows, state.functions
    for index in range(len(functions)):
        ended = functions[index].state == FINISHED
        if ended and state.nodes[functions[index].node].server == server:
            state.retried[index].data_lost = 1
    for slot in range(len(workflows)):
        count = state.templates[workflows[slot].template].function_count
        if workflows[slot].wf_id != NONE and workflows[slot].ended < count:
            run_again(state, slot)


@compiled_apart
def run_again(state: State, slot: int) -> None:
    """Functions of a workflow whose data are lost, and needed by one that has not been placed."""
    first, functions = slot * state.cluster[0].functions_per_slot, state.functions
    count, changed = state.templates[state.workflows[slot].template].function_count, True
    while changed:
        changed = False
        for index in range(first, first + count):
            lost = functions[index].state == FINISHED and state.retried[index].data_lost == 1
            if lost and is_needed(state, index, first):
                reopen(state, index, slot, first)
                changed = True
    for index in range(first, first + count):
        if functions[index].state == SUBMITTED and functions[index].unfinished_predecessors > 0:
            withdraw(state, index)
            stop_asking(state, index)
            functions[index].state = PENDING
    fail_successors(state, slot, state.cluster[0].time)
    end_if_over(state, slot, state.cluster[0].time)
    for index in range(first, first + count):
        if functions[index].state == PENDING and functions[index].unfinished_predecessors == 0:
            submit(state, index, state.cluster[0].time)
    join_submitted(state)


@compiled
def is_needed(state: State, index: int, first: int) -> bool:
    """Whether a successor that a function has called waits, for others or to be placed."""
    declared = state.functions[index].declared
    begin = state.template_functions[declared].first_successor
    for edge in range(begin, begin + state.template_functions[declared].successor_count):
        successor = first + state.successors[edge].function
        waits = state.functions[successor].state in (PENDING, SUBMITTED)
        if waits and is_called(state, successor, state.functions[index].fn_id):
            return True
    return False


@compiled
def reopen(state: State, index: int, slot: int, first: int) -> None:
    """A function that has finished has to run again: it is pending, and so are its successors."""
    functions = state.functions
    functions[index].state = PENDING
    functions[index].remaining_computation = functions[index].computation
    lose_work(state, functions[index].computation)
    state.retried[index].data_lost = 0
    state.workflows[slot].ended -= 1
    count_placed(state, index, -1)
    declared = functions[index].declared
    begin = state.template_functions[declared].first_successor
    for edge in range(begin, begin + state.template_functions[declared].successor_count):
        functions[first + state.successors[edge].function].unfinished_predecessors += 1
