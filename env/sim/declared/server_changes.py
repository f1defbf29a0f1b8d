"""Config group `changes`: servers join, drain, leave and fail, by a list or at random."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from env.base.errors import InputError
from env.base.schema import Strict, nearest
from env.sim.declared.bounds import LONGEST, Seconds
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.spot import Spot, read_trace
from env.sim.state.change_records import DRAIN, JOIN, LEAVE, PLANNED_CHANGE, SERVER_PLAN
from env.sim.state.records import INF

ACTIONS = {"join": JOIN, "drain": DRAIN, "leave": LEAVE, "fail": LEAVE}


class ListedChange(Strict):
    """A change of a server (conf/changes/listed.yaml explains each)."""

    time: Seconds
    server: str
    action: Literal["join", "drain", "leave", "fail"]
    notice: Seconds | None = None
    repair: Seconds | None = None

    @property
    def change(self) -> tuple[float, int, float]:
        """As the engine takes it: time, number of the action, seconds of notice or of repair."""
        seconds = self.notice if self.action == "drain" else self.repair
        return self.time, ACTIONS[self.action], INF if seconds is None else seconds

    @model_validator(mode="after")
    def _seconds_belong_to_the_action(self) -> Self:
        if (self.notice is not None) != (self.action == "drain"):
            raise ValueError(f"notice: {self.notice} found, 'drain' alone needs seconds of notice")
        if self.repair is not None and self.action != "fail":
            raise ValueError(f"repair: {self.repair} found, action 'fail' alone has one")
        return self


class Weibull(Strict):
    """Times that are Weibull distributed, of a scale in seconds; exponentially for the shape 1."""

    shape: Annotated[float, Field(ge=0.1, le=10)]
    scale: Annotated[float, Field(ge=1e-3, le=LONGEST)]


class NoChanges(Strict):
    """All servers are there, always."""

    kind: Literal["none"] = "none"


class ListedChanges(Strict):
    """Changes of single servers from a list."""

    kind: Literal["listed"]
    events: tuple[ListedChange, ...]


class RandomFailures(Strict):
    """Every server fails by itself and is repaired (conf/changes/random.yaml explains each)."""

    kind: Literal["random"]
    failures: Weibull
    repairs: Weibull


Changes = Annotated[NoChanges | ListedChanges | RandomFailures, Field(discriminator="kind")]
NO_CHANGES = NoChanges()


@lru_cache(maxsize=64)
def plans_of(
    changes: Changes, spot: Spot | None, cluster: ClusterConfig
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How the servers of a cluster change: those of a spot lease as their trace says.

    Returns:
        (SERVER_PLAN (S,), PLANNED_CHANGE, bool (S,) which are not there at time 0 whatever comes).

    Raises:
        InputError: a listed server is unknown, or a spot server.
    """
    names = [f"{kind.name} {index}" for kind in cluster.server_types for index in range(kind.count)]
    plans, absent = np.zeros(len(names), SERVER_PLAN), np.zeros(len(names), bool)
    plans["period"] = INF
    changes_of: list[list[tuple[float, int, float]]] = [[] for _ in names]
    of_spot = [] if spot is None else np.flatnonzero(spot.servers(cluster)).tolist()
    if isinstance(changes, RandomFailures):
        for what, law in (("failure", changes.failures), ("repair", changes.repairs)):
            plans[f"{what}_shape"], plans[f"{what}_scale"] = law.shape, law.scale
    if isinstance(changes, ListedChanges):
        allowed = [name for server, name in enumerate(names) if server not in of_spot]
        for place, event in enumerate(changes.events):
            if event.server not in allowed:
                hint = nearest(event.server, allowed)
                raise InputError(f"changes.events.{place}.server: '{event.server}', {hint}")
            changes_of[names.index(event.server)].append(event.change)
    if spot is not None and spot.trace is not None:
        trace = read_trace(spot.trace)
        for number, server in enumerate(of_spot):
            group, place = divmod(number, trace.width)
            changes_of[server] = trace.changes(place, spot.notice)
            plans["failure_shape"][server], plans["period"][server] = 0.0, trace.period
            plans["group"][server] = group
            absent[server] = not changes_of[server] and min(trace.data) <= place
    plans["count"] = [len(each) for each in changes_of]
    plans["first"] = np.cumsum(plans["count"]) - plans["count"]
    # Of one moment, what is listed first comes first.
    rows = [row for each in changes_of for row in sorted(each, key=lambda row: row[0])]
    return plans, np.array(rows, PLANNED_CHANGE), absent
