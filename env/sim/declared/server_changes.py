"""How servers change by themselves, and what becomes then of functions and of data.

The config groups `changes` (a list, or at random), `recovery`, and `spot` of `lease`.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from env.base.errors import InputError, located
from env.base.files import parse_json, read_bytes
from env.base.schema import Recorded, Strict, nearest, validated
from env.sim.declared.bounds import LONGEST, Seconds
from env.sim.declared.hardware import ClusterConfig
from env.sim.state.change_records import DRAIN, JOIN, LEAVE, PLANNED_CHANGE, RECOVERY, SERVER_PLAN
from env.sim.state.records import INF, NONE

PROJECT = Path(__file__).resolve().parents[3]
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


def _absolute(path: str) -> str:
    """As an absolute path: from the working directory, or else from the project's folder."""
    given = Path(path).expanduser().absolute()
    return str(given if given.exists() or not (PROJECT / path).exists() else PROJECT / path)


class Spot(Strict):
    """Which servers are of the spot market (conf/lease/spot.yaml explains each)."""

    trace: Annotated[str, Field(min_length=1), AfterValidator(_absolute)] | None = None
    share: Annotated[float, Field(ge=0, le=1)]
    price: Annotated[float, Field(gt=0, le=1)]
    notice: Seconds

    def servers(self, cluster: ClusterConfig) -> np.ndarray:
        """Which servers of a cluster are spot servers: bool (S,)."""
        kinds = [(kind.count, round(self.share * kind.count)) for kind in cluster.server_types]
        return np.concatenate([np.arange(count) >= count - spot for count, spot in kinds])


class _Metadata(Recorded):
    gap_seconds: Annotated[float, Field(gt=0, le=LONGEST, strict=False)]


class SpotTrace(Recorded):
    """A file of skypilot-org/spot-traces: instances that are available, one entry a gap."""

    metadata: _Metadata
    data: Annotated[list[Annotated[int, Field(ge=0, le=10**6)]], Field(min_length=1)]

    @property
    def width(self) -> int:
        """The most instances that are available, at least 1."""
        return max(1, *self.data)

    @property
    def period(self) -> float:
        """Seconds after which it begins again."""
        return self.metadata.gap_seconds * len(self.data)

    def changes(self, place: int, notice: float) -> list[tuple[float, int, float]]:
        """(time, action, seconds of notice) of the instance that is there above `place` others.

        It is told `notice` seconds before it is taken. What is there no longer than that never
        takes anything, so it is left out.
        """
        there, gap = np.array(self.data) > place, self.metadata.gap_seconds
        before, changes = np.roll(there, 1), []
        ends = np.flatnonzero(before & ~there)
        for begin in np.flatnonzero(there & ~before).tolist():
            end = int(ends[np.searchsorted(ends, begin) % len(ends)])
            seconds = (end - begin) % len(there) * gap
            if seconds > notice:
                changes.append((begin * gap, JOIN, 0.0))
                changes.append(((begin * gap + seconds - notice) % self.period, DRAIN, notice))
        return changes


@lru_cache(maxsize=16)
def read_trace(path: str) -> SpotTrace:
    """What a file says.

    Raises:
        InputError: one line with the file and what is wrong with it.
    """
    with located("lease.spot.trace"):
        return validated(SpotTrace, parse_json(read_bytes(Path(path)), path), path)


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


class BackOff(Strict):
    """How long functions wait before each retry (conf/recovery/default.yaml explains each)."""

    wait: Annotated[float, Field(ge=0, le=LONGEST)] = 0.0
    factor: Annotated[float, Field(ge=1, le=100)] = 1.0
    jitter: Annotated[float, Field(ge=0, lt=1)] = 0.0

    def least(self, attempt: int) -> float:
        """The least seconds before retry `attempt`, 1 being the first."""
        return min(LONGEST, self.wait * self.factor ** (attempt - 1) * (1 - self.jitter))


class Recovery(Strict):
    """What becomes of killed functions and of lost data (conf/recovery/default.yaml explains)."""

    retries: Annotated[int, Field(ge=0, le=10**6)] | None = None
    backoff: BackOff = BackOff()
    data_durability: Literal["durable", "server"] = "durable"
    checkpoint: Annotated[float, Field(ge=1e-3, le=LONGEST)] | None = None

    def record(self) -> np.ndarray:
        """RECOVERY (1,)."""
        record = np.zeros(1, RECOVERY)
        record["limit"] = NONE if self.retries is None else self.retries
        for key in BackOff.model_fields:
            record[key] = getattr(self.backoff, key)
        record["data_lost"] = self.data_durability == "server"
        record["checkpoint"] = INF if self.checkpoint is None else self.checkpoint
        return record
