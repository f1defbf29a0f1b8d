"""The rules of a NUMA node: the speed model, its projection, admission and completion."""

import numpy as np

from env.base.jit import compiled, compiled_apart
from env.sim.node.cpu_by_tickets import share_out
from env.sim.node.fit import MEMORY, copy_places, give_back_named, short_of, take_named
from env.sim.node.keep_alive import make_room
from env.sim.state.block import State
from env.sim.state.records import INF, NONE
from env.sim.state.timers import update_tree


@compiled
def speed_share(total_parallelism: int, cpu: int, core_speed: int):
    """Operations per second of one thread when `total_parallelism` threads share `cpu` cores."""
    if total_parallelism <= cpu:
        return core_speed
    return (cpu * core_speed) // total_parallelism


@compiled
def container_speed(memory_ratio: float, share: int, parallelism: int):
    """Operations per second of a container; memory_ratio = min(1, memory given / required)."""
    return max(1, int(memory_ratio * share * parallelism))


@compiled
def gather(state: State, node: int):
    """Copies the running list of a node into the scratch; returns the number of entries."""
    scratch, containers = state.scratch, state.containers
    count = 0
    index = state.nodes[node].first_running
    while index != NONE:
        scratch[count].container = index
        scratch[count].start = containers[index].start_time
        scratch[count].completion = INF
        scratch[count].remaining = containers[index].remaining_computation
        scratch[count].parallelism = containers[index].parallelism
        scratch[count].ratio = containers[index].memory_ratio
        scratch[count].speed = 0
        count += 1
        index = containers[index].next
    return count


@compiled
def run_projection(state: State, node: int, count: int, only_first: bool, by_tickets: bool):
    """Plays a node forward from its clock (rule 7) until all `count` entries have completed.

    Returns:
        (entry that completes first, its time, time of the last completion); with `only_first` the
        projection ends with the first completion.
    """
    scratch, now = state.scratch, state.nodes[node].clock
    cpu, core_speed = state.nodes[node].cpu, state.nodes[node].single_core_speed
    active = parallelism = 0
    next_start = INF
    for i in range(count):
        if scratch[i].start <= now:
            scratch[active].active = i
            active += 1
            parallelism += scratch[i].parallelism
        elif scratch[i].start < next_start:
            next_start = scratch[i].start
    elapsed = 0.0
    unfinished = count
    first, first_time = NONE, INF
    while unfinished > 0:
        # One pass an event: what was done since the last one, then the speed from here on.
        share = speed_share(parallelism, cpu, core_speed)
        if by_tickets:
            share_out(state, active, cpu, core_speed)
        completing = NONE
        event = INF
        for j in range(active):
            i = scratch[j].active
            left = max(0, scratch[i].remaining - int(scratch[i].speed * elapsed))
            if by_tickets:
                share = scratch[i].share
            speed = container_speed(scratch[i].ratio, share, scratch[i].parallelism)
            scratch[i].remaining = left
            scratch[i].speed = speed
            completion = now + left / speed
            if completion < event:
                event = completion
                completing = j
        if next_start <= event:
            elapsed = next_start - now
            now = next_start
            next_start = INF
            for i in range(count):
                if scratch[i].start == now:
                    active = activate(scratch, active, i)
                    parallelism += scratch[i].parallelism
                elif now < scratch[i].start < next_start:
                    next_start = scratch[i].start
            continue
        elapsed = event - now
        now = event
        done = scratch[completing].active
        scratch[done].completion = now
        parallelism -= scratch[done].parallelism
        active -= 1
        for j in range(completing, active):
            scratch[j].active = scratch[j + 1].active
        unfinished -= 1
        if first == NONE:
            first = done
            first_time = now
            for i in range(count):
                scratch[i].remaining_at_first = scratch[i].remaining
            for j in range(active):
                i = scratch[j].active
                step = int(scratch[i].speed * elapsed)
                scratch[i].remaining_at_first = max(0, scratch[i].remaining - step)
            if only_first:
                break
    return first, first_time, now


@compiled
def activate(scratch: np.ndarray, active: int, entry: int):
    """Inserts an entry among the `active` running ones, which stand in order of admission."""
    j = active
    while j > 0 and scratch[j - 1].active > entry:
        scratch[j].active = scratch[j - 1].active
        j -= 1
    scratch[j].active = entry
    return active + 1


