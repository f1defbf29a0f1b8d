"""The agents `tenant_<name>`: each splits the currency of a tenant among the tenant's workflows.

An agent is asked when a workflow of its tenant arrives: how many tickets of the tenant's own
currency the workflow gets. Whose turn it is follows from the tickets of the tenants, so that no
agent takes anything from another one's tenant (env/sim/queue/workflow_tickets.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

import numpy as np
from pydantic import AfterValidator, Field

from env.base.jit import compiled, places
from env.base.schema import ASCENDING, distinct
from env.learn.kind import Agent, Environments, Kind, Turn
from env.learn.observation import LOG_20, LOG_150, clip, log_of, log_seconds
from env.sim.declared.ordering import ByWorkflow, Sharing
from env.sim.declared.rules import Fit
from env.sim.node.fit import available_memory
from env.sim.queue.sharing import right_of
from env.sim.queue.workflow_tickets import grant
from env.sim.state.block import State
from env.sim.state.queue_records import BASE, COMPETING
from env.sim.state.records import NONE, SHARE
from env.tickets.rights import Tickets

TENANT_CONTEXT: Final = (
    "right",  # its share of the tickets if all tenants compete
    "share",  # of the tickets of those that compete now, 0 while it does not
    "competing",  # other tenants that do, log
    "lead",  # core-seconds received - entitled to / all cores, seconds, log of either sign
    "workflows",  # of it that have not ended, besides the one that has arrived, log
    "workflows_waiting",  # those of them with functions in the queue, log
    "functions_waiting",  # of it in the queue, log
    "others_functions_waiting",  # of other tenants, log
    "work_left",  # of its other workflows, not placed yet / all cores, seconds, log
    "others_work_left",  # the same of other tenants
    "available_memory",  # of all nodes, free or reclaimable, share
    "load",  # threads of all containers / all cores, log
    "arrival_gap",  # mean seconds between the arrivals so far, log
    "critical_path",  # of the workflow that has arrived: seconds at full speed, log
    "work",  # of it / all cores, seconds, log
    "functions",  # of it, log
    "cores",  # that it can use: work / critical path / all cores, log
)
CONTEXT: Final = places(TENANT_CONTEXT)
LEVEL_FEATURES: Final = (
    "tickets",  # over the most that can be given
    "position",  # of the level, 0 to 1
    "share_of_own",  # of the tickets of all its workflows that have not ended
    "share_of_waiting",  # of those with functions in the queue
    "over_mean",  # tickets over the mean of its other workflows, log; 0 without any
    "slowdown",  # if it had that share of the tenant's right to all cores, log
)
ITEM: Final = places(LEVEL_FEATURES)


class TenantAgents(Sharing, ByWorkflow):
    """Key `tenants` of the config group `agents`; an order of the central queue."""

    # Tickets of its tenant's own currency that a workflow can get, ascending.
    levels: Annotated[
        tuple[Tickets, ...],
        Field(min_length=2, max_length=1000),
        ASCENDING,
        AfterValidator(distinct),
    ]
    placement: Fit  # which of several equally suited nodes a function goes to

    @property
    def sharing(self) -> Sharing:
        """How tenants take turns."""
        return Sharing(**{name: getattr(self, name) for name in Sharing.model_fields})

    def write(self, options: np.void) -> None:
        """Fills in the options of the engine."""
        super().write(options)
        options["asks_tickets"] = 1

    def kind(self, tenants: Sequence[str]) -> Kind:
        """Row r is level r; the agent of the tenant whose workflow has arrived chooses."""
        one = Agent("", "tenant", LEVEL_FEATURES, len(self.levels), context_features=TENANT_CONTEXT)
        turn = Turn(one.of_each(tenants), see_newcomer, tenant_of_newcomer)
        return Kind(SHARE, (turn,), apply)


@compiled
def apply(state: State, envs: Environments, env: int):
    """The workflow that has arrived gets its tickets; returns 0."""
    grant(state, envs.levels[envs.choices[env].row])
    return 0


@compiled
def tenant_of_newcomer(agent: int, envs: Environments, env: int):
    """Whose workflow has arrived."""
    state = envs.states[env : env + 1]
    return state.workflows[state.queue[0].newcomer].tenant


@compiled
def lead_of(state: State, tenant: int):
    """Core-seconds that a tenant has received beyond those it is entitled to."""
    record = state.tenants[tenant]
    elapsed = state.queue[0].fair_clock - record.clock
    return record.received - record.entitled - record.tickets * elapsed


@compiled
def see_newcomer(agent, state: State, envs, env, context, items, mask) -> None:
    """Writes what the agent of a tenant sees: context (C,), items (L, I), mask (L,)."""
    levels = envs.levels
    workflows, cluster, queue = state.workflows, state.cluster[0], state.queue[0]
    newcomer = queue.newcomer
    tenant, template = workflows[newcomer].tenant, state.templates[workflows[newcomer].template]
    count = waiting = 0
    tickets = tickets_waiting = left = others_left = 0.0
    for slot in range(len(workflows)):
        workflow = workflows[slot]
        active = workflow.wf_id != NONE and np.isnan(workflow.completion_time)
        if not active or slot == newcomer:
            continue
        work_left = state.templates[workflow.template].work - workflow.placed_work
        if workflow.tenant != tenant:
            others_left += work_left
            continue
        count += 1
        left += work_left
        tickets += workflow.tickets
        if workflow.waiting > 0:
            waiting += 1
            tickets_waiting += workflow.tickets
    memory = available = threads = 0.0
    for node in range(len(state.nodes)):
        memory += state.nodes[node].memory
        available += available_memory(state, node)
        threads += state.nodes[node].parallelism
    cores = cluster.computing_capacity / cluster.single_core_speed
    right, lead = right_of(state, tenant), lead_of(state, tenant) / cores
    record, together = state.tenants[tenant], state.currencies[BASE].sums[COMPETING]
    context[CONTEXT.right] = right
    context[CONTEXT.share] = record.tickets / together if together > 0.0 else 0.0
    competing = queue.tenants_waiting - (1 if record.tickets > 0 else 0)
    context[CONTEXT.competing] = log_of(competing) / LOG_20
    context[CONTEXT.lead] = log_seconds(abs(lead)) * (1.0 if lead > 0.0 else -1.0)
    context[CONTEXT.workflows] = log_of(count) / LOG_20
    context[CONTEXT.workflows_waiting] = log_of(waiting) / LOG_20
    context[CONTEXT.functions_waiting] = log_of(record.waiting) / LOG_150
    context[CONTEXT.others_functions_waiting] = log_of(queue.waiting - record.waiting) / LOG_150
    context[CONTEXT.work_left] = log_seconds(left / cores)
    context[CONTEXT.others_work_left] = log_seconds(others_left / cores)
    context[CONTEXT.available_memory] = available / memory
    context[CONTEXT.load] = log_of(threads / cores)
    context[CONTEXT.arrival_gap] = log_seconds(cluster.time / cluster.arrived)
    path = template.critical_path
    context[CONTEXT.critical_path] = log_seconds(path)
    context[CONTEXT.work] = log_seconds(template.work / cores)
    context[CONTEXT.functions] = log_of(template.function_count) / LOG_20
    context[CONTEXT.cores] = log_of(template.work / path / cores)
    clip(context)
    mask[:] = 1.0
    for row in range(len(levels)):
        level, item = levels[row], items[row]
        share = level / (level + tickets)
        item[ITEM.tickets] = level / levels[len(levels) - 1]
        item[ITEM.position] = row / (len(levels) - 1)
        item[ITEM.share_of_own] = share
        item[ITEM.share_of_waiting] = level / (level + tickets_waiting)
        item[ITEM.over_mean] = np.log(level * count / tickets) / LOG_20 if count > 0 else 0.0
        seconds = max(path, template.work / (cores * right * share))
        item[ITEM.slowdown] = log_of(seconds / path) / LOG_20
        clip(item)
