"""Servers change by themselves: by a plan, such as a spot trace, or as they fail at random.

What a server draws does not depend on what else happens, so it fails at the same moments whoever
decides.
"""

from __future__ import annotations

from env.base.jit import compiled, compiled_apart
from env.sim.events.endings import bring_back, retire, set_condition, take_down
from env.sim.state.block import State
from env.sim.state.change_records import DRAIN, JOIN
from env.sim.state.draws import OFFSET, uniform, weibull
from env.sim.state.records import DOWN, FOLLOW_UP, IN_SERVICE, INF, NONE, PLANNED
from env.sim.state.timers import set_timer


@compiled_apart
def begin_changes(state: State) -> None:
    """Which servers are there at time 0; the first change of each is on the timers."""
    events = state.cluster[0].events
    state.cluster[0].events = NONE
    for server in range(len(state.servers)):
        absent = state.servers[server].absent == 1
        if len(state.server_plans) > 0 and begin_plan(state, server) == JOIN:
            absent = True
        if absent:
            set_condition(state, server, DOWN)
    state.cluster[0].events = events


@compiled
def begin_plan(state: State, server: int):
    """The plan of a server at time 0: at its beginning, or where its group is in the period.

    Returns:
        the first action of the plan, NONE if there is none.
    """
    plans = state.server_plans
    plans[server].next = plans[server].draws = 0
    plans[server].begin = 0.0
    if plans[server].failure_shape > 0.0:
        set_timer(state, time_to_failure(state, server), PLANNED, server, 0)
    if plans[server].count == 0:
        return NONE
    if plans[server].period < INF:
        seed, first = state.cluster[0].seed, plans[server].first
        offset = uniform(seed, OFFSET + plans[server].group, 0) * plans[server].period
        plans[server].begin = -offset
        count = plans[server].count
        while plans[server].next < count and state.plan[first + plans[server].next].time < offset:
            plans[server].next += 1
    plan_next(state, server)
    return state.plan[plans[server].first + plans[server].next].action


@compiled
def plan_next(state: State, server: int) -> None:
    """Puts the next change of a plan on the timers, if there is one."""
    plans = state.server_plans
    if plans[server].next == plans[server].count and plans[server].period < INF:
        plans[server].next = 0
        plans[server].begin += plans[server].period
    if plans[server].next < plans[server].count:
        time = plans[server].begin + state.plan[plans[server].first + plans[server].next].time
        set_timer(state, max(state.cluster[0].time, time), PLANNED, server, 0)


@compiled
def draw_of(state: State, server: int):
    """The next number that is drawn for a server, between 0 and 1."""
    number = state.server_plans[server].draws
    state.server_plans[server].draws = number + 1
    return uniform(state.cluster[0].seed, server, number)


@compiled
def time_to_failure(state: State, server: int):
    """Seconds until a server fails, drawn anew."""
    plan = state.server_plans[server]
    return weibull(draw_of(state, server), plan.failure_shape, plan.failure_scale)


@compiled_apart
def change_as_planned(state: State, server: int) -> None:
    """The change of a server that is due takes place; the next one is on the timers."""
    plans, time = state.server_plans, state.cluster[0].time
    if plans[server].failure_shape > 0.0:
        if state.servers[server].condition == DOWN:
            bring_back(state, server)
            seconds = time_to_failure(state, server)
        else:
            take_down(state, server)
            shape, scale = plans[server].repair_shape, plans[server].repair_scale
            seconds = weibull(draw_of(state, server), shape, scale)
        set_timer(state, time + seconds, PLANNED, server, 0)
        return
    change = plans[server].first + plans[server].next
    action, seconds = state.plan[change].action, state.plan[change].seconds
    plans[server].next += 1
    plan_next(state, server)
    if action == JOIN:
        bring_back(state, server)
    elif action == DRAIN:
        retire(state, server, seconds)
    else:
        take_down(state, server)
        if seconds < INF:
            number = state.servers[server].follow_up
            set_timer(state, time + seconds, FOLLOW_UP, server, number)


@compiled
def follow_up(state: State, server: int) -> None:
    """The notice of a server ends, or it is empty, or it is repaired."""
    if state.servers[server].condition == DOWN:
        bring_back(state, server)
    else:
        take_down(state, server)


@compiled
def comes_back(state: State, position: int) -> bool:
    """Whether a timer brings a server back, then or later; it is PLANNED or a FOLLOW_UP."""
    server = state.timers[position].minor
    condition = state.servers[server].condition
    if condition == IN_SERVICE or state.timers[position].major == FOLLOW_UP:
        return condition == DOWN
    plan = state.server_plans[server]
    if plan.failure_shape > 0.0:
        return True
    first = 0 if plan.period < INF else plan.next
    for change in range(plan.first + first, plan.first + plan.count):
        if state.plan[change].action == JOIN:
            return True
    return False
