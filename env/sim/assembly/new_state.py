"""Allocates, resets and copies a `State`: the arrays of one episode."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from env.base.jit import compiled, compiled_apart
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.resources import named_arrays, region_masks
from env.sim.declared.rules import DEFAULT_RULES
from env.sim.declared.workflow_template import WorkflowTemplate, upward_ranks
from env.sim.events.lease import begin_lease, reset_server
from env.sim.events.recovery import reset_recovery
from env.sim.events.server_changes import begin_changes
from env.sim.events.submissions import reset_workload
from env.sim.node.keep_alive import reset_keep_alive
from env.sim.node.projection import reset_node
from env.sim.queue.central_queue import reset_queue
from env.sim.state import change_records, records
from env.sim.state.block import CHANGING, TABLES, State
from env.sim.state.records import GB, HOUR, IN_SERVICE, INF, NONE, TICK
from env.sim.state.timers import reset_tree, set_timer


def copy_state(state: State) -> State:
    """An independent copy: what never changes is shared, unused records are not copied."""
    copy = state.blank()
    copy_into(copy, state)
    return copy


@compiled_apart
def copy_into(copy, state: State) -> None:
    """Makes `copy`, made by `state.blank()`, equal to it, but for records that are unused."""
    cluster = state.cluster
    copy_records(copy.whole, state.whole, len(state.whole))
    copy.cluster[0].listens = copy.cluster[0].entries = copy.cluster[0].aside = 0
    copy_records(copy.containers, state.containers, cluster[0].containers_used)
    taken = cluster[0].containers_used * len(state.named_kept)
    copy_records(copy.named_taken, state.named_taken, taken)
    copy_records(copy.submitted, state.submitted, cluster[0].queue_size)
    copy_records(copy.timers, state.timers, cluster[0].timers_size)
    copy_records(copy.tracked, state.tracked, cluster[0].tracked_count)
    copy_records(copy.completed, state.completed, state.log[0].completed_count)
    copy_records(copy.on_node, state.on_node, state.queue[0].on_node)
    copy_records(copy.idle, state.idle, state.queue[0].idle_used)


@compiled
def copy_records(copy, array, used) -> None:
    """Copies the first `used` records."""
    for index in range(used):
        copy[index] = array[index]


@compiled_apart
def reset(state: State) -> None:
    """Back to time 0: no leases, nothing running, nothing arrived. Who listens still does."""
    cluster = state.cluster
    listens, aside = cluster[0].listens, cluster[0].aside
    cluster[0] = cluster[1]
    cluster[0].listens, cluster[0].aside = listens, aside
    cluster[0].free_container = NONE
    state.log[0].completed_count = 0
    state.log[0].rent = 0.0
    for server in range(len(state.servers)):
        reset_server(state, server)
    for node in range(len(state.nodes)):
        reset_node(state, node)
    reset_tree(state)
    reset_workload(state)
    reset_queue(state)
    reset_keep_alive(state)
    reset_recovery(state)
    begin_changes(state)
    if state.options[0].always_up == 1:
        for server in range(len(state.servers)):
            if state.servers[server].condition == IN_SERVICE:
                begin_lease(state, server, 0.0)
    if state.options[0].tick > 0.0:
        set_timer(state, state.options[0].tick, TICK, 0, 0)


def allocate(
    config: ClusterConfig,
    slots: int,
    per_slot: int,
    workflow_count: int,
    templates: Sequence[WorkflowTemplate],
    tenants: int = 1,
) -> State:
    """Arrays of the sizes asked for, with the hardware and the templates in them; not yet reset."""
    cluster, servers, nodes = hardware(config)
    leaves = 1 << max(1, int(np.ceil(np.log2(len(nodes)))))
    count = slots * per_slot
    cluster["functions_per_slot"] = per_slot
    largest_cpu = int(cluster[0]["largest_node_cpu"])
    entries = [(template, largest_cpu) for template in templates]
    sizes = {"tree": 2 * leaves, "log": 1, "queue": 1}
    sizes |= {"ledger": len(servers) * tenants, "containers": count + 1, "slot_of": workflow_count}
    sizes |= dict.fromkeys(("workflows", "free_slots", "tracked"), slots)
    sizes |= dict.fromkeys(("functions", "submitted", "completed", "scratch"), count)
    arrays = {
        "cluster": cluster,
        "servers": servers,
        "nodes": nodes,
        "options": DEFAULT_RULES.options(),
        **catalogue(entries, config),
        "arrivals": np.zeros(workflow_count, records.ARRIVING),
        **named_arrays(templates, config, len(nodes), count + 1),
        "plan": np.zeros(0, change_records.PLANNED_CHANGE),
        **region_arrays(config),
    }
    for name in CHANGING.keys() - arrays.keys():
        shape = (0, 0) if name in TABLES else sizes.get(name, 0)
        arrays[name] = np.broadcast_to(np.zeros((), CHANGING[name]), shape)
    return State.of(arrays)


def hardware(config: ClusterConfig) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A cluster as records: (CLUSTER (2,), SERVER (S,), NUMA_NODE (N,))."""
    types, names = config.server_types, list(config.regions)
    servers, nodes = np.zeros(len(types), records.SERVER), np.zeros(len(types), records.NUMA_NODE)
    servers["type"], servers["lease_step"], servers["least_steps"] = range(len(types)), HOUR, 1
    for server, node, kind in zip(servers, nodes, types, strict=True):
        speed = config.speed_of(kind)
        server["hourly_rate"] = server["step_price"] = config.rate_of(kind)
        server["region"] = names.index(kind.region) if kind.region else 0
        server["watts"] = config.idle_watts(kind)
        server["cold_start_latency"] = kind.cold_start_latency
        server["node_count"] = kind.numa_nodes
        node["cpu"], node["memory"], node["single_core_speed"] = kind.cpu, kind.memory, speed
        node["computing_capacity"] = kind.cpu * speed
        node["core_second_price"] = config.core_second_price_of(kind)
    servers = np.repeat(servers, [kind.count for kind in types])
    nodes = np.repeat(nodes, [kind.count * kind.numa_nodes for kind in types])
    _, server_ids, nodes["node_id"] = zip(*config.places, strict=True)
    first = nodes["node_id"] == 0  # of its server
    nodes["server"] = np.cumsum(first) - 1
    servers["server_id"], servers["first_node"] = np.array(server_ids)[first], np.flatnonzero(first)
    cluster = np.zeros(2, records.CLUSTER)
    cluster["memory_bandwidth"] = config.memory_bandwidth
    cluster["numa_bandwidth"] = config.numa_bandwidth
    cluster["network_bandwidth"] = config.network_bandwidth
    cluster["single_core_speed"] = config.single_core_speed
    cluster["largest_node_cpu"] = nodes["cpu"].max()
    cluster["largest_node_memory"] = nodes["memory"].max()
    cluster["drawn_until"] = INF
    cluster["cores"] = nodes["cpu"].sum()
    cluster["computing_capacity"] = nodes["computing_capacity"].sum()
    cluster["core_watts"] = config.core_watts
    cluster["core_second_carbon"] = config.core_second_carbon
    cluster["home"] = names.index(config.start) if config.start else 0
    cluster["transfer_kwh"] = config.transfer_kwh_per_gb / GB
    cluster["forecast_error"] = config.forecast_error
    cluster["forecast_hours"] = config.forecast_hours
    cluster["core_second_price"] = config.core_second_price
    cluster["cheapest_server_cores"] = config.cheapest_server_cores
    return cluster, servers, nodes