@compiled
def play_until(state: State, node: int, count: int, time: float):
    """Plays a node forward from its clock to `time`, before which none of the entries completes."""
    scratch, by_tickets = state.scratch, state.options[0].cpu_by_tickets == 1
    cpu, core_speed = state.nodes[node].cpu, state.nodes[node].single_core_speed
    now = state.nodes[node].clock
    while now < time:
        parallelism = active = 0
        event = time
        for i in range(count):
            if scratch[i].start <= now:
                scratch[active].active = i
                active += 1
                parallelism += scratch[i].parallelism
            else:
                event = min(event, scratch[i].start)
        share = speed_share(parallelism, cpu, core_speed)
        if by_tickets:
            share_out(state, active, cpu, core_speed)
        for i in range(count):
            if scratch[i].start <= now:
                share = scratch[i].share if by_tickets else share
                speed = container_speed(scratch[i].ratio, share, scratch[i].parallelism)
                done = int(speed * (event - now))
                scratch[i].remaining = max(0, scratch[i].remaining - done)
        now = event


@compiled_apart
def project(state: State, node: int, full: bool) -> None:
    """Brings the next completion of a node up to date; with `full`, all completion times too."""
    nodes, count = state.nodes, gather(state, node)
    # With a constant, threads that share alike cost nothing for those that do not.
    if state.options[0].cpu_by_tickets == 1:
        first, first_time, last_time = run_projection(state, node, count, not full, True)
    else:
        first, first_time, last_time = run_projection(state, node, count, not full, False)
    nodes[node].next_completion = first_time
    nodes[node].next_container = NONE if first == NONE else state.scratch[first].container
    for i in range(count):
        index = state.scratch[i].container
        state.containers[index].remaining_at_next = state.scratch[i].remaining_at_first
        if full:
            state.containers[index].completion_time = state.scratch[i].completion
    if full:
        nodes[node].last_completion = last_time if count > 0 else -INF
        nodes[node].projected = 1


@compiled
def used_memory_at(state: State, node: int, time: float):
    """MB in projected use at a time: completions and starts at that moment count as done."""
    if state.nodes[node].projected == 0:
        project(state, node, True)
    used = 0
    index = state.nodes[node].first_running
    while index != NONE:
        if state.containers[index].start_time <= time < state.containers[index].completion_time:
            used += state.containers[index].memory_alloc
        index = state.containers[index].next
    return used


@compiled
def fits_at(state: State, node: int, function: int, memory: int, time: float) -> bool:
    """Whether a function that is given `memory` MB can start at `time` (rule 5).

    Memory is free then according to the projection; named resources are free now.
    """
    short = short_of(state, node, function, memory, False)
    if short != MEMORY:
        return short == NONE
    return used_memory_at(state, node, time) + memory <= state.nodes[node].memory


@compiled
def admit(state: State, node: int, index: int, start_time: float) -> None:
    """Appends a container to the running list; counts it if the node is now over-committed."""
    nodes, containers = state.nodes, state.containers
    containers[index].start_time = start_time
    containers[index].next = NONE
    if nodes[node].last_running == NONE:
        nodes[node].first_running = index
    else:
        containers[nodes[node].last_running].next = index
    nodes[node].last_running = index
    nodes[node].running_count += 1
    nodes[node].allocated_memory += containers[index].memory_alloc
    take_named(state, node, index)
    nodes[node].projected = 0
    nodes[node].forecast = 0
    if nodes[node].first_idle != NONE:
        make_room(state, node)
    state.functions[containers[index].function].start_time = start_time
    if nodes[node].allocated_memory > nodes[node].memory:
        moment = nodes[node].first_running
        while moment != NONE:
            at = containers[moment].start_time
            if used_memory_at(state, node, at) > nodes[node].memory:
                state.cluster[0].overcommits += 1
                break
            moment = containers[moment].next


@compiled
def node_on_container_creation(state: State, node: int, index: int) -> None:
    """A container starts at its creation time if its node has room then; else it waits."""
    nodes, containers = state.nodes, state.containers
    nodes[node].parallelism += containers[index].parallelism
    creation = containers[index].creation_time
    function, memory = containers[index].function, containers[index].memory_alloc
    if fits_at(state, node, function, memory, creation):
        admit(state, node, index, creation)
        if nodes[node].projected == 0:
            project(state, node, False)
        update_tree(state, node)
        return
    containers[index].start_time = np.nan
    containers[index].next = NONE
    if nodes[node].last_waiting == NONE:
        nodes[node].first_waiting = index
    else:
        containers[nodes[node].last_waiting].next = index
    nodes[node].last_waiting = index
    nodes[node].waiting_count += 1
    nodes[node].waiting_memory += containers[index].memory_alloc
    nodes[node].forecast = 0


