"""Which workflow of a tenant goes next, where the tenant splits its own currency among them.

Within the tenant whose turn it is, the workflow goes next whose next function would end first if it
ran at the speed of the workflow's tickets, counted from when that began to wait (virtual finish
times, as of weighted fair queueing). The next function of a workflow is the one with the highest
upward rank, for which most of it waits.

Every unfinished function holds an equal part of its workflow's tickets. Those that wait for others
cannot use theirs: they lend them to the functions that they wait for, or, without lending, these
tickets count for nobody.
"""

from env.base.jit import compiled, compiled_apart
from env.sim.state.block import State
from env.sim.state.containers import declared_left
from env.sim.state.records import INF, NONE, SUBMITTED


@compiled
def active_tickets(state: State, slot: int):
    """Tickets of a workflow that count for its functions in the queue."""
    workflow = state.workflows[slot]
    if state.options[0].lends == 1:
        return workflow.tickets
    unfinished = state.templates[workflow.template].function_count - workflow.ended
    return workflow.tickets * workflow.waiting / unfinished


@compiled
def finish_of(state: State, slot: int, function: int):
    """Virtual time at which a waiting function of a workflow would end."""
    seconds = declared_left(state.functions, function) / state.cluster[0].single_core_speed
    return state.workflows[slot].passed + seconds / active_tickets(state, slot)


@compiled
def charge_workflow(state: State, slot: int, function: int) -> None:
    """A function of a workflow leaves the queue: the work that it declares counts."""
    workflows = state.workflows
    state.tenants[workflows[slot].tenant].workflow_clock = workflows[slot].passed
    workflows[slot].passed = finish_of(state, slot, function)


@compiled_apart
def first_by_workflow(state: State, tenant: int):
    """The function of a tenant that goes next; some are waiting. Of equal ones who came first."""
    workflows, first, least, oldest = state.workflows, NONE, INF, NONE
    for slot in range(len(workflows)):
        if workflows[slot].waiting == 0 or workflows[slot].tenant != tenant:
            continue
        function = first_function(state, slot)
        finish, number = finish_of(state, slot, function), state.requests[function].wf_id
        if finish < least or (finish == least and number < oldest):
            first, least, oldest = function, finish, number
    return first


@compiled
def first_function(state: State, slot: int):
    """The waiting function of a workflow with the highest upward rank; of equal ones the first."""
    begin, first, highest = slot * state.cluster[0].functions_per_slot, NONE, -1.0
    template = state.workflows[slot].template
    for index in range(begin, begin + state.templates[template].function_count):
        if state.functions[index].state == SUBMITTED and state.requests[index].aside == 0:
            rank = state.template_functions[state.functions[index].declared].upward_rank
            if rank > highest:
                first, highest = index, rank
    return first


@compiled
def grant(state: State, tickets) -> None:
    """The workflow that has arrived gets so many tickets of its tenant's own currency."""
    state.workflows[state.queue[0].newcomer].tickets = tickets
    state.queue[0].newcomer = NONE
