"""The metrics of a finished episode: each is declared here once and then is in every output.

Add one to `METRICS` and it is a column of results.parquet, summaries, tables, pictures, the report,
training curves and TensorBoard.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Literal, TypeVar

import numpy as np

from env.score.lower_bound import lower_bound
from env.score.reward import Objective, cheapest_cost, cost_ratio, flow_times, slowdowns
from env.sim.assembly.build import drawn_shares
from env.sim.declared.power import Power
from env.sim.queue.sharing import jain_index, share_error
from env.sim.state.block import State


@dataclass(frozen=True)
class FinishedEpisode:
    """What formulas of metrics are computed from.

    Attributes:
        state: of the simulator after the last completion; records of all workflows are there.
        objective: what J is made of.
        power: of the servers; None where it is not known.
    """

    state: State
    objective: Objective
    power: Power | None

    @cached_property
    def slowdown(self) -> np.ndarray:
        """(W,) flow time / critical path of every workflow."""
        return slowdowns(self.state)

    @cached_property
    def cost_ratio(self) -> float:
        """Rent / all work on the cheapest cores."""
        return float(cost_ratio(self.total("total_rent"), cheapest_cost(self.state)))

    @cached_property
    def J(self) -> float:
        """What schedulers are ranked by."""
        weights = self.objective
        return (
            weights.time_weight * float(self.slowdown.mean())
            + weights.cost_weight * self.cost_ratio
            + weights.completion_weight * self.completion
            + weights.fairness_weight * float(share_error(self.state))
        )

    @property
    def share_error(self) -> float:
        """See env/sim/queue/sharing.py; NaN where no tenant holds tickets."""
        return float(share_error(self.state)) if len(self.state.tenants) else np.nan

    @property
    def jain(self) -> float:
        """See env/sim/queue/sharing.py; NaN where no tenant holds tickets."""
        return float(jain_index(self.state)) if len(self.state.tenants) else np.nan

    @property
    def completion(self) -> float:
        """Mean flow time / mean critical path."""
        return float(flow_times(self.state).sum() / self.total("declared_path"))

    @property
    def carbon(self) -> float:
        """gCO2e of the servers, leased or up, and of their work; NaN where power is not known."""
        if self.power is None:
            return np.nan
        unpaid = float((self.unpaid_seconds * self.state.servers["watts"]).sum())
        return self.power.carbon(float(self.state.ledger["energy"].sum()) + unpaid)

    @property
    def unpaid_seconds(self) -> np.ndarray:
        """(S,) for which servers have been up that are not paid: the ledger does not know yet."""
        servers = self.state.servers
        up = np.isposinf(servers["expiration_time"])
        return np.where(up, self.total("time") - servers["ready_time"], 0.0)

    @property
    def utilisation(self) -> float:
        """Core-seconds of work / core-seconds of servers while leased or, unpaid, up."""
        state = self.state
        cores = np.bincount(state.nodes["server"], weights=state.nodes["cpu"])
        accounts = state.ledger["lease_seconds"].reshape(len(state.servers), -1)
        rented = float(((accounts.sum(axis=1) + self.unpaid_seconds) * cores).sum())
        work = state.templates["work"][state.arrivals["template"]] * drawn_shares(state)
        return float(work.sum()) / rented

    @property
    def queueing(self) -> float:
        """Seconds in the central queue, mean over functions; 0 where there is none."""
        state = self.state
        count = state.templates["function_count"][state.arrivals["template"]].sum()
        return float(state.queue[0]["queueing_time"] / count)

    def total(self, field: str) -> float:
        """A field of the cluster's record."""
        return float(self.state.cluster[0][field])


Episode = TypeVar("Episode")
Shown = Literal["number", "share", "count"]


