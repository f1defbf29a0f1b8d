"""The forecast of a node on which tenants share cores by tickets: threads drain at unlike rates.

As `play_at_one_rate` in forecast_node.py, but without its marks, for which all have to drain at one
rate: each event looks at everybody who runs.
"""

from env.base.jit import compiled, compiled_apart
from env.sim.forecast.ends import insert_joined, note_end
from env.sim.node.cpu_by_tickets import (
    add_threads,
    begin_sharing,
    divide_cores,
    tenant_of,
    thread_speed,
)
from env.sim.node.fit import hold_named, keep_named, restore_named, short_of_named
from env.sim.state.records import INF, NONE


@compiled
def begin_draining(containers, head, index):
    """Adds a container to those that run; returns the new head of their list."""
    containers[index].left = containers[index].demand
    containers[index].next_draining = head
    return index


@compiled
def stop_draining(containers, head, index):
    """Takes a container off the list of those that run; returns its head."""
    if head == index:
        return containers[index].next_draining
    previous = head
    while containers[previous].next_draining != index:
        previous = containers[previous].next_draining
    containers[previous].next_draining = containers[index].next_draining
    return head


@compiled
def next_end(state, head, cpu, core_speed):
    """(the container of a list that ends first, seconds until then), at the speeds of now."""
    containers = state.containers
    begin_sharing(state)
    index = head
    while index != NONE:
        add_threads(state, tenant_of(state, index), containers[index].parallelism)
        index = containers[index].next_draining
    divide_cores(state, cpu, core_speed)
    first, seconds, index = NONE, INF, head
    while index != NONE:
        own = containers[index].left / max(1, thread_speed(state, tenant_of(state, index)))
        if own < seconds:
            first, seconds = index, own
        index = containers[index].next_draining
    return first, seconds


@compiled
def drain(state, head, seconds):
    """All that run do so for some seconds, at the speeds that `next_end` has found."""
    containers, index = state.containers, head
    while index != NONE:
        done = seconds * max(1, thread_speed(state, tenant_of(state, index)))
        containers[index].left = max(0.0, containers[index].left - done)
        index = containers[index].next_draining


@compiled_apart
def play_by_tickets(state, node, candidate, start):
    """Arguments and results as of `play_at_one_rate`."""
    nodes, containers = state.nodes, state.containers
    now, used = nodes[node].clock, nodes[node].draining_memory
    cpu, core_speed = nodes[node].cpu, nodes[node].single_core_speed
    draining, index = NONE, nodes[node].first_draining
    while index != NONE:
        draining = begin_draining(containers, draining, index)
        index = containers[index].next_in_order
    coming, index = NONE, nodes[node].first_upcoming
    while index != NONE:
        coming = insert_joined(containers, coming, index, containers[index].order_key)
        index = containers[index].next_in_order
    waiting, last_in_queue = nodes[node].first_waiting, NONE
    keep_named(state, node)
    if start < INF:
        hold_named(state, node, containers[candidate].function, 1)
        coming = insert_joined(containers, coming, candidate, start)
    else:
        last_in_queue = candidate
        if waiting == NONE:
            waiting = candidate
    raised = NONE
    later = tight = 0.0
    while draining != NONE or coming != NONE:
        index, seconds = next_end(state, draining, cpu, core_speed)
        begin = containers[coming].joined_key if coming != NONE else INF
        if begin <= now + seconds:
            drain(state, draining, max(0.0, begin - now))
            now = max(now, begin)
            index, coming = coming, containers[coming].next_joined
            draining = begin_draining(containers, draining, index)
            used += containers[index].memory_alloc
            continue
        drain(state, draining, seconds)
        now += seconds
        draining = stop_draining(containers, draining, index)
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
                coming = insert_joined(containers, coming, index, containers[index].creation_time)
                continue
            draining = begin_draining(containers, draining, index)
            used += containers[index].memory_alloc
    restore_named(state, node)
    return now, raised, later, tight
