"""A NUMA node with more threads than cores, where tenants share these by their tickets.

Each tenant has a part of the cores by what its tickets are worth among those that run there, and
its threads share that part alike: who starts more of them takes from its own. Whoever has fewer
threads than its part has cores leaves the rest to the others. With one tenant this is the rule of
`speed_share` in projection.py.
"""

from env.base.jit import compiled, compiled_apart
from env.sim.queue.sharing import whole_tickets
from env.sim.state.queue_records import ON_THE_NODE
from env.sim.state.records import NONE
from env.tickets.cpu_share import cpu_share


@compiled
def begin_sharing(state):
    """Nobody runs on the node that is looked at."""
    for row in range(state.queue[0].on_node):
        state.tenants[state.on_node[row].tenant].row = NONE
    state.queue[0].on_node = 0


@compiled
def add_threads(state, tenant, threads):
    """Threads of a tenant run there."""
    row = state.tenants[tenant].row
    if row == NONE:
        row = state.queue[0].on_node
        state.queue[0].on_node = row + 1
        state.tenants[tenant].row = row
        state.on_node[row].tenant = tenant
        state.on_node[row].threads = 0
    state.on_node[row].threads += threads


@compiled_apart
def divide_cores(state, cpu, core_speed):
    """Says what each of those that were added gets of the node."""
    rows, count = state.on_node, state.queue[0].on_node
    tenants, currencies = state.tenants, state.currencies
    for currency in range(len(currencies)):
        currencies[currency].sums[ON_THE_NODE] = 0.0
    for row in range(count):
        amount, currency = tenants[rows[row].tenant].amount, tenants[rows[row].tenant].currency
        while currency != NONE:
            counted = currencies[currency].sums[ON_THE_NODE] > 0.0
            currencies[currency].sums[ON_THE_NODE] += amount
            if counted:
                break
            amount, currency = currencies[currency].amount, currencies[currency].currency
    for row in range(count):
        rows[row].weight = whole_tickets(state, rows[row].tenant, ON_THE_NODE)
    cpu_share(rows, count, cpu, core_speed)


@compiled
def thread_speed(state, tenant):
    """Operations per second of each thread of a tenant, after `divide_cores`."""
    row = state.on_node[state.tenants[tenant].row]
    return row.speed // row.threads


@compiled
def tenant_of(state, container):
    """Whose a container is."""
    return state.workflows[state.containers[container].slot].tenant


@compiled_apart
def share_out(state, active, cpu, core_speed):
    """Fills in `share` of the `active` running entries of the scratch (projection.py)."""
    scratch = state.scratch
    begin_sharing(state)
    for j in range(active):
        i = scratch[j].active
        add_threads(state, tenant_of(state, scratch[i].container), scratch[i].parallelism)
    divide_cores(state, cpu, core_speed)
    for j in range(active):
        i = scratch[j].active
        scratch[i].share = thread_speed(state, tenant_of(state, scratch[i].container))
