"""How fairly an episode was shared: what each tenant got, and what its tickets entitled it to.

Everything follows from what ran. The work of a function that starts while functions of several
tenants wait is divided among all of these by their tickets; what starts while one tenant waits
alone is nobody else's, and does not count (env/sim/sharing.py counts in the same way as it goes).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from env.base.errors import InputError
from env.sim.funding import Funding
from env.sim.ordering import SharedOrder
from env.sim.records import COMPLETED
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
    dominant: np.ndarray
    response: np.ndarray
    response_deviation: np.ndarray

    @property
    def last_lag(self) -> np.ndarray:
        """(K,) core-seconds, entitled - received at the end."""
        return np.asarray(self.entitled[-1] - self.received[-1])

    @property
    def jain(self) -> float:
        """Jain's index of received / entitled; 1 where nobody is entitled to anything."""
        entitled = self.entitled[-1]
        served = self.received[-1][entitled > 0] / entitled[entitled > 0]
        squares = float((served**2).sum())
        return float(served.sum()) ** 2 / (len(served) * squares) if squares else 1.0


def is_shared(env: RawEnv) -> bool:
    """Whether functions wait centrally, of tenants that hold tickets."""
    return env.funding is not None and env.rules.order is not None and len(env.tenants) > 0


def shares_of(env: RawEnv) -> Shares:
    """How a finished episode was shared.

    Args:
        env: at its end; its functions wait centrally, its tenants hold tickets.

    Raises:
        InputError: it is something else.
    """
    if env.funding is None or not is_shared(env):
        raise InputError("shares: a central queue and tenants with tickets are needed")
    if not env.done:
        raise InputError("shares: the episode is not over yet")
    runs = env.runs
    place = {name: index for index, name in enumerate(env.funding.tenants)}
    owner = np.array([place[name] for name in env.tenants])[runs["wf_id"]]
    quantum = _quantum(env)
    account = _Account(env.funding, len(runs))
    seconds = runs["computation"] / env.state.nodes["single_core_speed"][runs["node"]]
    # Of one count, the smaller number came first.
    for event in np.argsort(np.concatenate([runs["joined"], runs["dispatched"]])).tolist():
        run = event % len(runs)
        if event < len(runs):
            account.join(int(owner[run]))
        else:
            account.start(int(owner[run]), float(seconds[run]), float(runs["dispatch_time"][run]))
    times, received, entitled = account.curves()
    response = _by_tenant(runs, owner, len(place))
    return Shares(
        tenants=tuple(place),
        tickets=account.everybody / account.everybody.sum(),
        quantum=quantum,
        times=times,
        received=received,
        entitled=entitled,
        error=account.error / quantum,
        pair_error=account.pair_error / quantum,
        largest_lag=account.largest_lag,
        dominant=_dominant(env, runs, owner),
        response=response[0],
        response_deviation=response[1],
    )


def _quantum(env: RawEnv) -> float:
    """Core-seconds; 1 where an order has no quantum, or one of another resource."""
    order = env.rules.order
    if not isinstance(order, SharedOrder) or order.sharing.resource != "core_seconds":
        return 1.0
    return float(env.state.share_head["quantum"][0])


class _Account:
    """What tenants have received and are entitled to while events of the queue pass.

    Attributes:
        everybody: (K,) tickets while all compete.
        received, entitled: (K,) core-seconds so far.
        error, pair_error, largest_lag: (K,) core-seconds, see `Shares`.
    """

    def __init__(self, funding: Funding, starts: int) -> None:
        self._names = tuple(funding.tenants)
        self._rights = funding.rights()
        self._fixed = not funding.currencies  # then nobody's tickets depend on who competes
        self.everybody = self._worth()
        for name in self._names:
            self._rights.stop(name)
        count = len(self._names)
        self._waiting = np.zeros(count, np.int64)
        self._tickets = np.zeros(count)
        # Received per ticket, that of one tenant less that of another, since both compete.
        self._apart = np.zeros((count, count))
        self.received, self.entitled = np.zeros(count), np.zeros(count)
        self.error, self.pair_error, self.largest_lag = np.zeros((3, count))
        self._every = max(1, starts // MOST_POINTS)
        self._counted = 0
        self._points = [(0.0, self.received.copy(), self.entitled.copy())]
        self._last = 0.0

    def join(self, tenant: int) -> None:
        """A function of a tenant begins to wait."""
        self._waiting[tenant] += 1
        if self._waiting[tenant] == 1:
            self._compete(tenant, True)
            self._apart[tenant, :] = self._apart[:, tenant] = 0.0

    def start(self, tenant: int, seconds: float, time: float) -> None:
        """A function of a tenant leaves the queue with so many core-seconds of work."""
        tickets = self._tickets
        if np.count_nonzero(tickets) > 1:
            self.received[tenant] += seconds
            self.entitled += seconds * tickets / tickets.sum()
            lag = self.entitled - self.received
            np.maximum(self.error, np.abs(lag), out=self.error)
            np.maximum(self.largest_lag, lag, out=self.largest_lag)
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
                self._note()
        self._waiting[tenant] -= 1
        if self._waiting[tenant] == 0:
            self._compete(tenant, False)

    def curves(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(T,) seconds, (T, K) received and (T, K) entitled up to now."""
        if self._points[-1][0] < self._last or self._counted % self._every:
            self._note()
        times, received, entitled = zip(*self._points, strict=True)
        return np.array(times), np.array(received), np.array(entitled)

    def _note(self) -> None:
        self._points.append((self._last, self.received.copy(), self.entitled.copy()))

    def _compete(self, tenant: int, competes: bool) -> None:
        if self._fixed:
            self._tickets[tenant] = self.everybody[tenant] if competes else 0.0
            return
        (self._rights.start if competes else self._rights.stop)(self._names[tenant])
        self._tickets = self._worth()

    def _worth(self) -> np.ndarray:
        """(K,) base tickets that those of each are worth, 0 of who does not compete."""
        values = self._rights.values()
        return np.array([float(values.get(name, 0)) for name in self._names])


def _dominant(env: RawEnv, runs: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """(K,) see `Shares`; a container holds cores and memory from its dispatch to its end."""
    assert env.funding is not None
    found = np.zeros(len(env.funding.tenants))
    nodes = env.state.nodes
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


def _by_tenant(runs: np.ndarray, owner: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """(K,) mean and (K,) standard deviation of the seconds from submission to end of functions."""
    done = runs["outcome"] == COMPLETED
    seconds = (runs["end_time"] - runs["submission_time"])[done]
    functions = np.bincount(owner[done], minlength=count).astype(np.float64)
    functions[functions == 0] = np.nan
    mean = np.bincount(owner[done], seconds, count) / functions
    squares = np.bincount(owner[done], (seconds - mean[owner[done]]) ** 2, count)
    return mean, np.sqrt(squares / functions)
