"""What agents see: named, normalised, finite features of the simulator's state. Compiled.

Seconds, and ratios and counts without an upper bound, enter as log(1 + x), brought near 1 by a
scale; every value is within [-LIMIT, LIMIT]. The names are stored with a policy.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from env.base.jit import compiled, places
from env.score.greedy_score import greedy_scores, leased_cores, server_cores, workflow_cost
from env.score.reward import lease_value
from env.sim.events.carbon import intensities
from env.sim.forecast.candidates import forecast
from env.sim.queue.tracking import parallel_cores
from env.sim.state.block import State
from env.sim.state.records import HOUR, INF, NONE

LIMIT: Final = 10.0
# What logarithms are divided by: that of an hour in seconds, and of some numbers of things.
LOG_HOUR: Final = 8.0
LOG_20: Final = 3.0
LOG_50: Final = 4.0
LOG_150: Final = 5.0
# What small growths are multiplied by, so that their logarithms differ.
FINE: Final = 10.0
# Of expected use, in servers: more, or fewer, says no more about one server.
USE_LIMIT: Final = 2.0

CONTEXT_FEATURES: Final = (
    "best_time",  # seconds of the function at full speed, log
    "parallelism",  # / cores of the largest node
    "memory_req",  # / memory of the largest node
    "upward_rank",  # seconds, log
    "critical_path_left",  # upward rank / critical path of the workflow, 0 to 1
    "workflow_elapsed",  # seconds since its arrival / critical path, log
    "workflow_delay",  # (finish bound - arrival) / critical path, log (0 is the best)
    "slack",  # how much later it could be without moving the finish bound / critical path
    "queue_length",  # submitted functions, log
    "active_workflows",  # log
    "leased_cores",  # share of all cores under a lease
    "backlog",  # operations left in containers / capacity of all cores, seconds, log
    "work_share",  # the function's work / mean work of the workflows that have arrived
    "memory_ratio",  # the memory tier if it has been chosen, else 1
    "work_left",  # of the workflows that have arrived, not placed yet / all cores, seconds, log
    "arrival_gap",  # mean seconds between the arrivals so far, log
    "queue_threads",  # of submitted functions / all cores, log
    "queue_work",  # of submitted functions / all cores, seconds, log
    "parallel_cores",  # work of each workflow not placed / time it still takes / all cores, log
    "workflow_threads",  # queue_threads of the own workflow alone
    "workflow_cores",  # parallel_cores of the own workflow alone
)
CONTEXT: Final = places(CONTEXT_FEATURES)

TIER_FEATURES: Final = (
    "ratio",  # of the memory that the function needs
    "feasible_nodes",  # share of NUMA nodes that have it
)  # then NODE_FEATURES of the node with the smallest greedy score
TIER: Final = places(TIER_FEATURES)

TYPE_FEATURES: Final = (
    "nodes",  # number of NUMA nodes, log
    "leased_nodes",  # share under a lease
    "idle_nodes",  # share under a lease and empty
)  # then NODE_FEATURES of the type's node with the smallest greedy score
TYPE: Final = places(TYPE_FEATURES)

NODE_FEATURES: Final = (
    "cores",  # / cores of the largest node
    "memory",  # / memory of the largest node
    "core_price",  # cheapest price of a core-second / price here, 0 to 1
    "load",  # threads of its containers / cores
    "free_memory",  # share not given to its containers; negative with a queue
    "first_completion",  # seconds until, log
    "last_completion",  # seconds until, log
    "waiting",  # containers waiting for memory, log
    "lease_left",  # hours
    "cold",  # 1: a cold start would be due
    "transfer",  # seconds to fetch the predecessors' data, log
    "feasible",  # 1: it can be placed there
    "waits",  # 1: this function would wait for memory
    "arrival_use",  # core-hours that arrive in an hour, less cores of other leases / server's cores
    "known_use",  # the same of the work that has arrived and is not placed, as if done in an hour
    "parallel_use",  # the same of what is not placed, each workflow in the time it still takes
    "queue_use",  # the same of a core for each thread of the submitted functions
    "server_load",  # threads of the containers on its whole server / server's cores
    "finish_delay",  # forecast finish - best possible finish, seconds, log
    "finish_delay_relative",  # the same / critical path, log
    "delay_own",  # growth of the own workflow's slowdown, log
    "delay_others",  # growth of the other workflows' slowdowns, log
    "later_ends",  # log of 10 times the growth of its containers' ends / critical paths, summed
    "later_ends_tight",  # the same, each part times its share of (slack + part)
    "rent_increase",  # / mean cheapest cost of an arrived workflow, log
    "lease_left_after",  # hours
    "finish_delay_over_best",  # finish_delay_relative less that of the best node
    "delay_over_best",  # delay_own + delay_others less those of the best node
    "rent_over_best",  # rent_increase less that of the best node
    "score_over_best",  # greedy score less the smallest, log
    "best_score",  # 1: it has the smallest greedy score
)
REGION_FEATURES: Final = (
    "intensity",  # gCO2e per kWh now, PUE included / mean of all regions, as the next
    "intensity_ahead",  # the same, forecast of the mean of the coming hours
)  # behind NODE_FEATURES where grids differ by hour or region
NODE: Final = places(NODE_FEATURES + REGION_FEATURES)

CRITIC_FEATURES: Final = (
    "workflows",  # log of their number in the episode
    "workflows_to_come",  # share
    "work_to_come",  # share of all work
    "work",  # seconds of all work on all cores, log
    "next_arrival",  # seconds until, log
    "second_arrival",  # seconds until, log
    "next_work",  # work of the next workflow / all work
    "elapsed",  # seconds, log
    "paid",  # rent so far / all work at the cheapest price, log
    "slowdown",  # mean slowdown so far, as in the potential, log
    "reference_to_go",  # what J still grows by from now on under the reference
    "reference_lead",  # potential now - that of the reference at this time
    "reference",  # J of the reference; 1 where rewards count in it
    "lease_value",  # USD paid for lease time to come / all work at the cheapest price
)
CRITIC: Final = places(CRITIC_FEATURES)


@compiled
def log_of(ratio: float):
    """log(1 + ratio), in the single precision that features have: half the cost of double."""
    return np.log(np.float32(1.0 + ratio)) if ratio != 0.0 else np.float32(0.0)


@compiled
def log_seconds(seconds: float):
    """Seconds on a logarithmic scale, an hour near 1."""
    return log_of(max(0.0, seconds)) / LOG_HOUR


@compiled
def clip(features: np.ndarray) -> None:
    """Brings every one within the limits."""
    for index in range(len(features)):
        features[index] = min(LIMIT, max(-LIMIT, features[index]))


@compiled
def copy(source, target) -> None:
    """Copies numbers; numba's own assignment of arrays would allocate."""
    for index in range(len(source)):
        target[index] = source[index]


