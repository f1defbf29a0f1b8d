"""The metrics of a finished episode: each is declared here once and then is in every output.

A property of `FinishedEpisode` that is marked with `metric` is a column of results.parquet,
summaries, tables, pictures, the report, training curves and TensorBoard.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any, Literal

import numpy as np

from env.base.errors import InputError
from env.score.lower_bound import lower_bound, uncalled_work
from env.score.reward import Objective, cheapest_cost, cost_ratio, emissions
from env.sim.assembly.build import drawn_shares
from env.sim.declared.power import Power
from env.sim.events.carbon import carbon_of_servers
from env.sim.queue.sharing import jain_index, share_error
from env.sim.state.block import State
from env.sim.state.queue_records import CARBON
from env.sim.state.records import FINISHED, NOT_CALLED

Better = Literal["lower", "higher"] | None
Shown = Literal["number", "share", "count"]


@dataclass(frozen=True)
class Metric:
    """A number that every episode has."""

    name: str  # of the column; words joined by underscores
    formula: str  # for readers
    compute: Callable[[Any], float]  # for programs; NaN where the episode has no such number
    unit: str = ""  # "" for ratios and counts
    better: Better = "lower"  # which values are better; None where neither is
    shown: Shown = "number"  # a share in percent, a count without decimals

    @property
    def heading(self) -> str:
        """What tables and pictures call it: `rent (USD)`."""
        words = self.name.replace("_", " ")
        return f"{words} ({self.unit})" if self.unit else words


METRICS: dict[str, Metric] = {}
"""By name, the most telling ones first: narrow tables leave out the last."""


def metric(
    formula: str, unit: str = "", better: Better = "lower", shown: Shown = "number"
) -> Callable[[Callable[[Any], float]], cached_property[float]]:
    """Declares a property of `FinishedEpisode` as a metric; arguments as of `Metric`."""

    def declare(compute: Callable[[Any], float]) -> cached_property[float]:
        name = compute.__name__
        METRICS[name] = Metric(name, formula, attrgetter(name), unit, better, shown)
        return cached_property(compute)

    return declare


@dataclass(frozen=True)
class FinishedEpisode:
    """What formulas of metrics are computed from, and the metrics."""

    state: State  # after the last completion; records of all workflows are there
    objective: Objective
    power: Power | None  # of the servers; None where it is not known

    @metric(
        "time_weight * slowdown + cost_weight * cost_ratio + completion_weight * completion + "
        "fairness_weight * share_error + carbon_weight * carbon / carbon of all work on the cores "
        "that emit least on average"
    )
    def J(self) -> float:
        weights = self.objective
        return (
            weights.time_weight * self.slowdown
            + weights.cost_weight * self.cost_ratio
            + weights.completion_weight * self.completion
            + weights.fairness_weight * float(share_error(self.state))
            + float(emissions(self.state, weights.weights, len(self.state.arrivals), True))
        )

    @metric(
        "mean over tenants of |core-seconds received - entitled by tickets| / all core-seconds, of "
        "functions that start while several tenants wait",
        shown="share",
    )
    def share_error(self) -> float:
        return float(share_error(self.state)) if len(self.state.tenants) else np.nan

    @metric("mean over workflows of flow time / critical path at full speed")
    def slowdown(self) -> float:
        return float(self.slowdowns.mean())

    @metric("rent / rent of all work on the cheapest cores")
    def cost_ratio(self) -> float:
        return float(cost_ratio(self.rent, cheapest_cost(self.state)))

    @metric("J / lower bound of J - 1", shown="share")
    def bound_gap(self) -> float:
        # Then it is not known to be a bound, or says nothing of carbon.
        if self.failed > 0 or self.objective.carbon_weight > 0:
            return np.nan
        return self.J / lower_bound(self.state, self.objective) - 1

    @metric("95th percentile over workflows of the slowdown")
    def slowdown_p95(self) -> float:
        return float(np.percentile(self.slowdowns, 95))

    @metric("mean over workflows of last completion - arrival", unit="s")
    def flow_time(self) -> float:
        return float(self.flow_times.mean())

    @metric("last completion of the episode, from time 0", unit="s")
    def makespan(self) -> float:
        return self.total("time")

    @metric(
        "paid for servers (hours leased * hourly rate), for uses and for data between regions",
        unit="USD",
    )
    def rent(self) -> float:
        return self.total("total_rent")

    @metric(
        "electricity of servers, while leased or up, of all work and of data between regions * "
        "carbon intensity",
        unit="gCO2e",
    )
    def carbon(self) -> float:
        if self.power is None:
            return np.nan
        if self.state.options[0]["meters"] & CARBON:
            return float(carbon_of_servers(self.state, True))
        unpaid = float((self.unpaid_seconds * self.state.servers["watts"]).sum())
        return self.power.carbon(float(self.state.ledger["energy"].sum()) + unpaid)

    @metric("servers started without a lease", shown="count")
    def cold_starts(self) -> float:
        return self.total("cold_starts")

    @metric(
        "core-seconds of work / core-seconds of servers while leased or, unpaid, up",
        better="higher",
        shown="share",
    )
    def utilisation(self) -> float:
        state = self.state
        cores = np.bincount(state.nodes["server"], weights=state.nodes["cpu"])
        accounts = state.ledger["lease_seconds"].reshape(len(state.servers), -1)
        rented = float(((accounts.sum(axis=1) + self.unpaid_seconds) * cores).sum())
        if len(state.recovery):
            return (self._useful + self.work_lost) / rented if rented else np.nan
        work = state.templates["work"][state.arrivals["template"]] * drawn_shares(state)
        return (float(work.sum()) - uncalled_work(state)) / rented

    @metric("admissions after which a node's projection exceeds its memory", shown="count")
    def overcommits(self) -> float:
        return self.total("overcommits")

    @metric("mean flow time / mean critical path at full speed")
    def completion(self) -> float:
        return float(self.flow_times.sum() / self.total("declared_path"))

    @metric("containers that were started, where that takes time", shown="count")
    def container_cold_starts(self) -> float:
        return float(self.state.queue[0]["container_cold_starts"])

    @metric("mean over functions of time in the central queue", unit="s")
    def queueing(self) -> float:
        return float(self.state.queue[0]["queueing_time"] / self._functions)

    @metric(
        "Jain's index over tenants of core-seconds received / entitled, of the same functions",
        better="higher",
    )
    def jain(self) -> float:
        return float(jain_index(self.state)) if len(self.state.tenants) else np.nan

    @metric("functions placed", better=None, shown="count")
    def decisions(self) -> float:
        return self.total("decisions")

    @metric("functions that failed / functions", shown="share")
    def failed(self) -> float:
        return self.recovery("failed") / self._functions

    @metric("functions that were killed and submitted again", shown="count")
    def retries(self) -> float:
        return self.recovery("retries")

    @metric("core-seconds of killed runs and of lost data, less what checkpoints keep", unit="s")
    def work_lost(self) -> float:
        return self.recovery("work_lost")

    @metric(
        "core-seconds of functions that finished / of all that was executed",
        better="higher",
        shown="share",
    )
    def goodput(self) -> float:
        executed = self._useful + self.work_lost
        return self._useful / executed if executed else np.nan

    @metric("mean seconds from a kill to the next start of the function", unit="s")
    def time_to_recover(self) -> float:
        recovered = self.recovery("recovered")
        return self.recovery("recovery_time") / recovered if recovered else np.nan

    @metric("server-seconds in service / server-seconds", better="higher", shown="share")
    def availability(self) -> float:
        out, time = self.total("out_of_service"), self.total("time")
        seconds = self.recovery("out_time") + out * (time - self.recovery("out_until"))
        return 1.0 - seconds / (time * len(self.state.servers)) if time else np.nan

    def recovery(self, field: str) -> float:
        """A field of the record of recovery; NaN where no server changes by itself."""
        return float(self.state.recovery[0][field]) if len(self.state.recovery) else np.nan

    @property
    def _functions(self) -> int:
        """Those of all workflows that were called."""
        declared = self.state.templates["function_count"][self.state.arrivals["template"]].sum()
        return int(declared - (self.state.functions["state"] == NOT_CALLED).sum())

    @property
    def _useful(self) -> float:
        """Core-seconds, at the cluster's core speed, of functions that have finished."""
        done = self.state.functions["computation"][self.state.functions["state"] == FINISHED]
        return float(done.sum() / self.total("single_core_speed"))

    @cached_property
    def flow_times(self) -> np.ndarray:
        """(W,) seconds from the arrival of every workflow to the end of its last function.

        Raises:
            InputError: records of a workflow have been recycled.
        """
        if (self.state.slot_of < 0).any():
            raise InputError("workflows have ended and their records have been recycled")
        workflows = self.state.workflows[self.state.slot_of]
        times: np.ndarray = workflows["completion_time"] - workflows["arrival_time"]
        return times

    @cached_property
    def slowdowns(self) -> np.ndarray:
        """(W,) flow time / critical path at full speed of every workflow.

        The path is that of the worst case, in which every call is made, so where some are not a
        slowdown may be below 1.
        """
        templates = self.state.workflows[self.state.slot_of]["template"]
        slowdowns: np.ndarray = self.flow_times / self.state.templates["critical_path"][templates]
        return slowdowns

    @property
    def unpaid_seconds(self) -> np.ndarray:
        """(S,) for which servers have been up that are not paid: the ledger does not know yet."""
        servers = self.state.servers
        up = np.isposinf(servers["expiration_time"])
        return np.where(up, self.total("time") - servers["ready_time"], 0.0)

    def total(self, field: str) -> float:
        """A field of the cluster's record."""
        return float(self.state.cluster[0][field])


def episode_metrics(
    state: State, objective: Objective, power: Power | None = None
) -> dict[str, float]:
    """What a finished episode came to, by the names in `METRICS`; carbon is NaN without `power`."""
    episode = FinishedEpisode(state, objective, power)
    return {name: metric.compute(episode) for name, metric in METRICS.items()}
