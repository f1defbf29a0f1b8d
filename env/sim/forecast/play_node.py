"""How a NUMA node goes on if nothing else is placed: when each of its containers ends.

Where the engine projects a node exactly (rule 7), forecasts count in `demand`: the operations that
each thread of a container has left, had it all its memory. Whatever runs on a node is drained of it
at one rate, the share of a thread, so containers end in the order of the marks
(operations drained at the start + demand) and a node is played forward in one pass over sorted
lists. Left out are the roundings of speeds and of work done to whole operations: a forecast is
early by at most about one operation an event, and by one operation a second where memory is short.
"""

from env.base.jit import compiled, compiled_apart
from env.sim.forecast.ends import demand_of, insert_joined, insert_ordered, note_end
from env.sim.forecast.play_by_tickets import play_by_tickets
from env.sim.node.fit import hold_named, keep_named, restore_named, short_of_named
from env.sim.node.projection import speed_share
from env.sim.state.records import INF, NONE


@compiled
def forecast_node(state, node):
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
def play_forward(state, node, candidate, start):
    """`play_at_one_rate`, or the same where tenants share cores by tickets."""
    if state.options[0].cpu_by_tickets == 1:
        return play_by_tickets(state, node, candidate, start)
    return play_at_one_rate(state, node, candidate, start)


@compiled_apart
def play_at_one_rate(state, node, candidate, start):
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
    joined = NONE  # started since the clock, by the mark at which they end
    late = NONE  # known to start later, beside the upcoming ones
    waiting, last_in_queue = nodes[node].first_waiting, NONE
    keep_named(state, node)
    if start < INF:
        hold_named(state, node, containers[candidate].function, 1)
        late = insert_joined(containers, late, candidate, start)
    else:
        last_in_queue = candidate
        if waiting == NONE:
            waiting = candidate
    raised = NONE
    later = tight = 0.0
    while True:
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
            drained += (begin - now) * share
            now = begin
            end = drained + containers[index].demand
            joined = insert_joined(containers, joined, index, end)
            parallelism += containers[index].parallelism
            used += containers[index].memory_alloc
            continue
        if mark == INF:
            restore_named(state, node)
            return now, raised, later, tight
        if joined_ends:
            index, joined = joined, containers[joined].next_joined
        else:
            index, draining = draining, containers[draining].next_in_order
        now = completion
        drained = mark
        parallelism -= containers[index].parallelism
        used -= containers[index].memory_alloc
        hold_named(state, node, containers[index].function, -1)
        raised, later, tight = note_end(state, index, now, candidate, raised, later, tight)
        while (
            waiting != NONE
            and used + containers[waiting].memory_alloc <= nodes[node].memory
            and short_of_named(state, node, containers[waiting].function, False) == NONE
        ):
            index = waiting
            hold_named(state, node, containers[index].function, 1)
            waiting = containers[index].next
            if waiting == NONE and index != last_in_queue:
                waiting = last_in_queue
            if containers[index].creation_time > now:
                late = insert_joined(containers, late, index, containers[index].creation_time)
                continue
            end = drained + containers[index].demand
            joined = insert_joined(containers, joined, index, end)
            parallelism += containers[index].parallelism
            used += containers[index].memory_alloc
