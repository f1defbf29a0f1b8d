"""The greedy score: what placing the current function somewhere costs, in one number.

The placement rules `greedy_*` take the node with the smallest, and agents see it among the features
of every node.
"""

from __future__ import annotations

from typing import Annotated, Final

import numpy as np
from pydantic import Field

from env.base.jit import compiled, places
from env.base.schema import Strict
from env.score.reward import Objective, cost_ratio
from env.sim.state.block import State
from env.sim.state.records import INF, NONE

MOST_WEIGHT = 1e6
# Servers differ in size by at most 1e9 (1,000 nodes of 1e6 cores); its power stays below 1e180.
MOST_ECONOMY = 20.0
Weight = Annotated[float, Field(ge=0, le=MOST_WEIGHT)]
Economy = Annotated[float, Field(ge=0, le=MOST_ECONOMY)]


class ScoreWeights(Strict):
    """Weights of the greedy score that two node features are made of.

    score = finish * finish_delay / critical path + delay * time_weight * (delay_own + delay_others)
    + cost_weight * (rent * smallness ** economy * charged + rent_per_core / cores) * rent_increase
    / mean cheapest cost of an arrived workflow, no rent being no cost even where that is 0

    The function that has a server rented seldom uses all of it. `rent` charges it the whole lease,
    so that large servers seem dear although their cores may be cheap; `rent_per_core` what the
    lease costs for each core of the server, so that small servers seem dear whatever else there is
    to rent; and `economy` makes servers dear that are smaller than the one that is worth filling:

    smallness = max(1, cores worth filling / cores)
    cores worth filling = cores of the server whose cores are the cheapest (of several the largest),
    but no more than demand * core-seconds arrived / seconds so far - cores of other servers under a
    lease

    `charged` is 1, the whole lease, but where others are expected to use the server too:

    charged = 1 - used + used * own_use * the function's core-seconds / (cores * the
    smallest step of a lease), at most as many as the server has in it
    used = (expected load - cores of other servers under a lease) / cores, from 0 to 1
    expected load = arrival_use * core-seconds arrived / (seconds so far + arrival_horizon)
    + known_use * core-seconds arrived and not placed / the smallest step of a lease
    """

    finish: Weight
    delay: Weight
    rent: Weight
    rent_per_core: Weight = 0.0
    economy: Economy = 0.0  # 0: the size of a server does not matter
    # Factor on the cores that would be busy if what arrives came evenly; None: any server is worth
    # filling.
    demand: Annotated[float, Field(gt=0, le=MOST_WEIGHT)] | None = None
    own_use: Weight = 0.0  # how dear the part of a lease is that the function uses itself
    arrival_use: Weight = 0.0  # where this and `known_use` are 0 nobody else is expected
    arrival_horizon: Weight = 0.0  # s, for which nothing is thought to have arrived before 0
    known_use: Weight = 0.0

    def by_objective(self, objective: Objective) -> np.ndarray:
        """float64 (10,): the fields as `WEIGHT` has them, times time_weight or cost_weight."""
        # A delay counts alike in slowdown and completion, but for how long workflows are.
        time = objective.time_weight + objective.completion_weight
        cost = objective.cost_weight
        counted = {"delay": time, "rent": cost, "rent_per_core": cost}
        # Without `demand` any server is worth filling.
        values = {name: INF if value is None else value for name, value in self}
        return np.array([value * counted.get(name, 1.0) for name, value in values.items()])


WEIGHT: Final = places(tuple(ScoreWeights.model_fields))


@compiled
def workflow_cost(state: State):
    """USD: mean cheapest cost of a workflow that has arrived."""
    cluster = state.cluster[0]
    return cluster.arrived_work / cluster.arrived * cluster.core_second_price


@compiled
def leased_cores(state: State):
    """Cores of the servers under a lease."""
    cores = 0
    for node in range(len(state.nodes)):
        if state.servers[state.nodes[node].server].expiration_time > state.cluster[0].time:
            cores += state.nodes[node].cpu
    return cores


@compiled
def server_cores(state: State, server: int):
    """Of all its NUMA nodes."""
    return state.nodes[state.servers[server].first_node].cpu * state.servers[server].node_count


@compiled
def unmet_load(state: State, weights: np.ndarray):
    """Cores that will be used beyond those under a lease; see `ScoreWeights`."""
    cluster = state.cluster[0]
    elapsed = cluster.time + weights[WEIGHT.arrival_horizon]
    load = weights[WEIGHT.known_use] * (cluster.arrived_work - cluster.placed_work)
    load /= state.servers[0].lease_step
    arrival_use = weights[WEIGHT.arrival_use]
    if arrival_use > 0.0:
        load += arrival_use * cluster.arrived_work / elapsed if elapsed > 0.0 else INF
    return load - leased_cores(state)


@compiled
def greedy_scores(state: State, candidates: np.ndarray, weights: np.ndarray, scores: np.ndarray):
    """Fills `scores` (N,) of the current function's candidates; inf where it is not feasible.

    `weights` are those of `ScoreWeights.by_objective`, float64 (10,).
    """
    cluster = state.cluster[0]
    function = state.functions[cluster.deciding]
    declared = state.template_functions[function.declared]
    critical_path = state.templates[state.workflows[function.slot].template].critical_path
    best_finish = cluster.time + declared.best_time
    unit = workflow_cost(state)
    unmet = INF  # cores that what arrives will need beyond those under a lease
    if weights[WEIGHT.demand] != INF and cluster.time != 0.0:
        unmet = weights[WEIGHT.demand] * cluster.arrived_work / cluster.time - leased_cores(state)
    others_come = weights[WEIGHT.arrival_use] > 0.0 or weights[WEIGHT.known_use] > 0.0
    if others_come:
        load = unmet_load(state, weights)
        work = declared.computation / cluster.single_core_speed
    for node in range(len(candidates)):
        if candidates[node].feasible == 0:
            scores[node] = INF
            continue
        if candidates[node].twin != NONE:
            scores[node] = scores[candidates[node].twin]
            continue
        finish_delay = (candidates[node].finish_time - best_finish) / critical_path
        delay = candidates[node].delay_own + candidates[node].delay_others
        server = state.servers[state.nodes[node].server]
        cores = server_cores(state, state.nodes[node].server)
        leased = cores if server.expiration_time > cluster.time else 0
        share = weights[WEIGHT.rent]
        if weights[WEIGHT.economy] > 0.0:
            smallness = min(cluster.cheapest_server_cores, unmet + leased) / cores
            if smallness > 1.0:  # powers of 1 are most of them, and dear
                share *= smallness ** weights[WEIGHT.economy]
        if others_come:
            used = min(1.0, max(0.0, (load + leased) / cores))
            own_part = min(1.0, work / (cores * server.lease_step))
            share *= 1.0 - used + used * weights[WEIGHT.own_use] * own_part
        if weights[WEIGHT.rent_per_core] > 0.0:
            share += weights[WEIGHT.rent_per_core] / cores
        scores[node] = (
            weights[WEIGHT.finish] * finish_delay
            + weights[WEIGHT.delay] * delay
            + cost_ratio(share * candidates[node].rent_increase, unit)
        )


@compiled
def greedy_node(candidates: np.ndarray, scores: np.ndarray):
    """The node with the smallest greedy score; ties by finish time, then by index."""
    best = 0
    for node in range(1, len(candidates)):
        if scores[node] < scores[best] or (
            scores[node] == scores[best]
            and candidates[node].finish_time < candidates[best].finish_time
        ):
            best = node
    return best
