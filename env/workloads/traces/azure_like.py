"""A made-up trace with the marginals of Azure's, for machines that do not have the data.

Rates, durations and the share of timers follow a sampled day of 2019; conf/workload/azure_like.yaml
has the numbers and where they are from.
"""

from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from env.base.schema import ASCENDING, Strict
from env.workloads.traces.profiles import LogNormal
from env.workloads.traces.trace_recording import MinuteCounts, Recording

MINUTES_PER_DAY = 1_440

Ratio = Annotated[float, Field(ge=0, le=1e6)]


class AzureLike(Strict):
    """A made-up trace; conf/workload/azure_like.yaml explains each number.

    A timer is invoked at even intervals; the invocations of other functions are a Poisson process.
    """

    kind: Literal["azure_like"]
    seed: int = Field(ge=0)
    functions: int = Field(ge=1, le=1_000_000)
    minutes: int = Field(ge=1, le=1_000_000)
    daily_invocations: LogNormal
    most_daily_invocations: float = Field(gt=0, le=1e10)
    timers: float = Field(ge=0, le=1)
    median_duration: LogNormal
    duration_spread: Annotated[tuple[Ratio, Ratio, Ratio, Ratio, Ratio, Ratio, Ratio], ASCENDING]
    longest_duration: float = Field(gt=0, le=1e6)

    @model_validator(mode="after")
    def _drawable(self) -> Self:
        if self.most_daily_invocations < self.daily_invocations.median:
            raise ValueError(
                f"most_daily_invocations is {self.most_daily_invocations}, at least the median of "
                f"daily_invocations, {self.daily_invocations.median}, is needed"
            )
        return self

    def read(self, min_duration: float) -> Recording:
        """The functions that are invoked at all.

        A timer goes off every whole number of minutes, or several times each minute, whichever is
        nearest to its rate. Memory is left open. Durations below `min_duration` seconds are raised
        to it.
        """
        counts = np.empty((self.minutes, self.functions), np.int64)
        medians = np.empty(self.functions)
        for function in range(self.functions):
            rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(function,)))
            rate = self.daily_invocations.draw(rng)
            while rate > self.most_daily_invocations:
                rate = self.daily_invocations.draw(rng)
            if rng.random() < self.timers:
                counts[:, function] = _timer(rate / MINUTES_PER_DAY, self.minutes, rng)
            else:
                counts[:, function] = rng.poisson(rate / MINUTES_PER_DAY, self.minutes)
            medians[function] = self.median_duration.draw(rng)
        durations = np.outer(medians, self.duration_spread)
        invoked = np.flatnonzero(counts.sum(axis=0))
        return Recording(
            source="azure_like",
            names=tuple(f"function_{number}" for number in invoked),
            memory=np.full(len(invoked), np.nan),
            invocations=MinuteCounts(
                counts=counts[:, invoked],
                durations=np.clip(durations[invoked], min_duration, self.longest_duration),
            ),
            counts={"functions never invoked, left out": self.functions - len(invoked)},
        )


def _timer(rate: float, minutes: int, rng: np.random.Generator) -> np.ndarray:
    """Invocations a minute of a timer with `rate` invocations a minute, int64 (minutes,)."""
    counts = np.zeros(minutes, np.int64)
    period = max(1, round(1 / rate))
    counts[int(rng.integers(period)) :: period] = max(1, round(rate))
    return counts
