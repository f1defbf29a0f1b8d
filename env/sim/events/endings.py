"""How containers end: completed, preempted or killed; and how servers go down and come back.

Servers change, and functions are skipped, between two calls of `play`, which then has to be called
again even if somebody was to decide: who is next, and where there is room, may have changed.
"""

from __future__ import annotations

from env.base.jit import compiled, compiled_apart
from env.sim.events.keep_by_carbon import weigh_keeping
from env.sim.events.lease import account_of, begin_lease, cut_lease, renew_lease_at, start
from env.sim.events.per_use import meter_run
from env.sim.events.recovery import (
    join_submitted,
    lose_data,
    note_start,
    offer_again,
    recover,
    run_again,
)
from env.sim.events.requests import end_run
from env.sim.events.submissions import count_placed, end_function
from env.sim.node.keep_alive import ECOLIFE, ends_last, release, remove_all_warm
from env.sim.node.projection import (
    node_on_container_completion,
    node_on_container_removal,
    stop_waiting,
)
from env.sim.node.warm import gone_cold
from env.sim.queue.sharing import note_use
from env.sim.state.block import State
from env.sim.state.containers import give_back_container
from env.sim.state.history import note_condition, note_end
from env.sim.state.records import (
    COMPLETED,
    DOWN,
    DRAINING,
    FINISHED,
    FOLLOW_UP,
    IN_SERVICE,
    INF,
    KILLED,
    NONE,
    PENDING,
    PREEMPTED,
    SKIPPED,
)
from env.sim.state.timers import set_timer


@compiled
def complete_next(state: State, node: int) -> None:
    """The container that ends first on a node, and its function, come to their end."""
    time, waiting = state.nodes[node].next_completion, state.nodes[node].waiting_count
    index = node_on_container_completion(state, node)
    # If nobody was admitted, all goes on as projected, and the lease covers that.
    if state.nodes[node].waiting_count < waiting:
        renew_lease_at(state, state.nodes[node].server, node, time)
    end_completed(state, index)


@compiled
def end_completed(state: State, index: int) -> None:
    """A container that has left its node has done its work: its function has finished."""
    count = state.log[0].completed_count
    state.completed[count].time = state.containers[index].completion_time
    state.completed[count].major = state.containers[index].wf_id
    state.completed[count].minor = state.containers[index].fn_id
    state.log[0].completed_count = count + 1
    leave_container(state, index, COMPLETED)


@compiled
def leave_container(state: State, index: int, outcome: int) -> None:
    """The one way out of a container, which has left its node.

    A function that is preempted waits again with the work it has left; one that is killed, with all
    of its work, or see `recover`.
    """
    containers, functions, cluster = state.containers, state.functions, state.cluster
    function = containers[index].function
    node, slot = functions[function].node, containers[index].slot
    left = containers[index].remaining_computation
    done = functions[function].remaining_computation - left
    tenant = state.workflows[slot].tenant
    server = state.nodes[node].server
    state.servers[server].container_count -= 1
    if state.servers[server].retires == 1 and state.servers[server].container_count == 0:
        number = state.servers[server].follow_up
        set_timer(state, cluster[0].time, FOLLOW_UP, server, number)
    account = account_of(state, server, tenant)
    seconds = done / state.nodes[node].single_core_speed
    if state.options[0].meters > 0:
        meter_run(state, index, server, account, seconds, outcome)
    else:
        state.ledger[account].energy += seconds * cluster[0].core_watts
    if len(state.recovery) > 0:
        note_start(state, function)
    if state.options[0].shared == 1:
        note_use(state, tenant, index, seconds)
    if len(state.images) > 0:
        leave_image(state, index, outcome)
    elif state.cluster[0].listens == 1:
        note_end(state, index, outcome)
    if outcome == COMPLETED:
        end_function(state, function, cluster[0].time, FINISHED)
    else:
        if outcome == PREEMPTED:
            functions[function].remaining_computation = max(1, left)
        else:
            functions[function].remaining_computation = functions[function].computation
            functions[function].attempt += 1
        if outcome == KILLED and len(state.recovery) > 0:
            recover(state, function, left)
        else:
            count_placed(state, function, -1)
            offer_again(state, function)
    give_back_container(state, index)
    join_submitted(state)
    if outcome == PREEMPTED and len(state.recovery) > 0 and state.recovery[0].data_lost == 1:
        run_again(state, slot)


@compiled_apart
def leave_image(state: State, index: int, outcome: int) -> None:
    """Notes the run, and releases the container: after a completion in `release_ended`."""
    queue, time = state.queue, state.cluster[0].time
    function, memory = state.containers[index].function, state.containers[index].memory_alloc
    node = state.functions[function].node
    image = state.waiting[state.functions[function].declared].image
    end_run(state, index, outcome)
    if outcome == COMPLETED:
        state.images[image].active -= 1
        ends_last(state, image, time)
        queue[0].ended_node = node
        queue[0].ended_image = image
        queue[0].ended_memory = memory
        queue[0].due = 1
    elif outcome == PREEMPTED:
        release(state, node, image, memory, time, False)
    else:
        gone_cold(state, image)


