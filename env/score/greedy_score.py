"""The greedy score: what placing the current function somewhere costs, in one number.

The placement rules `greedy_*` take the node with the smallest, and agents see it among the features
of every node. With it and the memory that functions require, episodes are played on to their ends
without Python, from any moment, in forks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from env.base.errors import InputError
from env.base.jit import compiled, places
from env.base.schema import Strict
from env.score.reward import Objective, arrived_objective, cost_ratio, potential
from env.sim.assembly.new_state import copy_into, reset
from env.sim.events.choosing import choose_first
from env.sim.events.engine import play
from env.sim.events.placing import place
from env.sim.events.submissions import forget_future
from env.sim.forecast.candidates import are_twins, forecast, update_finish_bounds
from env.sim.node.fit import suits
from env.sim.queue.workflow_tickets import grant
from env.sim.state.block import State
from env.sim.state.queue_records import NodeBy
from env.sim.state.records import CANDIDATE, CHOOSE, INF, NONE, PLACE, SHARE

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


def buffers_of(state: State) -> tuple[np.ndarray, np.ndarray]:
    """What compiled code writes to while it plays: CANDIDATE (N,), and greedy scores (N,)."""
    return np.zeros(len(state.nodes), CANDIDATE), np.zeros(len(state.nodes))


@compiled
def play_greedy(state: State, weights: np.ndarray, candidates: np.ndarray, scores: np.ndarray):
    """Plays events and greedy placements until nothing is left to be placed or to end.

    Args:
        state: at any moment, also one at which a decision is due; nobody listens to it any more.
        weights: as `greedy_scores` takes them.
        candidates, scores: see `buffers_of`.

    Returns:
        DONE, or a negative error code.
    """
    state.cluster[0].listens = 0
    kind = play(state)
    while kind == PLACE:
        update_finish_bounds(state)
        kind = place_greedily(state, weights, candidates, scores)
        if kind == 0:
            kind = play(state)
    return kind


@compiled
def place_greedily(state: State, weights: np.ndarray, candidates: np.ndarray, scores: np.ndarray):
    """Places the current function; bounds of finish times are up to date. As `place` returns."""
    memory_req = state.functions[state.cluster[0].deciding].memory_req
    forecast(state, memory_req, candidates)
    greedy_scores(state, candidates, weights, scores)
    return place(state, greedy_node(candidates, scores), memory_req)


@compiled
def trace_greedy(state: State, weights, candidates, scores, objective, cheapest, trace) -> None:
    """Plays an episode as `play_greedy` and notes how its potential rises.

    Where the order is `chosen` it chooses as `funcsched`, where tickets are asked for each workflow
    gets those that its workload says, and it leaves to the engine what the engine places.

    Args:
        state, weights, candidates, scores: as for `play_greedy`.
        objective: float64 (5,), weights of J.
        cheapest: USD, see `cheapest_cost`.
        trace: out, float64 (D, 2), time and potential whenever a function is to start or a workflow
            to get tickets, then at time inf J; D is above the number of functions. What starts
            again because it was killed is noted as far as there are not more rows than functions.
    """
    reset(state)
    state.cluster[0].aside = 0
    kind = play(state)
    row = most = 0
    for arrival in range(len(state.arrivals)):
        most += state.templates[state.arrivals[arrival].template].function_count
    while kind in (PLACE, CHOOSE, SHARE):
        starts = kind != CHOOSE
        if kind == CHOOSE:
            starts = choose_first(state) and state.options[0].placement != NodeBy.asked
        if starts:
            update_finish_bounds(state)
        if starts and row < most:
            trace[row, 0] = state.cluster[0].time
            trace[row, 1] = potential(state, objective, cheapest)
            row += 1
        if kind == PLACE:
            kind = place_greedily(state, weights, candidates, scores)
        else:
            if kind == SHARE:
                grant(state, state.workflows[state.queue[0].newcomer].tickets)
            kind = 0
        if kind == 0:
            kind = play(state)
    update_finish_bounds(state)
    trace[row:, 0] = INF
    trace[row:, 1] = potential(state, objective, cheapest)


class Forks:
    """Forks of an episode, which `play_greedy` plays to their ends.

    Args:
        state: at a decision; stays as it is.
        clairvoyant: whether later workflows arrive in the forks, and calls are drawn there as in
            the episode; otherwise every call that is not drawn yet is made.
        objective: what J is made of.

    Raises:
        InputError: containers stay warm or start cold, or functions wait centrally; playing: more
            workflows are active in a fork than the state has slots.
    """

    def __init__(self, state: State, clairvoyant: bool, objective: Objective) -> None:
        if len(state.images) > 0:
            raise InputError(
                "rollout: schedules are tried out only where functions are placed at once and "
                "containers neither stay warm nor start cold"
            )
        self._state, self._clairvoyant, self._objective = state, clairvoyant, objective
        self._fork, self._buffers = state.blank(), buffers_of(state)

    def of_nodes(self, memory_alloc: int, weights: ScoreWeights) -> np.ndarray:
        """(N,) J if the current function goes to each node with so many MB.

        It is inf where that does not fit, or where an equal node has been tried (`are_twins`).
        """
        state, by_objective = self._state, weights.by_objective(self._objective)
        outcomes = np.full(len(state.nodes), INF)
        unrented = NONE  # the last node tried whose server has never been rented
        for node, server in enumerate(state.servers[state.nodes["server"]]):
            if suits(state, node, memory_alloc) and not are_twins(state, node, unrented):
                unrented = node if server["expiration_time"] == -INF else unrented
                outcomes[node] = self._outcome(by_objective, node, memory_alloc)
        return outcomes

    def of_rules(self, rules: Sequence[ScoreWeights]) -> np.ndarray:
        """(R,) J by each rule, weights of `greedy_objective`."""
        return np.array([self._outcome(rule.by_objective(self._objective)) for rule in rules])

    def _outcome(self, weights: np.ndarray, *first: int) -> float:
        """J after the placement `first` (node, MB) if given."""
        fork = self._fork
        copy_into(fork, self._state)
        if not self._clairvoyant:
            forget_future(fork)
        kind = place(fork, *first) if first else 0
        if kind == 0:
            kind = play_greedy(fork, weights, *self._buffers)
        if kind < 0:
            raise InputError(
                f"more than {len(fork.workflows)} workflows are active in a rollout: "
                "give RawEnv more workflow_slots"
            )
        return float(arrived_objective(fork, self._objective.weights))
