"""How a world works: where functions wait, how servers are leased, which containers stay warm."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal, Self, get_args

import numpy as np
from pydantic import Field, model_validator

from env.base.errors import InputError
from env.base.schema import Strict
from env.sim.declared.bounds import LONGEST, MOST_SERVERS, Rate, Whole
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.keep_alive_policy import KeepAlivePolicy, NoKeepAlive
from env.sim.declared.ordering import Order, SharedOrder
from env.sim.declared.server_changes import NO_CHANGES, Changes, Recovery, Spot
from env.sim.state import queue_records
from env.sim.state.records import HOUR, INF

Fit = Literal["first_fit", "best_fit", "worst_fit"]
"""Placement rules that the engine has, where functions wait centrally."""
Placement = Literal[Fit, "asked"]
PLACEMENTS: tuple[Placement, ...] = get_args(Placement)


class Immediate(Strict):
    """Config group `dispatch`: functions are placed when they are submitted."""

    kind: Literal["immediate"]


class Queued(Strict):
    """Config group `dispatch`: functions wait in a central queue (conf/dispatch/queued.yaml)."""

    kind: Literal["queued"]
    patience: Annotated[float, Field(ge=0, le=LONGEST)] | None


Dispatch = Annotated[Immediate | Queued, Field(discriminator="kind")]


class Autoscale(Strict):
    """A world in which servers come and go by decisions (conf/lease/autoscaled.yaml)."""

    every: Annotated[float, Field(ge=1.0, le=LONGEST)]
    least: Annotated[int, Field(ge=0, le=MOST_SERVERS)]


class ByArchitecture(Strict):
    """USD of a GB-second, of 1024 MB."""

    x86_64: Rate
    arm64: Rate


class PerUse(Strict):
    """What a run pays when it ends, for memory times seconds (conf/lease/per_use.yaml)."""

    request: Rate
    gb_second: ByArchitecture
    free_requests: Whole = 0
    free_gb_seconds: Annotated[float, Field(ge=0, le=1e15)] = 0.0

    def write(self, servers: np.ndarray, cluster: ClusterConfig) -> None:
        """Fills in the prices of SERVER records."""
        rows = [
            (self.request * price, getattr(self.gb_second, kind.architecture) * price)
            for kind, price in ((kind, cluster.price_of(kind)) for kind in cluster.server_types)
        ]
        prices = np.array(rows)[servers["type"]]
        servers["request_price"], servers["gb_second_price"] = prices.T


class Lease(Strict):
    """Config group `lease`: when a server is up and how it is paid (conf/lease explains each)."""

    kind: Literal["hourly", "always"] = "hourly"
    step: Annotated[float, Field(ge=1.0, le=LONGEST)] = HOUR
    least: Annotated[int, Field(ge=1, le=10**9)] = 1
    charged: bool = True
    spot: Spot | None = None
    autoscale: Autoscale | None = None
    use: PerUse | None = None

    @model_validator(mode="after")
    def _is_paid_in_one_way(self) -> Self:
        if self.use is not None and (self.kind != "always" or self.charged):
            raise ValueError("use: found, it needs kind 'always' and charged false")
        return self

    @property
    def is_free(self) -> bool:
        """Whether nothing is paid for servers."""
        return self.kind == "always" and not self.charged and self.use is None

    def write(self, servers: np.ndarray, cluster: ClusterConfig) -> None:
        """Fills in which SERVER records are `absent` at time 0, and how they are paid."""
        if self.autoscale is not None:
            servers["absent"] = servers["server_id"] >= self.autoscale.least
        servers["lease_step"], servers["least_steps"] = self.step, self.least
        servers["step_price"] = servers["hourly_rate"] * (self.step / HOUR)
        if self.spot is not None:
            servers["step_price"][self.spot.servers(cluster)] *= self.spot.price
        if self.use is not None:
            self.use.write(servers, cluster)


HOURLY = Lease()
NO_KEEP_ALIVE = NoKeepAlive()


@dataclass(frozen=True)
class Rules:
    """How a world works, besides what arrives on what hardware.

    Attributes:
        order: which waiting function goes next; None where none waits centrally: each is placed
            once it is ready.
        placement: who names the node, where functions wait centrally: of several equally suited
            nodes as the placement rules of these names, memory being what admitted containers
            leave; `asked` leaves it to whoever plays.
        patience: seconds of waiting after which a server may be started for a function; None:
            never, as in `Queued`.
        lease: when servers are up, and how they are paid.
        keep_alive: how long containers stay warm.
        changes: how servers change by themselves, beside those of a spot lease.
        recovery: what becomes of those they kill; None: they wait again at once, and if for ever it
            is an error.

    Raises:
        InputError: servers change by themselves where somebody scales.
    """

    order: Order | None = None
    placement: Placement = "worst_fit"
    patience: float | None = 0.0
    lease: Lease = HOURLY
    keep_alive: KeepAlivePolicy = NO_KEEP_ALIVE
    changes: Changes = NO_CHANGES
    recovery: Recovery | None = None

    def __post_init__(self) -> None:
        if self.lease.autoscale is not None and self.servers_change:
            raise InputError(
                "lease.autoscale: servers change by changes or lease.spot, too: leave one out"
            )

    def options(self) -> np.ndarray:
        """OPTIONS (1,)."""
        options = np.zeros(1, queue_records.OPTIONS)
        options["placement"] = queue_records.NodeBy[self.placement]
        options["time_slice"] = options["starve_threshold"] = INF
        options["patience"] = INF if self.patience is None else self.patience
        if self.lease.autoscale is not None:
            options["tick"] = self.lease.autoscale.every
        always, charged = self.lease.kind == "always", self.lease.charged
        options["always_up"], options["charged"] = always, always and charged
        if self.lease.use is not None:
            options["meters"] = queue_records.USES
            options["free_requests"] = self.lease.use.free_requests
            options["free_gb_seconds"] = self.lease.use.free_gb_seconds
        if self.order is not None:
            options["queued"] = 1
            self.order.write(options[0])
            if isinstance(self.order, SharedOrder):
                options["shared"] = 1
                options["resource"] = queue_records.Charged[self.order.sharing.resource]
        self.keep_alive.write(options[0])
        renewed, watched = always and charged, self.order is not None or self.keeps_warm
        options["watch_leases"] = renewed or (watched and not always)
        return options

    @property
    def with_all_servers(self) -> Rules:
        """The same where nobody scales."""
        return replace(self, lease=self.lease.model_copy(update={"autoscale": None}))

    @property
    def servers_change(self) -> bool:
        """Whether servers change by themselves."""
        return self.changes.kind != "none" or self.lease.spot is not None

    @property
    def keeps_warm(self) -> bool:
        """Whether containers stay warm."""
        return not isinstance(self.keep_alive, NoKeepAlive)


class RuleGroups(Strict):
    """The config groups that say how a world works; conf/ explains each."""

    dispatch: Dispatch
    lease: Lease
    keep_alive: KeepAlivePolicy
    changes: Changes
    recovery: Recovery

    def rules_for(self, order: Order, placement: Placement) -> Rules:
        """How the world works; order and placement are those of a central queue, if any."""
        rules = Rules(lease=self.lease, keep_alive=self.keep_alive, changes=self.changes)
        if rules.servers_change:
            rules = replace(rules, recovery=self.recovery)
        if not isinstance(self.dispatch, Queued):
            return rules
        return replace(rules, order=order, placement=placement, patience=self.dispatch.patience)


DEFAULT_RULES = Rules()
"""Each function is placed once it is ready, leases are hourly, no container stays warm."""
