"""The one event loop: `play` runs events until somebody has to decide, `place` carries it out."""

from __future__ import annotations

from env.base.jit import compiled, compiled_apart
from env.sim.events.dispatch import dispatch, end_slice
from env.sim.events.endings import complete_next, release_ended
from env.sim.events.lease import extend_lease
from env.sim.events.placing import place
from env.sim.events.recovery import fail_all_waiting, holds_any_waiting, join_submitted, retry
from env.sim.events.server_changes import change_as_planned, comes_back, follow_up
from env.sim.events.submissions import any_to_place, arrive_next
from env.sim.node.keep_alive import prewarm, remove_all_warm, remove_warm
from env.sim.node.node_status import last_completion, status_at
from env.sim.state import records
from env.sim.state.block import State
from env.sim.state.history import most_entries
from env.sim.state.records import INF, NONE
from env.sim.state.timers import drop_timer, earliest_node, set_timer, up_to_date


@compiled_apart
def play(state: State):
    """Plays events until the caller is needed: completions first, then timers, then decisions.

    A function that no server in service holds waits for one, and nobody waits behind it.

    Returns:
        PLACE (of the function `deciding`), DONE, CHOOSE, SHARE, MORE_ARRIVALS, TAKE_HISTORY,
        FORECAST, MORE_WARM, ASIDE, or a negative error code.
    """
    cluster, queue = state.cluster, state.queue
    while True:
        if len(state.images) > 0 or cluster[0].listens + cluster[0].aside > 0:
            kind = between_events(state)
            if kind != 0:
                return kind
        completion = state.nodes[earliest_node(state)].next_completion
        waits = cluster[0].queue_size > 0 or queue[0].waiting > 0
        waits = waits or cluster[0].backing_off > 0
        if completion == INF and not waits and cluster[0].arrivals_left == 0:
            return records.DONE
        timer = state.timers[0].time if cluster[0].timers_size > 0 else INF
        places = cluster[0].queue_size > 0 and state.options[0].queued == 0 and any_to_place(state)
        decides = places or queue[0].due == 1 or (completion == INF and is_stuck(state))
        decision = cluster[0].time if decides else INF
        if completion < INF and completion <= timer and completion <= decision:
            cluster[0].time = completion
            complete_next(state, earliest_node(state))
            note_event(state)
        elif cluster[0].timers_size > 0 and timer <= decision:
            error = fire(state)
            if error < 0:
                return error
        elif places:
            return records.PLACE
        else:
            queue[0].due = 0
            kind = dispatch(state)
            if kind == 0 and is_stuck(state):
                kind = records.NO_SERVER
            if kind == records.NO_SERVER and len(state.recovery) > 0:
                fail_all_waiting(state)
            elif kind != 0:
                return kind


@compiled
def note_event(state: State) -> None:
    """Counts an event and has `play` stop after it, where others want to know of it."""
    if state.cluster[0].aside + state.cluster[0].listens > 0:
        state.cluster[0].events += 1
        if state.cluster[0].aside == 1:
            state.cluster[0].happened = 1


@compiled
def stands_still(state: State) -> bool:
    """Whether nothing runs, and nothing is to arrive."""
    if state.cluster[0].arrivals_left > 0:
        return False
    return state.nodes[earliest_node(state)].next_completion == INF


@compiled
def is_stuck(state: State) -> bool:
    """Whether all stands still and nothing is to come, but for the leases of servers always up.

    A server that comes back counts if it holds something that waits; a tick, where a server is out
    of service, as whoever scales can bring it.
    """
    if not stands_still(state):
        return False
    for position in range(state.cluster[0].timers_size):
        kind = state.timers[position].major
        renewal = state.options[0].always_up == 1 and kind == records.LEASE_END
        idle = kind == records.TICK and state.cluster[0].out_of_service == 0
        if renewal or idle or not up_to_date(state, position):
            continue
        if kind != records.PLANNED and kind != records.FOLLOW_UP:
            return False
        if comes_back(state, position) and holds_any_waiting(state, state.timers[position].minor):
            return False
    return True