def region_arrays(config: ClusterConfig) -> dict[str, np.ndarray]:
    """The arrays of a `State` about regions; where a cluster has none all servers are in one."""
    names = list(config.regions)
    powers = [config.power_in(name) for name in names] or [config.power]
    regions = np.zeros(len(powers), records.REGION)
    by_hour = [np.array(power.by_hour if power else (0.0,)) for power in powers]
    regions["core_watts"] = [power.core_watts if power else 0.0 for power in powers]
    regions["pue"] = [power.pue if power else 1.0 for power in powers]
    regions["hours"] = [len(hours) for hours in by_hour]
    regions["first_hour"] = np.cumsum(regions["hours"]) - regions["hours"]
    regions["cycle"] = [hours.sum() for hours in by_hour]
    intensity = np.zeros(regions["hours"].sum(), records.INTENSITY)
    intensity["grams"] = np.concatenate(by_hour)
    intensity["before"] = np.concatenate([np.cumsum(hours) - hours for hours in by_hour])
    links = [config.link(source, target) for source in names for target in names]
    rows = [(link.round_trip, link.bandwidth, link.egress / GB) for link in links]
    return {"regions": regions, "links": np.array(rows, records.LINK), "intensity": intensity}


def catalogue(
    entries: Sequence[tuple[WorkflowTemplate, int]], config: ClusterConfig
) -> dict[str, np.ndarray]:
    """Templates, their functions, and predecessor and successor edges: arrays of a `State`.

    Args:
        entries: templates, each with the cores of the largest NUMA node it may meet.
        config: the cluster, whose core speed and regions count.
    """
    single_core_speed = config.single_core_speed
    templates = [template for template, _ in entries]
    heads = np.zeros(len(templates), records.TEMPLATE)
    functions = np.zeros(sum(t.function_count for t in templates), records.TEMPLATE_FUNCTION)
    edge_count = sum(len(template.edges) for template in templates)
    predecessors = np.zeros(edge_count, records.EDGE)
    successors = np.zeros(edge_count, records.EDGE)
    probability = np.zeros(edge_count)
    first_function = first_edge = 0
    for index, (template, largest_cpu) in enumerate(entries):
        rows = functions[first_function : first_function + template.function_count]
        edges = slice(first_edge, first_edge + len(template.edges))
        rows["computation"] = template.computation
        rows["memory_req"] = template.memory_req
        rows["parallelism"] = template.parallelism
        sources, targets = template.edges[:, 0], template.edges[:, 1]
        by_target = np.lexsort((sources, targets))
        predecessors[edges]["function"] = sources[by_target]
        predecessors[edges]["data_bytes"] = template.data_bytes[by_target]
        probability[edges] = template.probability[by_target]
        rows["regions"] = region_masks(template, config)
        rows["conditional"] = (template.probability < 1).any()
        successors[edges]["function"] = targets
        successors[edges]["data_bytes"] = template.data_bytes
        ids = np.arange(template.function_count)
        rows["first_predecessor"] = first_edge + np.searchsorted(targets[by_target], ids)
        rows["predecessor_count"] = np.bincount(targets, minlength=len(ids))
        rows["first_successor"] = first_edge + np.searchsorted(sources, ids)
        rows["successor_count"] = np.bincount(sources, minlength=len(ids))
        rows["best_time"] = template.computation / (
            single_core_speed * np.minimum(template.parallelism, largest_cpu)
        )
        rows["upward_rank"] = upward_ranks(template, rows["best_time"])
        heads[index]["first_function"] = first_function
        heads[index]["function_count"] = template.function_count
        heads[index]["critical_path"] = rows["upward_rank"].max()
        heads[index]["work"] = template.computation.sum() / single_core_speed
        first_function += template.function_count
        first_edge += len(template.edges)
    return {
        "templates": heads,
        "template_functions": functions,
        "predecessors": predecessors,
        "probability": probability,
        "successors": successors,
    }