@dataclass(frozen=True)
class Metric(Generic[Episode]):
    """A number that every episode has.

    Attributes:
        name: of the column; words joined by underscores.
        formula: for readers.
        compute: the same for programs; NaN where the episode has no such number.
        unit: "" for ratios and counts.
        better: which values are better; None where neither is.
        shown: what readers see of it: a share in percent, a count without decimals.
    """

    name: str
    formula: str
    compute: Callable[[Episode], float]
    unit: str = ""
    better: Literal["lower", "higher"] | None = "lower"
    shown: Shown = "number"

    @property
    def heading(self) -> str:
        """What tables and pictures call it: `rent (USD)`."""
        words = self.name.replace("_", " ")
        return f"{words} ({self.unit})" if self.unit else words


def by_name(*metrics: Metric[Episode]) -> dict[str, Metric[Episode]]:
    """Metrics by their names, in the order given."""
    return {metric.name: metric for metric in metrics}


METRICS: dict[str, Metric[FinishedEpisode]] = by_name(
    Metric(
        "J",
        "time_weight * slowdown + cost_weight * cost_ratio + completion_weight * completion + "
        "fairness_weight * share_error",
        lambda episode: episode.J,
    ),
    Metric(
        "share_error",
        "mean over tenants of |core-seconds received - entitled by tickets| / all core-seconds, of "
        "functions that start while several tenants wait",
        lambda episode: episode.share_error,
        shown="share",
    ),
    Metric(
        "slowdown",
        "mean over workflows of flow time / critical path at full speed",
        lambda episode: float(episode.slowdown.mean()),
    ),
    Metric(
        "cost_ratio",
        "rent / rent of all work on the cheapest cores",
        lambda episode: episode.cost_ratio,
    ),
    Metric(
        "bound_gap",
        "J / lower bound of J - 1",
        lambda episode: episode.J / lower_bound(episode.state, episode.objective) - 1,
        shown="share",
    ),
    Metric(
        "slowdown_p95",
        "95th percentile over workflows of the slowdown",
        lambda episode: float(np.percentile(episode.slowdown, 95)),
    ),
    Metric(
        "flow_time",
        "mean over workflows of last completion - arrival",
        lambda episode: float(flow_times(episode.state).mean()),
        unit="s",
    ),
    Metric(
        "makespan",
        "last completion of the episode, from time 0",
        lambda episode: episode.total("time"),
        unit="s",
    ),
    Metric(
        "rent",
        "sum over servers of hours leased * hourly rate",
        lambda episode: episode.total("total_rent"),
        unit="USD",
    ),
    Metric(
        "carbon",
        "electricity of servers, while leased or up, and of all work * carbon intensity",
        lambda episode: episode.carbon,
        unit="gCO2e",
    ),
    Metric(
        "cold_starts",
        "servers started without a lease",
        lambda episode: episode.total("cold_starts"),
        shown="count",
    ),
    Metric(
        "utilisation",
        "core-seconds of work / core-seconds of servers while leased or, unpaid, up",
        lambda episode: episode.utilisation,
        better="higher",
        shown="share",
    ),
    Metric(
        "overcommits",
        "admissions after which a node's projection exceeds its memory",
        lambda episode: episode.total("overcommits"),
        shown="count",
    ),
    Metric(
        "completion",
        "mean flow time / mean critical path at full speed",
        lambda episode: episode.completion,
    ),
    Metric(
        "container_cold_starts",
        "containers that were started, where that takes time",
        lambda episode: float(episode.state.queue[0]["container_cold_starts"]),
        shown="count",
    ),
    Metric(
        "queueing",
        "mean over functions of time in the central queue",
        lambda episode: episode.queueing,
        unit="s",
    ),
    Metric(
        "jain",
        "Jain's index over tenants of core-seconds received / entitled, of the same functions",
        lambda episode: episode.jain,
        better="higher",
    ),
    Metric(
        "decisions",
        "functions placed",
        lambda episode: episode.total("decisions"),
        better=None,
        shown="count",
    ),
)
"""By name, the most telling ones first: narrow tables leave out the last."""


def episode_metrics(
    state: State, objective: Objective, power: Power | None = None
) -> dict[str, float]:
    """What a finished episode came to, by the names in `METRICS`; carbon is NaN without `power`."""
    episode = FinishedEpisode(state, objective, power)
    return {name: metric.compute(episode) for name, metric in METRICS.items()}