@compiled
def write_context(state: State, out: np.ndarray) -> None:
    """CONTEXT_FEATURES of the current function and the workload into `out`.

    Finish bounds have to be up to date (`update_finish_bounds`).
    """
    cluster = state.cluster[0]
    function = state.functions[cluster.deciding]
    declared, workflow = state.template_functions[function.declared], state.workflows[function.slot]
    critical_path = state.templates[workflow.template].critical_path
    backlog = 0
    for node in range(len(state.nodes)):
        if state.nodes[node].running_count > 0:
            backlog += state.nodes[node].backlog
    work = declared.computation / cluster.single_core_speed
    expected = (workflow.finish_bound - workflow.arrival_time) / critical_path
    slack = workflow.finish_bound - cluster.time - declared.upward_rank
    to_place = (cluster.arrived_work - cluster.placed_work) / cluster.cores
    out[CONTEXT.best_time] = log_seconds(declared.best_time)
    out[CONTEXT.parallelism] = declared.parallelism / cluster.largest_node_cpu
    out[CONTEXT.memory_req] = declared.memory_req / cluster.largest_node_memory
    out[CONTEXT.upward_rank] = log_seconds(declared.upward_rank)
    out[CONTEXT.critical_path_left] = declared.upward_rank / critical_path
    out[CONTEXT.workflow_elapsed] = log_of((cluster.time - workflow.arrival_time) / critical_path)
    out[CONTEXT.workflow_delay] = np.log(max(1.0, expected))
    out[CONTEXT.slack] = max(0.0, slack) / critical_path
    out[CONTEXT.queue_length] = log_of(cluster.queue_size - 1) / LOG_50
    out[CONTEXT.active_workflows] = log_of(cluster.arrived - cluster.finished_workflows) / LOG_50
    out[CONTEXT.leased_cores] = leased_cores(state) / cluster.cores
    out[CONTEXT.backlog] = log_seconds(backlog / cluster.computing_capacity)
    out[CONTEXT.work_share] = work / (cluster.arrived_work / cluster.arrived)
    out[CONTEXT.memory_ratio] = 1.0
    out[CONTEXT.work_left] = log_seconds(to_place)
    out[CONTEXT.arrival_gap] = log_seconds(cluster.time / cluster.arrived)
    out[CONTEXT.queue_threads] = log_of(cluster.queue_threads / cluster.cores)
    out[CONTEXT.queue_work] = log_seconds(cluster.queue_computation / cluster.computing_capacity)
    out[CONTEXT.parallel_cores] = log_of(cluster.parallel_cores / cluster.cores)
    out[CONTEXT.workflow_threads] = log_of(workflow.queue_threads / cluster.cores)
    out[CONTEXT.workflow_cores] = log_of(parallel_cores(state, function.slot) / cluster.cores)
    clip(out)


