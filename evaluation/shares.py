"""How fairly an episode was shared: what each tenant got, and what its tickets entitled it to.

The account is the engine's (env/sim/queue/sharing.py): it is kept anew from what ran, to be looked
at after every start.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from env.base.errors import InputError
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

    Attributes:
        tenants: names, in the order declared.
        tickets: (K,) share of all tickets while everybody competes.
        quantum: core-seconds that errors are measured in.
        times: (T,) seconds, from 0 to the last start that counts.
        received: (T, K) core-seconds up to then.
        entitled: (T, K) core-seconds up to then.
        error: (K,) quanta, largest |received - entitled| at any time.
        pair_error: (K,) quanta, largest of its pairs at any time: |received by one - its part, by
            tickets, of what both received| since both began to compete.
        largest_lag: (K,) core-seconds, largest entitled - received at any time; 0 at first.
        jain: Jain's index of received / entitled.
        dominant: (K,) mean over time of the larger share of the cluster's cores and memory held; by
            threads, so above 1 where these share cores.
        response: (K,) seconds from submission to end of its functions, mean; NaN of none.
        response_deviation: (K,) their standard deviation.
    """

    tenants: tuple[str, ...]
    tickets: np.ndarray
    quantum: float
    times: np.ndarray
    received: np.ndarray
    entitled: np.ndarray
    error: np.ndarray
    pair_error: np.ndarray
    largest_lag: np.ndarray
    jain: float
    dominant: np.ndarray
    response: np.ndarray
    response_deviation: np.ndarray

    @property
    def ratio(self) -> np.ndarray:
        """(K,) received / entitled at the end; NaN of who was entitled to nothing."""
        received, entitled = self.received[-1], self.entitled[-1]
        return np.divide(received, entitled, np.full(len(received), np.nan), where=entitled > 0)

    @property
    def last_lag(self) -> np.ndarray:
        """(K,) core-seconds, entitled - received at the end."""
        return np.asarray(self.entitled[-1] - self.received[-1])


def is_shared(env: RawEnv) -> bool:
    """Whether functions wait centrally, of tenants that hold tickets."""
    return env.episode.funding is not None and env.rules.order is not None


def shares_of(env: RawEnv) -> Shares:
    """How a finished episode was shared.

    Args:
        env: at its end; functions wait centrally, tenants hold tickets.

    Raises:
        InputError: it is something else.
    """
    funding = env.episode.funding
    if funding is None or not is_shared(env):
        raise InputError("shares: a central queue and tenants with tickets are needed")
    runs = env.runs
    owner = np.array(env.episode.owners)[runs["wf_id"]]
    quantum = _quantum(env)
    account = _Account(env.state, len(runs))
    seconds = runs["computation"] / env.state.nodes["single_core_speed"][runs["node"]]
    # Of one count, the smaller number came first.
    for event in np.argsort(np.concatenate([runs["joined"], runs["dispatched"]])).tolist():
        run = event % len(runs)
        if event < len(runs):
            account.join(int(owner[run]))
        else:
            account.start(int(owner[run]), float(seconds[run]), float(runs["dispatch_time"][run]))
    times, received, entitled = account.curves()
    response, deviation = _response(runs, owner, len(env.state.tenants))
    return Shares(
        tenants=tuple(funding.tenants),
        tickets=np.array([right_of(env.state, each) for each in range(len(funding.tenants))]),
        quantum=quantum,
        times=times,
        received=received,
        entitled=entitled,
        error=account.error / quantum,
        pair_error=account.pair_error / quantum,
        largest_lag=account.largest_lag,
        jain=float(jain_index(env.state)),
        dominant=_dominant(env, runs, owner),
        response=response,
        response_deviation=deviation,
    )


def _quantum(env: RawEnv) -> float:
    """Core-seconds; 1 where an order has no quantum, or one of another resource."""
    order = env.rules.order
    if not isinstance(order, SharedOrder) or order.sharing.resource != "core_seconds":
        return 1.0
    return float(env.state.share_head["quantum"][0])


