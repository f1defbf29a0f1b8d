"""A lower bound of J that no schedule of an episode can undercut: critical path, cheapest work."""

import numpy as np

from env.score.reward import Objective, cheapest_cost, cost_ratio
from env.sim.assembly.build import drawn_shares
from env.sim.state.block import State
from env.sim.state.records import HOUR, NOT_CALLED


def lower_bound(state: State, objective: Objective) -> float:
    """J of a schedule that is as fast and as cheap as either could be alone.

    Time: workflow w completes no sooner than max(a_w, a + c) + CP_w / s. No container starts before
    a server is up, so not before the first arrival a of the episode plus the shortest cold start c
    of the cluster. From then on the functions of a longest chain run one after another, none faster
    than on min(parallelism, cores of the largest node) free cores with all its memory; CP_w is that
    chain, with the work that is drawn, at the cluster's core speed, and s the fastest core of the
    cluster / that speed. Functions that were not called take no time; a slowdown still counts in
    the critical path of the worst case.

    Cost: rent is at least max(C, h). Containers run inside leases, and a leased server does at most
    cores * t of work in a time t, so all work costs C at the cheapest core-second or more. Leases
    come in whole steps, so even an episode of one moment pays the lowest price h of the fewest that
    can be leased. Where a server is free, it could do all the work.

    Where servers are always up, none starts cold; rent is that of one step of each that is there
    from the start whatever happens, or none.

    Of calls it knows what was drawn, so the episode has to be over.

    Carbon: 0. What is paid per use or for data between regions only adds to the cost.

    Transfers, contention and memory only add to both. Not covered are speeds that floor to 0 and
    are raised to 1 operation/s, which gives a node that much more than its capacity.
    """
    arrivals = state.arrivals["time"]
    critical_path = state.templates["critical_path"][state.arrivals["template"]]
    options, prices = state.options[0], state.servers["step_price"] * state.servers["least_steps"]
    cold = 0.0 if options["always_up"] else state.servers["cold_start_latency"].min()
    first_start = arrivals.min() + cold
    fastest = state.nodes["single_core_speed"].max() / state.cluster[0]["single_core_speed"]
    flow_times = np.maximum(first_start - arrivals, 0.0) + _called_paths(state) / fastest
    cheapest = cheapest_cost(state)
    rent = 0.0
    if options["always_up"]:
        there = (state.servers["absent"] == 0) & (len(state.server_plans) == 0)
        rent = float(prices[there].sum()) if options["charged"] else 0.0
    elif prices.min() > 0.0:
        paid = state.servers["hourly_rate"] * state.servers["lease_step"] / HOUR
        spot = (state.servers["step_price"] / paid).min()  # below 1 where some are cheaper
        spared = uncalled_work(state) * float(state.cluster[0]["core_second_price"])
        rent = max((cheapest - spared) * min(1.0, float(spot)), float(prices.min()))
    return float(
        objective.time_weight * (flow_times / critical_path).mean()
        + objective.completion_weight * flow_times.sum() / critical_path.sum()
        + cost_ratio(objective.cost_weight * rent, cheapest)
    )


def uncalled_work(state: State) -> float:
    """Core-seconds, at the cluster's core speed, of functions that were not called."""
    functions = state.functions
    operations = functions["computation"][functions["state"] == NOT_CALLED].sum()
    return float(operations / state.cluster[0]["single_core_speed"])


def _called_paths(state: State) -> np.ndarray:
    """(W,) seconds: the longest chain of every workflow, by its best times and what is drawn.

    Functions that were not called count as 0.
    """
    arrivals, kinds, functions = state.arrivals, state.template_functions, state.functions
    paths: np.ndarray = state.templates["critical_path"][arrivals["template"]] * drawn_shares(state)
    uncalled = functions["wf_id"][functions["state"] == NOT_CALLED]
    for row in np.flatnonzero(np.isin(arrivals["wf_id"], uncalled)):
        head = state.templates[arrivals["template"][row]]
        own = kinds[head["first_function"] :][: head["function_count"]]
        first = state.slot_of[arrivals["wf_id"][row]] * state.cluster[0]["functions_per_slot"]
        states = functions["state"][first : first + len(own)]
        ranks = np.where(states == NOT_CALLED, 0.0, own["best_time"])
        for fn_id in np.argsort(own["upward_rank"]):  # each after its successors
            edges = state.successors[own["first_successor"][fn_id] :]
            targets = edges["function"][: own["successor_count"][fn_id]]
            ranks[fn_id] += ranks[targets].max(initial=0.0)
        paths[row] = ranks.max()
    return paths