@compiled
def expected_use(asked: float, leased: int, cores: int):
    """Share of a server that is asked for beyond the cores of other leases, within limits."""
    return min(USE_LIMIT, max(-USE_LIMIT, (asked - leased) / cores))


@compiled
def server_threads(state: State, server: int):
    """Of all containers on its NUMA nodes, running and waiting."""
    threads = 0
    first = state.servers[server].first_node
    for node in range(first, first + state.servers[server].node_count):
        threads += state.nodes[node].parallelism
    return threads


@compiled
def write_nodes(state: State, candidates: np.ndarray, scores: np.ndarray, out: np.ndarray) -> None:
    """NODE_FEATURES of every candidate into `out` (N, I), and REGION_FEATURES if it has room."""
    cluster = state.cluster[0]
    function = state.functions[cluster.deciding]
    declared, workflow = state.template_functions[function.declared], state.workflows[function.slot]
    critical_path = state.templates[workflow.template].critical_path
    best_finish = cluster.time + declared.best_time
    unit = workflow_cost(state)
    leased = leased_cores(state)
    arriving = cluster.arrived_work / (cluster.time + HOUR)
    left = (cluster.arrived_work - cluster.placed_work) / HOUR
    least_finish = least_delay = least_rent = least_score = INF
    for node in range(len(candidates)):
        if candidates[node].feasible == 1:
            least_finish = min(least_finish, candidates[node].finish_time)
            delay = candidates[node].delay_own + candidates[node].delay_others
            least_delay = min(least_delay, delay)
            least_rent = min(least_rent, candidates[node].rent_increase)
            least_score = min(least_score, scores[node])
    for node in range(len(candidates)):
        hardware = state.nodes[node]
        candidate = candidates[node]
        row = out[node]
        if candidate.twin != NONE:
            copy(out[candidate.twin], row)
            continue
        price = hardware.core_second_price
        row[NODE.cores] = hardware.cpu / cluster.largest_node_cpu
        row[NODE.memory] = hardware.memory / cluster.largest_node_memory
        row[NODE.core_price] = cluster.core_second_price / price if price > 0.0 else 1.0
        row[NODE.load] = candidate.parallelism / hardware.cpu
        row[NODE.free_memory] = 1.0 - candidate.allocated_memory / hardware.memory
        row[NODE.first_completion] = log_seconds(candidate.first_completion)
        row[NODE.last_completion] = log_seconds(candidate.last_completion)
        row[NODE.waiting] = log_of(hardware.waiting_count)
        row[NODE.lease_left] = candidate.lease_left / HOUR
        row[NODE.cold] = candidate.cold_start_time > 0.0
        row[NODE.transfer] = log_seconds(candidate.data_transfer_time)
        row[NODE.feasible] = candidate.feasible
        row[NODE.waits] = candidate.waits
        cores = server_cores(state, hardware.server)
        others = leased - cores if candidate.lease_left > 0.0 else leased
        row[NODE.arrival_use] = expected_use(arriving, others, cores)
        row[NODE.known_use] = expected_use(left, others, cores)
        row[NODE.parallel_use] = expected_use(cluster.parallel_cores, others, cores)
        row[NODE.queue_use] = expected_use(cluster.queue_threads, others, cores)
        row[NODE.server_load] = server_threads(state, hardware.server) / cores
        if candidate.feasible == 0:
            row[NODE.finish_delay :] = 0.0
            clip(row)
            continue
        delay = candidate.delay_own + candidate.delay_others
        finish_delay = max(0.0, candidate.finish_time - best_finish)
        row[NODE.finish_delay] = log_seconds(finish_delay)
        row[NODE.finish_delay_relative] = log_of(finish_delay / critical_path)
        row[NODE.delay_own] = log_of(candidate.delay_own)
        row[NODE.delay_others] = log_of(candidate.delay_others)
        row[NODE.later_ends] = log_of(FINE * candidate.later_ends)
        row[NODE.later_ends_tight] = log_of(FINE * candidate.later_ends_tight)
        row[NODE.rent_increase] = log_of(candidate.rent_increase / unit)
        row[NODE.lease_left_after] = candidate.lease_left_after / HOUR
        over_best = (candidate.finish_time - least_finish) / critical_path
        row[NODE.finish_delay_over_best] = log_of(over_best)
        row[NODE.delay_over_best] = log_of(delay - least_delay)
        row[NODE.rent_over_best] = log_of((candidate.rent_increase - least_rent) / unit)
        row[NODE.score_over_best] = log_of(FINE * (scores[node] - least_score))
        row[NODE.best_score] = scores[node] == least_score
        if len(row) > NODE.intensity:
            region = state.servers[hardware.server].region
            _, row[NODE.intensity], row[NODE.intensity_ahead] = intensities(state, region)
        clip(row)


