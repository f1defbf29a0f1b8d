"""When workflows arrive: fixed times, Poisson, bursts, a daily cycle.

Every process draws from the generator it is given, and starts at time 0. The files
of conf/workload explain the numbers of each.
"""

import math
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from env.base.schema import ASCENDING, Strict, as_range
from env.sim.state.records import HOUR

LEAST_A_CYCLE = 1e-3
"""Arrivals in a calm spell and a burst; with fewer, drawing goes through spells without end."""
Gap = Annotated[float, Field(gt=0, le=1e9)]
Hour = Annotated[float, Field(ge=0, le=1e6)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Arrived = tuple[tuple[float, ...], int]
"""Seconds from the episode's begin, and its begin in whole hours of the carbon intensities."""


class FixedArrivals(Strict):
    """Arrivals at given times, the same in every episode."""

    kind: Literal["fixed"]
    times: Annotated[tuple[Annotated[float, Field(ge=0, le=1e9)], ...], Field(min_length=1)]

    @property
    def most(self) -> int:
        """The most workflows that an episode can have."""
        return len(self.times)

    def draw(self, rng: np.random.Generator) -> Arrived:
        """Nothing is drawn."""
        return self.times, 0


class RandomArrivals(Strict):
    """A random number of workflows."""

    workflows: Annotated[tuple[Count, Count], BeforeValidator(as_range), ASCENDING]

    @property
    def most(self) -> int:
        """The most workflows that an episode can have."""
        return self.workflows[1]

    def _count(self, rng: np.random.Generator) -> int:
        low, high = self.workflows
        return int(rng.integers(low, high, endpoint=True))


class PoissonArrivals(RandomArrivals):
    """Arrivals independent of each other at a constant rate."""

    kind: Literal["poisson"]
    mean_gap: Gap

    def draw(self, rng: np.random.Generator) -> Arrived:
        """At hour 0."""
        gaps = rng.exponential(self.mean_gap, self._count(rng))
        return tuple(np.cumsum(gaps).tolist()), 0


class BurstyArrivals(RandomArrivals):
    """Two-state Markov-modulated Poisson process: calm and burst take turns.

    The state an episode starts in is drawn from the long-run shares of the two.
    Fischer, Meier-Hellstern, Perf. Eval. 18 (1993), section 2.
    """

    kind: Literal["bursty"]
    calm_gap: Gap
    burst_gap: Gap
    calm_duration: Gap
    burst_duration: Gap

    @model_validator(mode="after")
    def _spells_last(self) -> Self:
        arrivals = self.calm_duration / self.calm_gap + self.burst_duration / self.burst_gap
        if arrivals < LEAST_A_CYCLE:
            spells = f"a calm spell and a burst have {arrivals:g} arrivals on average"
            raise ValueError(f"{spells}, at least {LEAST_A_CYCLE:g} are needed")
        return self

    def draw(self, rng: np.random.Generator) -> Arrived:
        """At hour 0."""
        count = self._count(rng)
        gaps = (self.calm_gap, self.burst_gap)
        durations = (self.calm_duration, self.burst_duration)
        state = int(rng.random() * sum(durations) >= self.calm_duration)
        time, state_end = 0.0, rng.exponential(durations[state])
        times: list[float] = []
        while len(times) < count:
            arrival = time + rng.exponential(gaps[state])
            if arrival < state_end:
                time = arrival
                times.append(time)
            else:
                # The exponential has no memory: the rest of the gap is drawn anew.
                time, state = state_end, 1 - state
                state_end = time + rng.exponential(durations[state])
        return tuple(times), 0


class DailyArrivals(RandomArrivals):
    """Poisson arrivals whose rate follows a cosine over 24 hours.

    rate(t) = (1 + amplitude * cos(2 pi (t - peak) / 24 h)) / mean_gap, drawn by thinning (Lewis and
    Shedler, Nav. Res. Logist. 26 (1979)).
    """

    kind: Literal["daily"]
    mean_gap: Gap
    amplitude: float = Field(ge=0, le=1)
    peak_hour: Annotated[float, Field(ge=0, le=24)]
    start_hour: Annotated[tuple[Hour, Hour], ASCENDING]

    def draw(self, rng: np.random.Generator) -> Arrived:
        """At an hour between those of `start_hour`."""
        count = self._count(rng)
        start_hour = rng.uniform(*self.start_hour)
        since_peak = (start_hour - self.peak_hour) * HOUR
        highest = 1 + self.amplitude
        time = 0.0
        times: list[float] = []
        while len(times) < count:
            time += rng.exponential(self.mean_gap / highest)
            phase = 2 * math.pi * (time + since_peak) / (24 * HOUR)
            if rng.random() * highest < 1 + self.amplitude * math.cos(phase):
                times.append(time)
        return tuple(times), int(start_hour)


Arrivals = Annotated[
    FixedArrivals | PoissonArrivals | BurstyArrivals | DailyArrivals, Field(discriminator="kind")
]
