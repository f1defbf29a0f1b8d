"""How fairly an episode was shared: what each tenant got, and what its tickets entitled it to.

The account is the engine's (env/sim/queue/sharing.py). It is kept again from what ran, so that it
can be read after every start.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from env.sim.assembly.new_state import copy_state
from env.sim.declared.ordering import SharedOrder
from env.sim.queue.sharing import count_start, count_waiting, jain_index, reset_sharing, right_of
from env.sim.state.block import State
from env.sim.state.records import COMPLETED
from env.sim.view.raw_env import RawEnv

MOST_POINTS = 300
"""Of a curve over time, about."""


@dataclass(frozen=True)
class Shares:
    """What K tenants got in an episode.

    The columns of `tenants` are:
        tickets: share of all tickets while everybody competes.
        received, entitled: core-seconds at the end.
        ratio: received / entitled; NaN of who was entitled to nothing.
        error: quanta, largest |received - entitled| at any time.
        pair_error: quanta, largest of its pairs at any time: |received by one - its part, by
            tickets, of what both received| since both began to compete.
        largest_lag: core-seconds, largest entitled - received at any time; 0 at first.
        last_lag: the same at the end.
        dominant: mean over time of the larger share of the cluster's cores and memory held; by
            threads, so above 1 where these share cores.
        response: seconds from submission to end of its functions, mean; NaN of none.
        response_deviation: their standard deviation.
    """

    times: np.ndarray  # (T,) seconds, from 0 to the last start that counts
    received: np.ndarray  # (T, K) core-seconds up to then
    entitled: np.ndarray  # (T, K) core-seconds up to then
    quantum: float  # core-seconds that errors are measured in
    jain: float  # Jain's index of received / entitled
    tenants: pd.DataFrame  # a row a tenant, by name in the order declared


def shares_of(env: RawEnv) -> Shares | None:
    """How a finished episode was shared; None without a central queue or tenants with tickets."""
    funding, order = env.episode.funding, env.rules.order
    if funding is None or order is None:
        return None
    runs, nodes = env.runs, env.state.nodes
    owner = np.array(env.episode.owners)[runs["wf_id"]]
    work = runs["computation"] / nodes["single_core_speed"][runs["node"]]
    options = env.state.options.copy()
    options["shared"] = 0  # nobody takes turns
    state = copy_state(env.state).replaced(options=options)
    reset_sharing(state)
    tenants, count = state.tenants, len(state.tenants)
    error, pair_error, largest_lag = np.zeros((3, count))
    # Received per ticket by one tenant less that by another, since both compete.
    apart = np.zeros((count, count))
    points = [_point(state, 0.0)]
    every = max(1, len(runs) // MOST_POINTS)
    contested, time = 0, 0.0
    # Of one count, the smaller number came first.
    for event in np.argsort(np.concatenate([runs["joined"], runs["dispatched"]])).tolist():
        run = event % len(runs)
        tenant = int(owner[run])
        if event < len(runs):  # it joins the queue
            count_waiting(state, tenant, 1)
            if tenants["waiting"][tenant] == 1:
                apart[tenant, :] = apart[:, tenant] = 0.0
            continue
        if count_start(state, tenant, float(work[run])):
            lag = _entitled(state) - tenants["received"]
            np.maximum(error, np.abs(lag), out=error)
            np.maximum(largest_lag, lag, out=largest_lag)
            tickets, own = tenants["tickets"], tenants["tickets"][tenant]
            apart[tenant, :] += work[run] / own
            apart[:, tenant] -= work[run] / own
            apart[tenant, tenant] = 0.0
            pairs = np.abs(apart[tenant]) * own * tickets / (own + tickets)
            np.maximum(pair_error, pairs, out=pair_error)
            pair_error[tenant] = max(pair_error[tenant], pairs.max())
            contested += 1
            time = float(runs["dispatch_time"][run])
            if contested % every == 0:
                points.append(_point(state, time))
        count_waiting(state, tenant, -1)
    if contested % every:
        points.append(_point(state, time))
    times, received, entitled = map(np.array, zip(*points, strict=True))
    quantum = 1.0
    if isinstance(order, SharedOrder) and order.sharing.resource == "core_seconds":
        quantum = float(env.state.share_head["quantum"][0])
    completed = np.flatnonzero(runs["outcome"] == COMPLETED)
    seconds = pd.Series((runs["end_time"] - runs["submission_time"])[completed])
    response = seconds.groupby(owner[completed])
    table = pd.DataFrame(
        {
            "tickets": [right_of(env.state, each) for each in range(count)],
            "received": received[-1],
            "entitled": entitled[-1],
            "ratio": received[-1] / np.where(entitled[-1] > 0, entitled[-1], np.nan),
            "error": error / quantum,
            "pair_error": pair_error / quantum,
            "largest_lag": largest_lag,
            "last_lag": entitled[-1] - received[-1],
            "dominant": _dominant(env, runs, owner),
            "response": response.mean(),
            "response_deviation": response.std(ddof=0),
        },
        index=range(count),
    ).set_axis(list(funding.tenants))
    return Shares(times, received, entitled, quantum, float(jain_index(env.state)), table)


def _entitled(state: State) -> np.ndarray:
    """(K,) core-seconds up to now; the engine adds them up when tickets change."""
    tenants = state.tenants
    since = state.queue[0]["fair_clock"] - tenants["clock"]
    return np.asarray(tenants["entitled"] + tenants["tickets"] * since)


def _point(state: State, time: float) -> tuple[float, np.ndarray, np.ndarray]:
    """Time, received and entitled."""
    return time, state.tenants["received"].copy(), _entitled(state)


def _dominant(env: RawEnv, runs: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """(K,) see `Shares`; a container holds cores and memory from its dispatch to its end."""
    dominant, nodes = np.zeros(len(env.state.tenants)), env.state.nodes
    threads = env.state.template_functions["parallelism"][runs["declared"]]
    held = np.column_stack(
        [threads / nodes["cpu"].sum(), runs["memory_alloc"] / nodes["memory"].sum()]
    )
    for tenant in np.unique(owner):
        own = owner == tenant
        times = np.concatenate([runs["dispatch_time"][own], runs["end_time"][own]])
        changes = np.concatenate([held[own], -held[own]])
        order = np.argsort(times, kind="stable")
        larger = np.cumsum(changes[order], axis=0).max(axis=1)
        dominant[tenant] = (larger[:-1] * np.diff(times[order])).sum() / env.time
    return dominant