@compiled
def write_critic(state: State, cheapest, reached, reference_reached, reference, out) -> None:
    """CRITIC_FEATURES into `out`: the future of the episode, for the value function alone.

    Potentials are `reached` now, and at this time by the reference, which comes to J `reference`;
    `cheapest` USD are `cheapest_cost`.
    """
    cluster = state.cluster[0]
    count = len(state.arrivals)
    work = cluster.declared_work
    slowdown = cluster.finished_slowdown + cluster.active_slowdown + (count - cluster.arrived)
    out[CRITIC.workflows] = log_of(count)
    out[CRITIC.workflows_to_come] = (count - cluster.arrived) / count
    out[CRITIC.work_to_come] = (work - cluster.arrived_work) / work
    out[CRITIC.work] = log_seconds(work * cluster.single_core_speed / cluster.computing_capacity)
    out[CRITIC.next_arrival] = out[CRITIC.second_arrival] = out[CRITIC.next_work] = 0.0
    if cluster.arrived < count:
        following = state.arrivals[cluster.arrived]
        out[CRITIC.next_arrival] = log_seconds(following.time - cluster.time)
        out[CRITIC.next_work] = state.templates[following.template].work / work
    if cluster.arrived + 1 < count:
        following = state.arrivals[cluster.arrived + 1]
        out[CRITIC.second_arrival] = log_seconds(following.time - cluster.time)
    out[CRITIC.elapsed] = log_seconds(cluster.time)
    out[CRITIC.paid] = log_of(cluster.total_rent / cheapest)
    out[CRITIC.slowdown] = log_of(slowdown / count)
    out[CRITIC.reference_to_go] = reference - reference_reached
    out[CRITIC.reference_lead] = reached - reference_reached
    out[CRITIC.reference] = reference
    out[CRITIC.lease_value] = lease_value(state) / cheapest
    clip(out)


@compiled
def observe_nodes(state: State, memory_alloc, weights, candidates, scores, out) -> None:
    """Forecast, greedy scores and NODE_FEATURES of the current function with `memory_alloc` MB."""
    forecast(state, memory_alloc, candidates)
    greedy_scores(state, candidates, weights, scores)
    write_nodes(state, candidates, scores, out)