@compiled
def leave(state: State, node: int, previous: int, index: int, time: float) -> None:
    """Takes a container, which comes after `previous`, off the running list at `time`."""
    nodes, containers = state.nodes, state.containers
    following = containers[index].next
    if previous == NONE:
        nodes[node].first_running = following
    else:
        containers[previous].next = following
    if following == NONE:
        nodes[node].last_running = previous
    nodes[node].clock = time
    nodes[node].forecast = 0
    nodes[node].running_count -= 1
    nodes[node].allocated_memory -= containers[index].memory_alloc
    give_back_named(state, node, index)
    nodes[node].parallelism -= containers[index].parallelism


@compiled_apart
def node_on_container_removal(state: State, node: int, removed: int, time: float) -> None:
    """Takes a running container off a node at `time`, before the next completion.

    Its record keeps the work left; it still belongs to the caller. Waiting containers that fit now
    start.
    """
    nodes, containers, scratch = state.nodes, state.containers, state.scratch
    count = gather(state, node)
    play_until(state, node, count, time)
    previous = NONE
    for i in range(count):
        containers[scratch[i].container].remaining_computation = scratch[i].remaining
        if scratch[i].container == removed and i > 0:
            previous = scratch[i - 1].container
    leave(state, node, previous, removed, time)
    nodes[node].projected = 0
    admit_waiting(state, node, time)
    project(state, node, False)
    update_tree(state, node)


@compiled
def stop_waiting(state: State, node: int, removed: int) -> None:
    """Takes a container out of a node's queue; it still counts among the threads of the node."""
    nodes, containers = state.nodes, state.containers
    previous, index = NONE, nodes[node].first_waiting
    while index != removed:
        previous, index = index, containers[index].next
    if previous == NONE:
        nodes[node].first_waiting = containers[removed].next
    else:
        containers[previous].next = containers[removed].next
    if nodes[node].last_waiting == removed:
        nodes[node].last_waiting = previous
    nodes[node].waiting_count -= 1
    nodes[node].waiting_memory -= containers[removed].memory_alloc
    nodes[node].forecast = 0


@compiled
def admit_waiting(state: State, node: int, time: float) -> None:
    """Starts waiting containers, in their order, until the first does not fit (rule 6)."""
    nodes, containers = state.nodes, state.containers
    while nodes[node].first_waiting != NONE:
        head = nodes[node].first_waiting
        start = max(time, containers[head].creation_time)
        function, memory = containers[head].function, containers[head].memory_alloc
        if not fits_at(state, node, function, memory, start):
            break
        stop_waiting(state, node, head)
        admit(state, node, head, start)


@compiled_apart
def node_on_container_completion(state: State, node: int):
    """Completes the container that ends first, starts waiting ones that fit (rules 6 and 8).

    Returns:
        the completed container; its record still belongs to it.
    """
    nodes, containers = state.nodes, state.containers
    done = nodes[node].next_container
    time = nodes[node].next_completion
    previous = before_done = NONE
    index = nodes[node].first_running
    while index != NONE:
        following = containers[index].next
        if index == done:
            before_done = previous
        else:
            containers[index].remaining_computation = containers[index].remaining_at_next
            previous = index
        index = following
    leave(state, node, before_done, done, time)
    containers[done].completion_time = time
    containers[done].remaining_computation = 0
    admit_waiting(state, node, time)
    project(state, node, False)
    update_tree(state, node)
    return done


@compiled
def reset_node(state: State, node: int) -> None:
    """An empty node at time 0."""
    nodes = state.nodes
    nodes[node].clock = 0.0
    nodes[node].first_running = nodes[node].last_running = NONE
    nodes[node].first_waiting = nodes[node].last_waiting = NONE
    nodes[node].running_count = nodes[node].waiting_count = 0
    nodes[node].allocated_memory = nodes[node].waiting_memory = nodes[node].parallelism = 0
    nodes[node].next_completion = INF
    nodes[node].next_container = NONE
    nodes[node].last_completion = -INF
    nodes[node].projected = nodes[node].forecast = 1
    places, kind = len(state.named_kept), state.servers[nodes[node].server].type
    copy_places(state.named_left, node * places, state.named_capacity, kind * places, places)