@compiled_apart
def between_events(state: State):
    """What has to be done or asked for before the next event; returns 0 or what `play` does."""
    queue, cluster = state.queue, state.cluster
    if queue[0].forecasts_due == 1:
        return records.FORECAST
    if queue[0].newcomer != NONE:
        return records.SHARE
    if queue[0].ended_node != NONE:
        release_ended(state)
    # The next event may leave a container, and the function that it ends another.
    if len(state.images) > 0 and queue[0].idle_used + 2 > len(state.idle):
        return records.MORE_WARM
    if cluster[0].listens == 1 and cluster[0].entries + most_entries(state) > len(state.history):
        return records.TAKE_HISTORY
    if cluster[0].happened == 1:
        cluster[0].happened = 0
        return records.ASIDE
    cluster[0].ticked = 0
    if cluster[0].arrivals_left == 0 and queue[0].more_arrivals == 1:
        return records.MORE_ARRIVALS
    return 0


@compiled
def fire(state: State):
    """Fires the next timer; returns 0 or a negative error code."""
    if state.timers[0].major != records.ARRIVAL:
        fire_other(state)
        return 0
    if state.cluster[0].arrivals_left == 0:
        drop_timer(state)  # forgotten
        return 0
    position = state.timers[0].index
    state.cluster[0].time = state.timers[0].time
    if state.queue[0].first_number != NONE:
        # The ids of an endless trace would outgrow `slot_of`: the workflow is called by its slot.
        slot = state.free_slots[state.cluster[0].first_free_slot]
        state.arrivals[position].wf_id = slot
        state.requests[slot].wf_id = state.queue[0].first_number + position
    note_event(state)
    error = arrive_next(state)
    if error == 0:
        join_submitted(state)
    return error


@compiled_apart
def fire_other(state: State) -> None:
    """Fires the next timer, which is no arrival; nothing happens if it is out of date."""
    queue = state.queue
    time, kind = state.timers[0].time, state.timers[0].major
    number, index = state.timers[0].minor, state.timers[0].index
    valid = up_to_date(state, 0)
    drop_timer(state)
    if not valid:
        return
    state.cluster[0].time = time
    # Changes are no events, and a replay of choices looks again at other moments.
    if kind <= records.RETRY and kind != records.PATIENCE:
        note_event(state)
    if kind == records.CHANGE:
        state.cluster[0].changes += 1
        state.cluster[0].happened = 1
    elif kind == records.TICK and state.cluster[0].aside > 0:
        # Whoever scales decides, now and next time.
        state.cluster[0].happened = state.cluster[0].ticked = 1
        state.cluster[0].again = 0
        set_timer(state, time + state.options[0].tick, records.TICK, 0, 0)
    elif kind == records.PLANNED:
        change_as_planned(state, number)
    elif kind == records.FOLLOW_UP:
        follow_up(state, number)
    elif kind == records.RETRY:
        retry(state, number)
    elif kind == records.SLICE_END:
        end_slice(state, index)
    elif kind == records.EXPIRY:
        remove_warm(state, index)
    elif kind == records.PREWARMING:
        prewarm(state, index, time)
    elif kind == records.STARVATION:
        queue[0].starvation_timer = INF
        queue[0].due = 1
    elif kind == records.PATIENCE:
        queue[0].patience_timer = INF
        queue[0].due = 1
    elif kind == records.LEASE_END:
        end_lease(state, number)


@compiled
def end_lease(state: State, server: int) -> None:
    """A lease is over: the next begins where servers are always up, else the server goes off.

    One that drains is up until it is empty.
    """
    stays = state.servers[server].condition == records.IN_SERVICE
    stays = stays or state.servers[server].container_count > 0
    if state.options[0].always_up == 1 and stays:
        extend_lease(state, server, NONE, state.cluster[0].time, 1)
    else:
        remove_all_warm(state, server)
        state.queue[0].due = state.options[0].queued


@compiled
def step(state: State, node: int, memory_alloc: int):
    """Status of the chosen node, then `place`, then `play`.

    Returns:
        (what `play` returns, status of the node before, times to its first and last completion).
    """
    time = state.cluster[0].time
    status = status_at(state, node, time)
    first = last = 0.0
    if state.nodes[node].running_count > 0:
        first = state.nodes[node].next_completion - time
        last = last_completion(state, node) - time
    kind = place(state, node, memory_alloc)
    if kind == 0:
        kind = play(state)
    return kind, status, first, last
