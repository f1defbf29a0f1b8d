"""Config group `changes`: servers join, drain, leave and fail, by a list or at random."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from env.base.errors import InputError
from env.base.schema import Strict, nearest
from env.sim.declared.bounds import LONGEST, Seconds
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.spot import Spot
from env.sim.state.change_records import PLANNED_CHANGE, SERVER_PLAN
from env.sim.state.records import INF

Between = Annotated[float, Field(ge=1e-3, le=LONGEST)]
"""Seconds: less would be failures without end."""
Change = tuple[float, int, float]
"""Time (s), action and its seconds."""
ACTIONS = ("join", "drain", "leave", "fail")
"""In the order of their numbers in env/sim/state/change_records.py."""


class _Listed(Strict):
    """A change of one server at a time (s); `server` is its type and its number: `small 0`."""

    time: Seconds
    server: str

    @property
    def change(self) -> Change:
        """As the engine takes it."""
        given = self.model_dump()
        seconds = given.get("notice", given.get("repair", 0.0))
        return self.time, ACTIONS.index(given["action"]), INF if seconds is None else seconds


class Join(_Listed):
    """It comes into service; if that is its first change it is not there before."""

    action: Literal["join"]


class Drain(_Listed):
    """It takes nothing new, and leaves when it is empty or `notice` seconds are over."""

    action: Literal["drain"]
    notice: Seconds


class Leave(_Listed):
    """It leaves at once; what runs on it is killed."""

    action: Literal["leave"]


class Fail(_Listed):
    """It leaves at once, and is back `repair` seconds later; None: never."""

    action: Literal["fail"]
    repair: Seconds | None


class Exponential(Strict):
    """Times that are exponentially distributed, of a mean in seconds."""

    law: Literal["exponential"]
    mean: Between

    @property
    def weibull(self) -> tuple[float, float]:
        """Shape, and scale in seconds."""
        return 1.0, self.mean


class Weibull(Strict):
    """Times that are Weibull distributed, of a scale in seconds."""

    law: Literal["weibull"]
    shape: Annotated[float, Field(ge=0.1, le=10)]
    scale: Between

    @property
    def weibull(self) -> tuple[float, float]:
        """Shape, and scale in seconds."""
        return self.shape, self.scale


Times = Annotated[Exponential | Weibull, Field(discriminator="law")]


class NoChanges(Strict):
    """All servers are there, always."""

    kind: Literal["none"] = "none"


class ListedChanges(Strict):
    """Changes of single servers from a list; those of a server in the order of their times."""

    kind: Literal["listed"]
    events: tuple[Annotated[Join | Drain | Leave | Fail, Field(discriminator="action")], ...]


class RandomFailures(Strict):
    """Every server fails by itself.

    Attributes:
        failures: seconds from when it is there until it fails.
        repairs: seconds until it is back.
    """

    kind: Literal["random"]
    failures: Times
    repairs: Times


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
        InputError: a server is unknown, or a listed one is a spot server.
    """
    names = [f"{kind.name} {index}" for kind in cluster.server_types for index in range(kind.count)]
    plans, rows = np.zeros(len(names), SERVER_PLAN), _Rows()
    plans["period"] = INF
    absent = np.zeros(len(names), bool)
    if isinstance(changes, RandomFailures):
        plans["failure_shape"], plans["failure_scale"] = changes.failures.weibull
        plans["repair_shape"], plans["repair_scale"] = changes.repairs.weibull
    of_spot = [] if spot is None else np.flatnonzero(spot.servers(cluster)).tolist()
    if isinstance(changes, ListedChanges):
        for place, event in enumerate(changes.events):
            where = f"changes.events.{place}.server"
            if event.server not in names:
                raise InputError(f"{where}: {nearest(event.server, names)}")
            if names.index(event.server) in of_spot:
                raise InputError(f"{where}: '{event.server}' is a spot server, its trace says it")
        for server, name in enumerate(names):
            own = [event.change for event in changes.events if event.server == name]
            plans["first"][server], plans["count"][server] = rows.add(sorted(own, key=_time))
    if spot is not None and spot.trace is not None:
        trace = spot.read_trace()
        width = max(1, int(trace.available.max()))
        of_place = [trace.changes(place, spot.notice) for place in range(width)]
        ranges = [rows.add(own) for own in of_place]
        for number, server in enumerate(of_spot):
            plan, place = plans[server], number % width
            plan["failure_shape"], plan["period"] = 0.0, trace.period
            plan["first"], plan["count"] = ranges[place]
            plan["group"] = number // width
            absent[server] = not (trace.available > place).any()
    return plans, rows.array(), absent


def _time(change: Change) -> float:
    return change[0]


class _Rows:
    """PLANNED_CHANGE records that are put together."""

    def __init__(self) -> None:
        self._rows: list[Change] = []

    def add(self, changes: Iterable[Change]) -> tuple[int, int]:
        """The range of records that some changes get: its first and how many."""
        first = len(self._rows)
        self._rows += changes
        return first, len(self._rows) - first

    def array(self) -> np.ndarray:
        """All records."""
        return np.array(self._rows, PLANNED_CHANGE)
