"""Keep-alive policies: how long a finished container stays warm. Config group `keep_alive`.

Here are their parameters; `env/sim/node/keep_alive.py` is what they do.
"""

from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from env.base.schema import Strict
from env.sim.declared.bounds import LARGEST_WHOLE, LONGEST
from env.sim.node import keep_alive
from env.sim.state.records import INF

Seconds = Annotated[float, Field(ge=1e-6, le=LONGEST)]  # less is lost beside late times
Percentile = Annotated[float, Field(ge=0, le=100)]
Share = Annotated[float, Field(ge=0, lt=1)]
Lags = Annotated[int, Field(ge=0, le=5)]
Differences = Annotated[int, Field(ge=0, le=2)]


class _Forgetful(Strict):
    """A policy to which it does not matter how long containers were idle before."""

    number: ClassVar[int]  # in env/sim/node/keep_alive.py

    @property
    def history(self) -> tuple[int, int]:
        """As of `HybridHistogram`: nothing is remembered."""
        return 0, 0

    def write(self, options: np.void) -> None:
        """Fills in the options of the engine: what stays warm does so without end."""
        options["keep_alive"], options["keep_seconds"] = self.number, INF


class NoKeepAlive(_Forgetful):
    """A container ends with its function: every start is cold."""

    policy: Literal["none"] = "none"
    number = keep_alive.NO_KEEP_ALIVE


class Fixed(_Forgetful):
    """A container stays for a fixed time; the least recently used one makes room before that.

    Attributes:
        keep: seconds.
    """

    policy: Literal["fixed"] = "fixed"
    keep: Seconds
    number = keep_alive.FIXED

    def write(self, options: np.void) -> None:
        """Fills in the options of the engine."""
        super().write(options)
        options["keep_seconds"] = self.keep


class Lru(_Forgetful):
    """A container stays until the memory is needed; the least recently used one goes first."""

    policy: Literal["lru"] = "lru"
    number = keep_alive.LRU


class FaasCache(_Forgetful):
    """A container stays until the memory is needed; the one of least value goes first.

    Value = clock + frequency * cold start / size (Greedy-Dual-Size-Frequency). The clock is that of
    the node when the container became idle and rises to the value of each one that goes; the
    frequency counts the runs of its image, from 0 again once no container of it is left. Fuerst and
    Sharma, "FaasCache", ASPLOS 2021, section 4.
    """

    policy: Literal["faascache"] = "faascache"
    number = keep_alive.FAASCACHE


class _Remembering(Strict):
    """A policy that learns from idle times.

    They are from the end of a request to the arrival of the next while none other of the image
    waits or runs, counted in a histogram of each image.

    Attributes:
        bin: seconds of idle time that a bin of the histogram spans.
        bins: of the histogram.
        least_idle_times: fewer say nothing.
        fixed_keep: seconds that containers stay where the histogram says nothing.
    """

    number: ClassVar[int]  # in env/sim/node/keep_alive.py
    bin: Seconds
    bins: Annotated[int, Field(ge=1, le=100_000)]
    least_idle_times: Annotated[int, Field(ge=1, le=LARGEST_WHOLE)]
    fixed_keep: Seconds

    @property
    def history(self) -> tuple[int, int]:
        """Bins of the histogram, and idle times remembered for forecasts."""
        return self.bins, 1

    def write(self, options: np.void) -> None:
        """Fills in the options of the engine."""
        options["keep_alive"], options["keep_seconds"] = self.number, self.fixed_keep
        for name in set(options.dtype.names or ()) & set(type(self).model_fields):
            options[name] = getattr(self, name)


class EcoLife(_Remembering):
    """A container stays as long as is worth its carbon, by the idle times of its image.

    Of all multiples of `bin` the period of the least cost is taken; with g the intensity at its end
    over the mean of the first region:
    cost = cold * (time_weight + (1 - time_weight) * g) + (1 - time_weight) * g * held. `cold` is
    the share of idle times that are longer, times that of a cold start in cold start and execution;
    `held` the mean time that containers stay, over the longest period. Jiang et al., "EcoLife", SC
    2024, equation 5, of one generation of hardware. When memory is short, the least recently used
    one goes first.

    Attributes:
        time_weight: of the time of a service, against that of its carbon.
    """

    policy: Literal["ecolife"] = "ecolife"
    number = keep_alive.ECOLIFE
    time_weight: Annotated[float, Field(ge=0, le=1)]


class HybridHistogram(_Remembering):
    """A container goes when its image falls idle and one is started before the next request.

    A container is started at the lower percentile of its histogram after the last end and kept
    until its upper one. Where most idle times lie beyond it, ARIMA forecasts the next. Shahrad et
    al., "Serverless in the Wild", USENIX ATC 2020, section 4.2. When memory is short, the least
    recently used one goes first; a container is started ahead only in free memory.

    Attributes:
        prewarm_percentile: of the idle times; its bin's lower edge is when to start a container.
        keep_percentile: its bin's upper edge is until when to keep one.
        margin: share by which these edges are moved outwards.
        least_variation: coefficient of variation of the bin counts; a flatter histogram says
            nothing.
        most_out_of_bounds: share of idle times beyond the histogram from which on ARIMA forecasts.
        forecast_margin: share of the forecast by which a container is started before it and kept
            after it.
        forecast_from: idle times, the last ones, that ARIMA is fitted to.
        forecast_order: (p, d, q) of ARIMA.
    """

    policy: Literal["hybrid_histogram"] = "hybrid_histogram"
    number = keep_alive.HYBRID_HISTOGRAM
    prewarm_percentile: Percentile
    keep_percentile: Percentile
    margin: Share
    least_variation: Annotated[float, Field(ge=0, le=1e6)]
    most_out_of_bounds: Share
    forecast_margin: Share
    forecast_from: Annotated[int, Field(ge=2, le=10_000)]
    forecast_order: tuple[Lags, Differences, Lags]

    @model_validator(mode="after")
    def _percentiles_ascend(self) -> Self:
        if self.prewarm_percentile > self.keep_percentile:
            raise ValueError(
                f"prewarm_percentile is {self.prewarm_percentile}, "
                f"at most keep_percentile, {self.keep_percentile}, is allowed"
            )
        return self

    @property
    def history(self) -> tuple[int, int]:
        """Bins of the histogram, and idle times remembered for forecasts."""
        return self.bins, self.forecast_from


KeepAlivePolicy = Annotated[
    NoKeepAlive | Fixed | Lru | FaasCache | EcoLife | HybridHistogram, Field(discriminator="policy")
]