@compiled_apart
def release_ended(state: State) -> None:
    """Releases the container that completed last.

    Its successors may have asked for forecasts, that of its own image among them: they come first.
    """
    queue = state.queue
    node, image = queue[0].ended_node, queue[0].ended_image
    queue[0].ended_node = NONE
    unused = state.images[image].active == 0
    if state.options[0].keep_alive == ECOLIFE:
        weigh_keeping(state, node, image)
    release(state, node, image, queue[0].ended_memory, state.cluster[0].time, unused)


@compiled_apart
def preempt(state: State, index: int) -> None:
    """Takes a running container off its node; waiting ones may start, its function waits again."""
    take_off(state, index)
    leave_container(state, index, PREEMPTED)


@compiled_apart
def take_off(state: State, index: int) -> None:
    """A running container leaves its node now, before its projected end; waiting ones may start."""
    node, time = state.functions[state.containers[index].function].node, state.cluster[0].time
    node_on_container_removal(state, node, index, time)
    # Work is rounded to whole operations at every change, so an end may move by one of them.
    renew_lease_at(state, state.nodes[node].server, node, time)


@compiled
def set_condition(state: State, server: int, condition: int) -> None:
    """A server is in service, draining or down from now on."""
    before, time, recovery = state.servers[server].condition, state.cluster[0].time, state.recovery
    if len(recovery) > 0:  # adds up how long servers were out of service until now
        seconds = time - recovery[0].out_until
        recovery[0].out_time += seconds * state.cluster[0].out_of_service
        recovery[0].out_until = time
    state.servers[server].condition = condition
    state.servers[server].retires = 0
    state.servers[server].follow_up += 1
    change = (condition != IN_SERVICE) - (before != IN_SERVICE)
    state.cluster[0].out_of_service += change
    note_condition(state, server, condition)


@compiled_apart
def take_down(state: State, server: int) -> None:
    """A server goes down: its containers are killed, its warm ones go, its lease ends."""
    first, time = state.servers[server].first_node, state.cluster[0].time
    remove_all_warm(state, server)
    cut_lease(state, server, time)
    set_condition(state, server, DOWN)
    for node in range(first, first + state.servers[server].node_count):
        while state.nodes[node].first_waiting != NONE:
            index = state.nodes[node].first_waiting
            stop_waiting(state, node, index)
            state.nodes[node].parallelism -= state.containers[index].parallelism
            leave_container(state, index, KILLED)
        while state.nodes[node].first_running != NONE:
            index = state.nodes[node].first_running
            node_on_container_removal(state, node, index, time)
            leave_container(state, index, KILLED)
    if len(state.recovery) > 0 and state.recovery[0].data_lost == 1:
        lose_data(state, server)
    state.queue[0].due = state.options[0].queued


@compiled_apart
def retire(state: State, server: int, notice: float) -> None:
    """A server drains, and goes down once it is empty, or after `notice` seconds if not before.

    Where it drains already, the later notice counts.
    """
    drain(state, server)
    if state.servers[server].condition != DRAINING:
        return
    if state.servers[server].container_count == 0:
        take_down(state, server)
        return
    state.servers[server].retires = 1
    state.servers[server].follow_up += 1
    if notice < INF:
        due, number = state.cluster[0].time + notice, state.servers[server].follow_up
        set_timer(state, due, FOLLOW_UP, server, number)


@compiled_apart
def drain(state: State, server: int) -> None:
    """What runs or waits on a server goes on; nothing new comes to it, so nothing stays warm.

    One that is down stays so.
    """
    if state.servers[server].condition == IN_SERVICE:
        remove_all_warm(state, server)
        set_condition(state, server, DRAINING)
    state.queue[0].due = state.options[0].queued


@compiled_apart
def bring_back(state: State, server: int) -> None:
    """A server that was down or draining can be leased again, or is where all are always up."""
    set_condition(state, server, IN_SERVICE)
    time = state.cluster[0].time
    if state.options[0].always_up == 1 and state.servers[server].expiration_time <= time:
        begin_lease(state, server, time)
        start(state, server, time)
    join_submitted(state)
    state.queue[0].due = state.options[0].queued


@compiled_apart
def skip_function(state: State, function: int) -> bool:
    """A function that has not been submitted will not run; its successors do not wait for it.

    Args:
        state: of an episode.
        function: its index; its workflow has arrived.

    Returns:
        whether it could be skipped.
    """
    if state.functions[function].state != PENDING:
        return False
    end_function(state, function, state.cluster[0].time, SKIPPED)
    join_submitted(state)
    state.queue[0].due = state.options[0].queued
    return True
