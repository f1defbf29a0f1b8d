"""How a NUMA node goes on if nothing else is placed: when each of its containers ends.

Where the engine projects a node exactly (rule 7), forecasts count in `demand`: the operations that
each thread of a container has left, had it all its memory. Whatever runs on a node is drained of it
at one rate, the share of a thread, so containers end in the order of the marks
(operations drained at the start + demand) and a node is played forward in one pass over sorted
lists. Where tenants share cores by tickets, threads drain at unlike rates, and each event looks at
all containers that run. Left out are the roundings of speeds and of work done to whole operations:
a forecast is early by at most about one operation an event, and by one operation a second where
memory is short.
"""

from env.base.jit import compiled, compiled_apart
from env.sim.node.cpu_by_tickets import (
    add_threads,
    begin_sharing,
    divide_cores,
    tenant_of,
    thread_speed,
)
from env.sim.node.fit import copy_places, give_back_named, short_of_named, take_named
from env.sim.node.projection import speed_share
from env.sim.state.block import State
from env.sim.state.records import INF, NONE


@compiled
def forecast_node(state: State, node: int) -> None:
    """Brings the sorted lists and `forecast_completion` of all containers of a node up to date."""
    nodes, containers = state.nodes, state.containers
    draining = upcoming = NONE
    parallelism = memory = backlog = 0
    for head in (nodes[node].first_running, nodes[node].first_waiting):
        index = head
        while index != NONE:
            backlog += containers[index].remaining_computation
            containers[index].demand = demand_of(containers[index])
            start = containers[index].start_time  # nan while it waits
            if start <= nodes[node].clock:
                demand = containers[index].demand
                draining = insert_ordered(containers, draining, index, demand)
                parallelism += containers[index].parallelism
                memory += containers[index].memory_alloc
            elif start > nodes[node].clock:
                upcoming = insert_ordered(containers, upcoming, index, start)
            index = containers[index].next
    nodes[node].first_draining = draining
    nodes[node].first_upcoming = upcoming
    nodes[node].draining_parallelism = parallelism
    nodes[node].draining_memory = memory
    nodes[node].backlog = backlog
    nodes[node].forecast_last, _, _, _ = play_forward(state, node, NONE, INF)
    nodes[node].forecast = 1


@compiled
def play_forward(state: State, node: int, candidate, start: float):
    """`play`, which is compiled apart for each way of sharing the cores."""
    if state.options[0].cpu_by_tickets == 1:
        return play_by_tickets(state, node, candidate, start)
    return play_at_one_rate(state, node, candidate, start)


@compiled_apart
def play_at_one_rate(state: State, node: int, candidate, start: float):
    """`play` of a node whose threads all drain at one rate."""
    return play(state, node, candidate, start, False)


@compiled_apart
def play_by_tickets(state: State, node: int, candidate, start: float):
    """`play` of a node on which tenants share the cores by their tickets."""
    return play(state, node, candidate, start, True)


