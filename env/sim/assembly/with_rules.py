"""Adds to the records what an episode's rules need: queue, images, warm containers, tickets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from env.sim.declared.aside import DecisionKind
from env.sim.declared.episode import Episode
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.ordering import SharedOrder, declared_functions
from env.sim.declared.rules import Rules
from env.sim.declared.server_changes import plans_of
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.state import change_records, queue_records, records
from env.sim.state.block import State
from env.sim.state.history import listening
from env.sim.state.records import INF, NONE

WARM = 1 << 14
"""Warm containers that there is room for at first, where there can be any number of runs."""
ANY_NUMBER = 1 << 62


def with_rules(
    state: State,
    templates: Sequence[WorkflowTemplate],
    episode: Episode,
    owners: Sequence[int] = (),
) -> State:
    """A state, not yet reset, whose world works by the rules of an episode.

    Args:
        state: with the hardware and the templates.
        templates: those of the state, in their order.
        episode: the specification.
        owners: (T,) tenant whose workflows those of each template are, where tenants take turns.
    """
    rules, images, funding = episode.rules, episode.images, episode.funding
    state = state.replaced(options=rules.options())
    rules.lease.write(state.servers, episode.cluster)
    state.options["meters"] |= queue_records.CARBON * episode.cluster.carbon_differs
    state.cluster["seed"] = episode.workload.turns_seed
    state.cluster["begin_time"] = episode.workload.begin_hour * records.HOUR
    state.cluster["aside"] = 1 if episode.changes else stops(episode.asked)
    state.servers["absent"][list(episode.absent)] = 1
    if rules.recovery is not None:
        state = state.replaced(
            server_plans=np.zeros(len(state.servers), change_records.SERVER_PLAN),
            recovery=rules.recovery.record(),
            retried=np.zeros(len(state.functions), change_records.RETRIED),
        )
        plan_changes(state, rules, episode.cluster)
    by_tickets = episode.cluster.cpu_share == "tickets"
    if funding is not None and (by_tickets or rules.order is not None):
        tenants, currencies = funding.records()
        on_node = np.zeros(len(tenants), queue_records.ON_NODE)
        state = state.replaced(tenants=tenants, currencies=currencies, on_node=on_node)
        state.options["rough"], state.options["cpu_by_tickets"] = funding.rough, by_tickets
    if images is None:
        return state.replaced(timers=room_for_timers(state, {}, len(episode.changes)))
    declared, nodes = len(state.template_functions), len(state.nodes)
    image_of, memory = images.of_all(templates), images.memory
    bins, remembered = rules.keep_alive.history
    trees = 2 << max(1, int(np.ceil(np.log2(declared))))
    waiting = np.zeros(declared, queue_records.WAITING)
    waiting["leaf"] = trees // 2 + np.arange(declared)
    shares: dict[str, np.ndarray] = {}
    if isinstance(rules.order, SharedOrder):
        counts = state.templates["function_count"]
        trees = _trees(state.tenants, waiting, np.repeat(owners, counts))
        shares = rules.order.sharing.shares(state, episode.workload.turns_seed)._asdict()
    arrays = {
        "waiting": waiting,
        "by_priority": np.zeros(trees, np.int64),
        "by_age": np.zeros(trees, np.int64),
        "requests": np.zeros(len(state.functions), queue_records.REQUEST),
        "images": np.zeros(len(memory), queue_records.IMAGE),
        "newest": np.broadcast_to(NONE, nodes * len(memory)),
        "idle": np.zeros(_warm(state, memory, rules), queue_records.IDLE),
        "histograms": np.zeros((len(memory), bins), np.int64),
        "idle_times": np.zeros((len(memory), remembered), np.float64),
        **{f"share_{name}": rows for name, rows in shares.items()},
    }
    timers = room_for_timers(state, arrays, len(episode.changes))
    state = state.replaced(**arrays, timers=timers)
    state.images["cold_start"] = images.cold_start
    state.images["memory"] = memory
    state.images["first_declared"] = NONE
    functions = declared_functions(state, templates, image_of, state.images, episode.cluster)
    state.waiting["image"] = image_of
    state.waiting["execution"] = functions.execution
    counts = state.templates["function_count"]
    state.waiting["alone"] = np.repeat(counts == 1, counts)
    if rules.order is not None:
        state.waiting["rank"] = rules.order.rank(functions)
    for index in reversed(range(declared)):
        image = image_of[index]
        state.waiting[index]["next_of_image"] = state.images[image]["first_declared"]
        state.images[image]["first_declared"] = index
    return state


def stops(asked: Sequence[DecisionKind]) -> int:
    """Where `play` stops for some kinds of decision: `aside` of CLUSTER."""
    return 2 - any(not kind.ticks for kind in asked) if asked else 0


def plan_changes(state: State, rules: Rules, cluster: ClusterConfig) -> None:
    """Writes the changes of servers that are planned, if there are some."""
    if rules.servers_change:
        plans, plan, absent = plans_of(rules.changes, rules.lease.spot, cluster)
        state.server_plans[:] = plans
        state.servers["absent"][absent] = 1
        state.use({}, plan=plan)


def _trees(tenants: np.ndarray, waiting: np.ndarray, tenant_of: np.ndarray) -> int:
    """Lays out a tournament for the functions of each tenant.

    Args:
        tenants: TENANT (K,), `tree` is filled in.
        waiting: WAITING (D,), `tree` and `leaf` are filled in.
        tenant_of: (D,) whose each is.

    Returns:
        the entries of all tournaments.
    """
    first = 0
    for tenant in range(len(tenants)):
        of_tenant = np.flatnonzero(tenant_of == tenant)
        leaves = 1 << max(1, int(np.ceil(np.log2(max(1, len(of_tenant))))))
        tenants["tree"][tenant] = waiting["tree"][of_tenant] = first
        waiting["leaf"][of_tenant] = leaves + np.arange(len(of_tenant))
        first += 2 * leaves
    return first


def _warm(state: State, memory: np.ndarray, rules: Rules) -> int:
    """Records of warm containers; `memory` is that of the images.

    As many as there can be where that is known, as compiled code that plays whole episodes cannot
    stop for more, and two that are unused at every event.
    """
    if not rules.keeps_warm:
        return 2
    runs = _most_runs(state, rules)
    # Each run leaves one, and of each image one can be started ahead.
    most = WARM if runs == ANY_NUMBER else runs + len(memory)
    if rules.order is not None and rules.placement != "asked":
        most = min(most, 1 + int((state.nodes["memory"] // memory[memory > 0].min()).sum()))
    return most + 2


def _most_runs(state: State, rules: Rules) -> int:
    """How many runs leave a container: any number in a trace, or if some run again or in slices."""
    again = rules.recovery is not None and rules.recovery.data_durability == "server"
    if len(state.arrivals) == 0 or again or rules.options()[0]["time_slice"] < INF:
        return ANY_NUMBER
    # A batch does not yet have what arrives, but room for all of it.
    runs = state.templates["function_count"][state.arrivals["template"]].sum()
    return max(int(runs), len(state.functions)) + 1


def room_for_timers(state: State, arrays: Mapping[str, np.ndarray], changes: int = 0) -> np.ndarray:
    """The timers of a state, with room for twice as many as can be up to date at once.

    Args:
        arrays: of the state, by name, those that it is to have in place of those it has.
        changes: of the cluster, that are to come.
    """
    owners = ("requests", "idle", "images", "servers")
    pending = state.timers["major"][: int(state.cluster[0]["timers_size"])] == records.CHANGE
    live = 4 + changes + int(pending.sum()) + 2 * len(state.servers) + len(state.retried)
    live += sum(len(arrays.get(name, getattr(state, name))) for name in owners)
    timers = np.zeros(2 * live, records.EVENT)
    timers[: len(state.timers)] = state.timers
    return timers


def with_more_warm(state: State) -> State:
    """The state in the midst of its episode, with room for twice as many warm containers."""
    idle = larger(state.idle, 2 * len(state.idle))
    state = state.replaced(idle=idle, timers=room_for_timers(state, {"idle": idle}))
    return listening(state) if state.cluster[0]["listens"] else state


def larger(array: np.ndarray, size: int) -> np.ndarray:
    """A copy with zeros behind it."""
    copy = np.zeros(size, array.dtype)
    copy[: len(array)] = array
    return copy
