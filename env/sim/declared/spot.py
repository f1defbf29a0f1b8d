"""Servers leased on the spot market: cheaper, and taken back as a trace says."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import AfterValidator, Field

from env.base.errors import located
from env.base.files import parse_json, read_bytes
from env.base.schema import Recorded, Strict, validated
from env.sim.declared.bounds import LONGEST, Seconds
from env.sim.declared.hardware import ClusterConfig
from env.sim.state.change_records import DRAIN, JOIN

PROJECT = Path(__file__).resolve().parents[3]


def _found(path: str) -> str:
    """As an absolute path: from the working directory, or else from the project's folder."""
    given = Path(path).expanduser().absolute()
    return str(given if given.exists() or not (PROJECT / path).exists() else PROJECT / path)


class _Metadata(Recorded):
    gap_seconds: Annotated[float, Field(gt=0, le=LONGEST, strict=False)]


class _TraceFile(Recorded):
    """A file of skypilot-org/spot-traces: instances that are available, one entry a gap."""

    metadata: _Metadata
    data: Annotated[list[Annotated[int, Field(ge=0, le=10**6)]], Field(min_length=1)]


class SpotTrace(NamedTuple):
    """How many instances are available over time.

    Attributes:
        gap: seconds between two entries.
        available: (T,) instances.
    """

    gap: float
    available: np.ndarray

    @property
    def period(self) -> float:
        """Seconds after which it begins again."""
        return self.gap * len(self.available)

    def changes(self, place: int, notice: float) -> list[tuple[float, int, float]]:
        """(time, action, seconds of notice) of the instance that is there above `place` others.

        It is told `notice` seconds before it is taken, or when it comes if that is later.
        """
        return sorted(self._changes(place, notice), key=lambda change: change[0])

    def _changes(self, place: int, notice: float) -> Iterator[tuple[float, int, float]]:
        there, count = self.available > place, len(self.available)
        before = np.roll(there, 1)
        begins, ends = np.flatnonzero(there & ~before), np.flatnonzero(before & ~there)
        for begin in begins.tolist():
            end = int(ends[np.searchsorted(ends, begin) % len(ends)])
            seconds = (end - begin) % count * self.gap
            told = min(notice, seconds)
            yield begin * self.gap, JOIN, 0.0
            yield (begin * self.gap + seconds - told) % self.period, DRAIN, told


class Spot(Strict):
    """Part of config group `lease`: which servers are of the spot market.

    Attributes:
        trace: file of the format of skypilot-org/spot-traces, plain or .gz; None: they stay.
        share: of the servers of each type, the last ones; rounded.
        price: of what they cost otherwise.
        notice: seconds from when it is known that one is taken until it is.
    """

    trace: Annotated[str, Field(min_length=1), AfterValidator(_found)] | None = None
    share: Annotated[float, Field(ge=0, le=1)]
    price: Annotated[float, Field(gt=0, le=1)]
    notice: Seconds

    def servers(self, cluster: ClusterConfig) -> np.ndarray:
        """Which servers of a cluster are spot servers: bool (S,)."""
        each = (
            np.arange(kind.count) >= kind.count - round(self.share * kind.count)
            for kind in cluster.server_types
        )
        return np.concatenate(list(each))

    def read_trace(self) -> SpotTrace:
        """What its file says.

        Raises:
            InputError: one line with the file and what is wrong with it.
        """
        return _read(str(self.trace))


@lru_cache(maxsize=16)
def _read(path: str) -> SpotTrace:
    with located("lease.spot.trace"):
        file = validated(_TraceFile, parse_json(read_bytes(Path(path)), path), path)
    return SpotTrace(file.metadata.gap_seconds, np.array(file.data))
