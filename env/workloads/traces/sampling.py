"""Which part of a trace is played: functions, a window of time, a share of the requests.

The samples are those of FuncSched (Journal of Computer Research and Development 60(9), 2023), which
takes them from FaasCache (ASPLOS 2021).
"""

from collections.abc import Iterator
from typing import Literal

import numpy as np
from pydantic import Field

from env.base.schema import Strict
from env.workloads.traces.trace import REQUESTS_KEY
from env.workloads.traces.trace_recording import SECONDS_PER_MINUTE, Invocations

SampleKind = Literal["representative", "rare", "random"]
QUARTILES = 4


class Sampling(Strict):
    """Which part of a trace is played; conf/workload/sampling/default.yaml explains each key.

    The frequency of invocation is that of the whole trace. The requests of a smaller ratio are
    among those of a larger one.
    """

    kind: SampleKind
    functions: int = Field(ge=1, le=10_000_000)
    start: int = Field(ge=0, le=10_000_000)
    minutes: int = Field(ge=1, le=10_000_000)
    history: int | None = Field(ge=0, le=10_000_000)
    ratio: float = Field(gt=0, le=1)
    compression: int = Field(ge=1, le=10_000)

    @property
    def length(self) -> int:
        """Minutes of the trace that the window takes."""
        return self.minutes * self.compression

    @property
    def end(self) -> int:
        """Minutes from the begin of the trace to the end of the window."""
        return self.start + self.length


def choose_functions(
    invocations: np.ndarray, kind: SampleKind, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Positions of the sampled functions, ascending; all of them, where there are not more.

    Functions are ranked by `invocations`, int64 (F,), equal ones in a drawn order; the quartiles
    are quarters of that ranking. What does not divide by four goes to the rarer quartiles.
    """
    everyone = len(invocations)
    if count >= everyone:
        return np.arange(everyone)
    shuffled = rng.permutation(everyone)
    ranking = shuffled[np.argsort(invocations[shuffled], kind="stable")]
    if kind == "rare":
        return np.sort(ranking[:count])
    if kind == "random":
        return np.sort(rng.choice(everyone, count, replace=False))
    quartiles = np.array_split(ranking, QUARTILES)
    counts = map(len, np.array_split(np.arange(count), QUARTILES))
    parts = [
        rng.choice(quartile, part, replace=False)
        for quartile, part in zip(quartiles, counts, strict=True)
    ]
    return np.sort(np.concatenate(parts))


def play(
    invocations: Invocations, sampling: Sampling, first: int, last: int, seed: int
) -> Iterator[np.ndarray]:
    """Requests of the minutes from `first` up to `last` of a trace, made a minute at a time.

    The draws of a minute depend on the seed and its number alone: a request is the same in every
    window. Time 0 is the begin of the window.

    Yields:
        `REQUEST` arrays, ascending in time; before the window time is negative.
    """
    for number in range(first, last):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(REQUESTS_KEY, number)))
        requests = invocations.minute(number, rng)
        requests = requests[rng.random(len(requests)) < sampling.ratio]
        requests["time"] -= sampling.start * SECONDS_PER_MINUTE
        requests["time"] /= sampling.compression
        if len(requests):
            yield requests
