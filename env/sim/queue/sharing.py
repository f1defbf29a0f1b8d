"""Tenants share the cluster by tickets: what these are worth, whose turn it is, who got how much.

A tenant competes while functions of it wait in the central queue. Tickets are worth what `Rights`
of env/tickets says, in floating point; mechanisms take them rounded to whole ones. A mechanism says
whose function goes next; the quantum it is charged counts until the function has left its
container, and then what that really used. Of a function that starts while no other tenant waits the
quantum stands: nobody contested what it used.

Whatever the order, the core-seconds that a tenant gets are held against those it is entitled to:
the work of each function that starts while several tenants wait belongs to all of these, by their
tickets. `fair_clock` sums up work / tickets, so that who starts or stops to wait takes one reading.
"""

import numpy as np

from env.base.jit import compiled, compiled_apart
from env.sim.state.block import State
from env.sim.state.queue_records import ALL, BASE, COMPETING, Charged
from env.sim.state.records import NONE
from env.tickets import drf, operations
from env.tickets.records import DRF, MOST_QUANTA, Shares, reset
from env.tickets.rights import MOST_TICKETS


@compiled
def shares_of(state: State):
    """The records of the mechanism."""
    return Shares(state.share_head, state.share_clients, state.share_nodes, state.share_pairs)


@compiled_apart
def reset_sharing(state: State) -> None:
    """Nobody waits, has got anything or is entitled to it; the mechanism begins anew."""
    queue, tenants, currencies = state.queue, state.tenants, state.currencies
    queue[0].turn = queue[0].newcomer = NONE
    queue[0].tenants_waiting = 0
    queue[0].fair_clock = 0.0
    for tenant in range(len(tenants)):
        tenants[tenant].waiting = 0
        tenants[tenant].row = NONE
        tenants[tenant].workflow_clock = tenants[tenant].tickets = 0.0
        tenants[tenant].clock = tenants[tenant].entitled = tenants[tenant].received = 0.0
    for currency in range(len(currencies)):
        currencies[currency].sums[COMPETING] = currencies[currency].rest = 0.0
        currencies[currency].holders = 0
    if state.options[0].shared == 1:
        shares = shares_of(state)
        reset(shares)
        shares.head[0].capacity[0] = state.cluster[0].cores
        memory = 0
        for node in range(len(state.nodes)):
            memory += state.nodes[node].memory
        shares.head[0].capacity[1] = memory


@compiled
def activate(state: State, currency: int, amount: float, sign: int) -> None:
    """Tickets of a currency begin to count (`sign` 1) or no longer do, and with it its backing.

    Each sum is kept with what rounding leaves out (Dekker's double-length sum): once 1e12 tickets
    have gone, what is left is what the others hold.
    """
    currencies = state.currencies
    while currency != NONE:
        before = currencies[currency].holders
        currencies[currency].holders += sign
        old, added = currencies[currency].sums[COMPETING], sign * amount
        total = old + added
        part = total - old
        rest = currencies[currency].rest + ((old - (total - part)) + (added - part))
        currencies[currency].sums[COMPETING] = total + rest
        currencies[currency].rest = rest - (currencies[currency].sums[COMPETING] - total)
        if currencies[currency].holders == 0:
            # Amounts of very unlike size leave a little even so.
            currencies[currency].sums[COMPETING] = currencies[currency].rest = 0.0
        elif before > 0:
            return
        amount = currencies[currency].amount
        currency = currencies[currency].currency


@compiled
def worth(state: State, tenant: int, who: int):
    """Tickets of the base that those of a tenant are worth among ALL, COMPETING or ON_THE_NODE."""
    value, currency = state.tenants[tenant].amount, state.tenants[tenant].currency
    while currency != BASE:
        value *= state.currencies[currency].amount / state.currencies[currency].sums[who]
        currency = state.currencies[currency].currency
    return value


@compiled
def right_of(state: State, tenant: int):
    """Share of all tickets that those of a tenant are worth if everybody competes."""
    return worth(state, tenant, ALL) / state.currencies[BASE].sums[ALL]


@compiled
def whole_tickets(state: State, tenant: int, who: int):
    """As `worth`, in whole tickets, at least 1; where rounding could show, of those who count."""
    value = worth(state, tenant, who)
    if state.options[0].rough == 1:
        scale = MOST_TICKETS / state.currencies[BASE].sums[who]
        value *= np.floor(scale) if scale >= 1.0 else scale
    return max(1, int(value + 0.5))


@compiled
def give_tickets(state: State, tenant: int, tickets) -> None:
    """A tenant has this many tickets from now on, 0 while it does not compete."""
    tenants, now = state.tenants, state.queue[0].fair_clock
    tenants[tenant].entitled += tenants[tenant].tickets * (now - tenants[tenant].clock)
    tenants[tenant].clock = now
    tenants[tenant].tickets = tickets


@compiled
def count_waiting(state: State, tenant: int, sign: int) -> None:
    """A function of a tenant has joined the queue (`sign` 1) or left it (-1).

    The tenant competes from its first one on, until the last one has left.
    """
    state.tenants[tenant].waiting += sign
    if state.tenants[tenant].waiting == max(0, sign):
        compete(state, tenant, sign)


@compiled_apart
def compete(state: State, tenant: int, sign: int) -> None:
    """A tenant begins to compete (`sign` 1) or stops to (-1)."""
    begins = sign == 1
    activate(state, state.tenants[tenant].currency, state.tenants[tenant].amount, sign)
    state.queue[0].tenants_waiting += sign
    give_tickets(state, tenant, worth(state, tenant, COMPETING) if begins else 0.0)
    if state.options[0].shared == 1:
        shares = shares_of(state)
        if begins:
            shares.head[0].clock = state.cluster[0].time
            operations.join(shares, tenant, whole_tickets(state, tenant, COMPETING), 1.0)
        else:
            operations.leave(shares, tenant)
    value_anew(state, tenant)


