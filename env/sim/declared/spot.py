"""Servers leased on the spot market: cheaper, and taken back as a trace says."""

from functools import lru_cache
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import AfterValidator, Field

from env.base.errors import located
from env.base.files import parse_json, read_bytes
from env.base.schema import Recorded, Strict, validated
from env.sim.declared.bounds import LONGEST, Seconds
from env.sim.declared.hardware import ClusterConfig
from env.sim.state.change_records import DRAIN, JOIN

PROJECT = Path(__file__).resolve().parents[3]


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
