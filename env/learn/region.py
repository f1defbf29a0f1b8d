"""The kind of decision `region`: where a function that has just been submitted is to run.

It is due where servers of several regions hold the function. Whoever places it afterwards has the
servers of the chosen region.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from env.base.errors import InputError
from env.base.jit import compiled, compiled_apart, places
from env.learn.observation import REGION_FEATURES, clip, log_of, log_seconds
from env.score.greedy_score import workflow_cost
from env.score.reward import cost_ratio
from env.sim.declared.aside import DecisionKind
from env.sim.declared.hardware import ClusterConfig
from env.sim.events.carbon import intensities
from env.sim.events.placing import transfer_between_regions
from env.sim.node.fit import need_of, short_of
from env.sim.state.block import State
from env.sim.state.records import IN_SERVICE, INF, JOULES_PER_KWH, NONE, SUBMITTED

FEATURES: Final = (
    *REGION_FEATURES,
    "core_price",  # cheapest price of a core-second / cheapest price here, 0 to 1
    "core_speed",  # of the fastest core / the cluster's
    "transfer",  # seconds to fetch the predecessors' data, log
    "egress",  # USD for that / mean cheapest cost of an arrived workflow, log
    "transfer_carbon",  # gCO2e of that / those of the function's work at the mean intensity, log
    "round_trip",  # s, from and to clients
    "free_cores",  # share of cores without a thread; negative with more threads
    "free_memory",  # share not given to containers; negative with a queue
    "leased_cores",  # share under a lease
    "home",  # 1: clients are here
    "workflow_here",  # share of the workflow's functions that are or were here
)
FEATURE: Final = places(FEATURES)


@compiled
def holder(state: State, function: int, region: int):
    """The first NUMA node in service of a region that holds a function which may run there."""
    memory = need_of(state, function)
    for node in range(len(state.nodes)):
        server = state.servers[state.nodes[node].server]
        there = server.region == region and server.condition == IN_SERVICE
        if there and short_of(state, node, function, memory, True) == NONE:
            return node
    return NONE


@compiled_apart
def due(state: State, after: int):
    """The first function just submitted that several regions hold, and for which none is chosen."""
    for index in range(after + 1, len(state.functions)):
        function, holding = state.functions[index], 0
        new = function.state == SUBMITTED and function.submission_time == state.cluster[0].time
        if new and function.region == NONE:
            for region in range(len(state.regions)):
                holding += holder(state, index, region) != NONE
            if holding > 1:
                return index
    return NONE


@compiled
def apply(state: State, function: int, region: int) -> None:
    """The function may run in this region alone."""
    state.functions[function].region = region


@compiled_apart
def fill(state: State, function: int, rows: np.ndarray, mask: np.ndarray) -> None:
    """The features of the regions that hold the function; those of the others stay 0."""
    home, cost = state.cluster[0].home, workflow_cost(state)
    declared = state.template_functions[state.functions[function].declared]
    core_seconds = declared.computation / state.cluster[0].single_core_speed
    for region in range(len(state.regions)):
        node, row = holder(state, function, region), rows[region]
        if node == NONE:
            continue
        mask[region] = 1.0
        mean, now, ahead = intensities(state, region)
        row[FEATURE.intensity], row[FEATURE.intensity_ahead] = now, ahead
        seconds, _, egress, grams = transfer_between_regions(state, function, node)
        own_grams = core_seconds * state.regions[region].core_watts / JOULES_PER_KWH * mean
        row[FEATURE.transfer] = log_seconds(seconds)
        row[FEATURE.egress] = log_of(cost_ratio(egress, cost))
        row[FEATURE.transfer_carbon] = log_of(cost_ratio(grams, own_grams))
        row[FEATURE.round_trip] = state.links[home * len(state.regions) + region].round_trip
        row[FEATURE.home] = region == home
        see_servers(state, region, row)
        see_workflow(state, function, region, row)
        clip(row)


@compiled
def see_servers(state: State, region: int, row: np.ndarray) -> None:
    """Price, speed and use of the servers of a region in service, of which there is one."""
    cluster, cores, memory, price, speed = state.cluster[0], 0, 0, INF, 0
    for index in range(len(state.nodes)):
        node, server = state.nodes[index], state.servers[state.nodes[index].server]
        if server.region == region and server.condition == IN_SERVICE:
            cores, memory = cores + node.cpu, memory + node.memory
            row[FEATURE.free_cores] += node.cpu - node.parallelism
            row[FEATURE.free_memory] += node.memory - node.allocated_memory - node.waiting_memory
            row[FEATURE.leased_cores] += node.cpu * (server.expiration_time > cluster.time)
            price, speed = min(price, node.core_second_price), max(speed, node.single_core_speed)
    row[FEATURE.free_cores] /= cores
    row[FEATURE.free_memory] /= memory
    row[FEATURE.leased_cores] /= cores
    row[FEATURE.core_price] = cluster.core_second_price / price if price > 0.0 else 1.0
    row[FEATURE.core_speed] = speed / cluster.single_core_speed


@compiled
def see_workflow(state: State, function: int, region: int, row: np.ndarray) -> None:
    """How much of the function's workflow is or was in a region."""
    first = function - state.functions[function].fn_id
    count = state.templates[state.workflows[state.functions[function].slot].template].function_count
    for other in range(first, first + count):
        node = state.functions[other].node
        if node != NONE and state.servers[state.nodes[node].server].region == region:
            row[FEATURE.workflow_here] += 1.0 / count


REGION: Final = DecisionKind("region", FEATURES, 1, due, fill, apply)


def region_of(cluster: ClusterConfig) -> DecisionKind:
    """The kind with a row for each region of a cluster.

    Raises:
        InputError: there is nothing to choose from.
    """
    if len(cluster.regions) < 2:
        raise InputError("agents.region: a cluster with at least 2 regions is needed")
    return replace(REGION, rows=len(cluster.regions))