@compiled
def value_anew(state: State, changed) -> None:
    """Tickets of other tenants count for more or less, if the same ones back or scale them."""
    rough = state.options[0].rough == 1
    if state.tenants[changed].currency == BASE and not rough:
        return
    for tenant in range(len(state.tenants)):
        backed = state.tenants[tenant].currency != BASE
        if state.tenants[tenant].tickets > 0.0 and (backed or rough):
            tickets = worth(state, tenant, COMPETING)
            if tickets != state.tenants[tenant].tickets:
                give_tickets(state, tenant, tickets)
            if state.options[0].shared == 1:
                shares, whole = shares_of(state), whole_tickets(state, tenant, COMPETING)
                if whole != shares.clients[tenant].tickets:
                    operations.change(shares, tenant, whole)


@compiled_apart
def take_turn(state: State) -> None:
    """Says whose function goes next, where tenants take turns; somebody waits.

    The turn is kept until that function starts. By `drf`, which has to look at what is held now, it
    is looked up each time.
    """
    shares = shares_of(state)
    if shares.head[0].mechanism == DRF:
        state.queue[0].turn = shares.nodes[1].client
    elif state.queue[0].turn == NONE:
        shares.head[0].clock = state.cluster[0].time
        state.queue[0].turn = operations.allocate(shares)


@compiled_apart
def give_turn_back(state: State) -> None:
    """Ends the turn of a tenant, if it is some tenant's, that has no function that could go."""
    turn = state.queue[0].turn
    if state.options[0].shared == 0 or turn == NONE or state.tenants[turn].waiting > 0:
        return
    shares = shares_of(state)
    if shares.head[0].mechanism != DRF:
        operations.used(shares, turn, 0.0)
    state.queue[0].turn = NONE


@compiled
def count_start(state: State, tenant: int, seconds: float):
    """A function of a tenant leaves the queue, with so many core-seconds of work.

    Returns:
        whether several tenants compete: whether it counts.
    """
    contested = state.queue[0].tenants_waiting > 1
    if contested:
        state.queue[0].fair_clock += seconds / state.currencies[BASE].sums[COMPETING]
        state.tenants[tenant].received += seconds
    return contested


@compiled_apart
def note_start(state: State, tenant: int, function: int, node: int, memory: int) -> None:
    """A function of a tenant leaves the queue for a container with `memory` MB on a node."""
    work = state.functions[function].remaining_computation
    contested = count_start(state, tenant, work / state.nodes[node].single_core_speed)
    state.requests[function].contested = 1 if contested else 0
    if state.options[0].shared == 1:
        state.queue[0].turn = NONE
        shares = shares_of(state)
        if shares.head[0].mechanism == DRF:
            shares.head[0].clock = state.cluster[0].time
            want(shares, tenant, state.functions[function].parallelism, memory)
            drf.take(shares, tenant, 1.0)


@compiled
def want(shares: Shares, tenant: int, threads: int, memory: int) -> None:
    """What the task of a tenant holds that starts or ends."""
    shares.clients[tenant].demand[0] = threads
    shares.clients[tenant].demand[1] = memory


@compiled_apart
def note_use(state: State, tenant: int, index: int, core_seconds: float) -> None:
    """A container of a tenant ends that has done so many core-seconds of work."""
    shares = shares_of(state)
    shares.head[0].clock = state.cluster[0].time
    function, memory = state.containers[index].function, state.containers[index].memory_alloc
    if shares.head[0].mechanism == DRF:
        want(shares, tenant, state.containers[index].parallelism, memory)
        drf.hold(shares, tenant, -1.0)
        return
    held = memory * (state.cluster[0].time - state.requests[function].dispatch_time)
    resource, capacity = state.options[0].resource, shares.head[0].capacity
    amount = core_seconds
    if state.requests[function].contested == 0:
        amount = shares.head[0].quantum
    elif resource == Charged.mb_seconds:
        amount = held
    elif resource == Charged.dominant:
        amount = max(core_seconds / capacity[0], held / capacity[1])
    operations.used(shares, tenant, min(amount, MOST_QUANTA * shares.head[0].quantum))


@compiled
def settle_all(state: State) -> None:
    """Brings what every tenant is entitled to up to date."""
    for tenant in range(len(state.tenants)):
        give_tickets(state, tenant, state.tenants[tenant].tickets)


@compiled_apart
def share_error(state: State):
    """Mean over tenants of |core-seconds received - entitled| / all of them, so far; 0 at first."""
    settle_all(state)
    tenants, error, received = state.tenants, 0.0, 0.0
    for tenant in range(len(tenants)):
        error += abs(tenants[tenant].received - tenants[tenant].entitled)
        received += tenants[tenant].received
    return error / (len(tenants) * received) if received > 0.0 else 0.0


@compiled_apart
def jain_index(state: State):
    """(sum of x)^2 / (K * sum of x^2) of the K tenants entitled to anything so far; 1 at first.

    x is core-seconds received / entitled. Jain, Chiu and Hawe, "A quantitative measure of fairness"
    (DEC-TR-301, 1984): 1 where all are served alike, 1 / K where one gets everything.
    """
    settle_all(state)
    count, total, squares = 0, 0.0, 0.0
    for tenant in range(len(state.tenants)):
        if state.tenants[tenant].entitled > 0.0:
            served = state.tenants[tenant].received / state.tenants[tenant].entitled
            count += 1
            total += served
            squares += served * served
    return total * total / (count * squares) if squares > 0.0 else 1.0