class _Account:
    """That of the engine, kept anew while events of the queue pass, with what it does not keep.

    Attributes:
        state: a copy of that of the episode, with the account of the tenants.
        error, pair_error, largest_lag: (K,) core-seconds, see `Shares`.
    """

    def __init__(self, state: State, starts: int) -> None:
        options = state.options.copy()
        options["shared"] = 0  # nobody takes turns
        self.state = copy_state(state).replaced(options=options)
        reset_sharing(self.state)
        self._tenants = self.state.tenants
        count = len(self._tenants)
        # Received per ticket, that of one tenant less that of another, since both compete.
        self._apart = np.zeros((count, count))
        self.error, self.pair_error, self.largest_lag = np.zeros((3, count))
        self._every = max(1, starts // MOST_POINTS)
        self._counted = 0
        self._points = [self._point(0.0)]
        self._last = 0.0

    def join(self, tenant: int) -> None:
        """A function of a tenant begins to wait."""
        count_waiting(self.state, tenant, 1)
        if self._tenants["waiting"][tenant] == 1:
            self._apart[tenant, :] = self._apart[:, tenant] = 0.0

    def start(self, tenant: int, seconds: float, time: float) -> None:
        """A function of a tenant leaves the queue with so many core-seconds of work."""
        if count_start(self.state, tenant, seconds):
            lag = self._entitled() - self._tenants["received"]
            np.maximum(self.error, np.abs(lag), out=self.error)
            np.maximum(self.largest_lag, lag, out=self.largest_lag)
            tickets = self._tenants["tickets"]
            own = tickets[tenant]
            self._apart[tenant, :] += seconds / own
            self._apart[:, tenant] -= seconds / own
            self._apart[tenant, tenant] = 0.0
            pairs = np.abs(self._apart[tenant]) * own * tickets / (own + tickets)
            np.maximum(self.pair_error, pairs, out=self.pair_error)
            self.pair_error[tenant] = max(self.pair_error[tenant], pairs.max())
            self._last = time
            self._counted += 1
            if self._counted % self._every == 0:
                self._points.append(self._point(time))
        count_waiting(self.state, tenant, -1)

    def curves(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(T,) seconds, (T, K) received and (T, K) entitled up to now."""
        if self._points[-1][0] < self._last or self._counted % self._every:
            self._points.append(self._point(self._last))
        times, received, entitled = zip(*self._points, strict=True)
        return np.array(times), np.array(received), np.array(entitled)

    def _entitled(self) -> np.ndarray:
        """(K,) core-seconds up to now; the engine adds them up when tickets change."""
        since = self.state.queue[0]["fair_clock"] - self._tenants["clock"]
        return np.asarray(self._tenants["entitled"] + self._tenants["tickets"] * since)

    def _point(self, time: float) -> tuple[float, np.ndarray, np.ndarray]:
        return time, self._tenants["received"].copy(), self._entitled()


def _dominant(env: RawEnv, runs: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """(K,) see `Shares`; a container holds cores and memory from its dispatch to its end."""
    found, nodes = np.zeros(len(env.state.tenants)), env.state.nodes
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
        found[tenant] = (larger[:-1] * np.diff(times[order])).sum() / env.time
    return found


def _response(runs: np.ndarray, owner: np.ndarray, count: int) -> np.ndarray:
    """(2, K) mean and standard deviation of the seconds from submission to end of functions."""
    done = runs["outcome"] == COMPLETED
    seconds = pd.Series((runs["end_time"] - runs["submission_time"])[done])
    by_tenant = seconds.groupby(owner[done])
    found = pd.DataFrame({"mean": by_tenant.mean(), "deviation": by_tenant.std(ddof=0)})
    return found.reindex(range(count)).to_numpy().T