@compiled
def play(state: State, node: int, candidate, start: float, by_tickets: bool):
    """Plays a node from its clock until all its containers have completed.

    Without a candidate (NONE) it writes `forecast_completion` of them all. With one, which starts
    at `start` or, if that is inf, heads for the end of the node's queue, it writes that of the
    candidate, collects the workflows whose finish bounds rise, and sums `later_end` of the others.

    Returns:
        (time of the last completion, head of the list of raised workflows, sums of `later_end`).
    """
    nodes, containers = state.nodes, state.containers
    now = nodes[node].clock
    cpu, core_speed = nodes[node].cpu, nodes[node].single_core_speed
    parallelism, used = nodes[node].draining_parallelism, nodes[node].draining_memory
    drained = 0.0  # operations of each thread since the clock
    draining, upcoming = nodes[node].first_draining, nodes[node].first_upcoming
    # Started since the clock, by the mark at which they end. By tickets all that run, in no order;
    # the key of each is what is left of its demand.
    joined = NONE
    while by_tickets and draining != NONE:
        joined = put_first(containers, joined, draining, containers[draining].demand)
        draining = containers[draining].next_in_order
    late = NONE  # to start later, beside the upcoming ones
    waiting, last_in_queue = nodes[node].first_waiting, NONE
    places = len(state.named_kept)
    copy_places(state.named_kept, 0, state.named_left, node * places, places)
    if start < INF:
        take_named(state, node, candidate)
        late = insert_joined(containers, late, candidate, start)
    else:
        last_in_queue = candidate
        if waiting == NONE:
            waiting = candidate
    raised = NONE
    later = tight = 0.0
    while True:
        ending, seconds, share, mark, joined_ends = NONE, INF, 0, INF, True
        if by_tickets:
            ending, seconds = first_end(state, joined, cpu, core_speed)
            completion = now + seconds
        else:
            share = max(1, speed_share(parallelism, cpu, core_speed))
            mark = containers[draining].order_key if draining != NONE else INF
            joined_ends = joined != NONE and containers[joined].joined_key < mark
            if joined_ends:
                mark = containers[joined].joined_key
            completion = now + (mark - drained) / share
        begin = containers[upcoming].order_key if upcoming != NONE else INF
        late_begins = late != NONE and containers[late].joined_key < begin
        if late_begins:
            begin = containers[late].joined_key
        if begin < INF and begin <= completion:
            if late_begins:
                index, late = late, containers[late].next_joined
            else:
                index, upcoming = upcoming, containers[upcoming].next_in_order
            if by_tickets:
                begin = max(now, begin)
                drain(state, joined, begin - now)
            else:
                drained += (begin - now) * share
            now = begin
            joined = run(containers, joined, index, drained, by_tickets)
            parallelism += containers[index].parallelism
            used += containers[index].memory_alloc
            continue
        if completion == INF:
            copy_places(state.named_left, node * places, state.named_kept, 0, places)
            return now, raised, later, tight
        if by_tickets:
            drain(state, joined, seconds)
            index, joined = ending, taken_out(containers, joined, ending)
        elif joined_ends:
            index, joined = joined, containers[joined].next_joined
        else:
            index, draining = draining, containers[draining].next_in_order
        now, drained = completion, mark
        parallelism -= containers[index].parallelism
        used -= containers[index].memory_alloc
        give_back_named(state, node, index)
        raised, later, tight = note_end(state, index, now, candidate, raised, later, tight)
        while (
            waiting != NONE
            and used + containers[waiting].memory_alloc <= nodes[node].memory
            and short_of_named(state, node, containers[waiting].function, False) == NONE
        ):
            index = waiting
            take_named(state, node, index)
            waiting = containers[index].next
            if waiting == NONE and index != last_in_queue:
                waiting = last_in_queue
            if containers[index].creation_time > now:
                late = insert_joined(containers, late, index, containers[index].creation_time)
                continue
            joined = run(containers, joined, index, drained, by_tickets)
            parallelism += containers[index].parallelism
            used += containers[index].memory_alloc


@compiled
def run(containers, joined, index: int, drained, by_tickets: bool):
    """A container starts; returns the head of the list of those that have."""
    if by_tickets:
        return put_first(containers, joined, index, containers[index].demand)
    return insert_joined(containers, joined, index, drained + containers[index].demand)


@compiled
def put_first(containers, first: int, index: int, key: float):
    """Puts a container before a list; returns its head."""
    containers[index].joined_key, containers[index].next_joined = key, first
    return index


@compiled
def taken_out(containers, first: int, index: int):
    """Takes a container out of a list; returns its head."""
    if first == index:
        return containers[index].next_joined
    previous = first
    while containers[previous].next_joined != index:
        previous = containers[previous].next_joined
    containers[previous].next_joined = containers[index].next_joined
    return first


@compiled
def first_end(state: State, first: int, cpu: int, core_speed: int):
    """(the container of a list that ends first, seconds until then), at the speeds of now."""
    containers = state.containers
    begin_sharing(state)
    index = first
    while index != NONE:
        add_threads(state, tenant_of(state, index), containers[index].parallelism)
        index = containers[index].next_joined
    divide_cores(state, cpu, core_speed)
    ending, seconds, index = NONE, INF, first
    while index != NONE:
        left = containers[index].joined_key / max(1, thread_speed(state, tenant_of(state, index)))
        if left < seconds:
            ending, seconds = index, left
        index = containers[index].next_joined
    return ending, seconds


@compiled
def drain(state: State, first: int, seconds: float) -> None:
    """All containers of a list run for some seconds, at the speeds of `first_end`."""
    containers, index = state.containers, first
    while index != NONE:
        done = seconds * max(1, thread_speed(state, tenant_of(state, index)))
        containers[index].joined_key = max(0.0, containers[index].joined_key - done)
        index = containers[index].next_joined


# Ends of containers: lists of them by time, the finish bounds that they raise.


@compiled
def insert_ordered(containers, first: int, index: int, key: float):
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
def insert_joined(containers, first: int, index: int, key: float):
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
def raise_bound(state: State, index: int, completion: float, raised: int):
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
def later_end(state: State, index: int, completion: float):
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
def note_end(state: State, index: int, now, candidate: int, raised: int, later, tight):
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
