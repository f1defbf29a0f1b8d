"""Which part of a trace is played: functions, a window of time, a share of the requests.

The samples are those of FuncSched (Journal of Computer Research and Development 60(9), 2023), which
takes them from FaasCache (ASPLOS 2021).
"""

from collections.abc import Iterator
from typing import Literal

import numpy as np
from pydantic import Field

from env.base.errors import InputError
from env.base.schema import Strict
from env.workloads.traces.trace import REQUESTS_KEY
from env.workloads.traces.trace_recording import SECONDS_PER_MINUTE, Invocations

SampleKind = Literal["representative", "rare", "random"]
QUARTILES = 4


class Sampling(Strict):
    """Config group `workload/sampling`.

    Attributes:
        kind: `representative`, equal parts from the four quartiles of invocation frequency;
            `rare`, the least invoked; `random`, any. The frequency is that of the whole trace.
        functions: how many; all there are, if fewer.
        start: minutes from the begin of the trace to that of the window.
        minutes: length of the window in the simulation.
        history: minutes of the trace before the window that a policy may learn from; null: all.
        ratio: share of the requests that is kept. Every request is kept or dropped by a number of
            its own, so those of a smaller ratio are among those of a larger one.
        compression: minutes of the trace that pass in one of the simulation. A sample of rare
            functions loads a cluster only when their requests are moved together.
    """

    kind: SampleKind
    functions: int = Field(ge=1, le=10_000_000)
    start: int = Field(ge=0, le=10_000_000)
    minutes: int = Field(ge=1, le=10_000_000)
    history: int | None = Field(ge=0, le=10_000_000)
    ratio: float = Field(gt=0, le=1)
    compression: int = Field(ge=1, le=10_000)

    @property
    def end(self) -> int:
        """Minutes from the begin of the trace to the end of the window."""
        return self.start + self.minutes * self.compression

    @property
    def history_start(self) -> int:
        """Minutes from the begin of the trace to that of the history."""
        return 0 if self.history is None else max(0, self.start - self.history)

    def check_window(self, source: str, minutes: int) -> None:
        """Refuses a window that ends after the `minutes` of a trace, with an `InputError`."""
        if self.end > minutes:
            raise InputError(
                f"workload.sampling: with start {self.start}, compression {self.compression} and "
                f"minutes {self.minutes} the window is minutes {self.start} to {self.end} of the "
                f"trace, {source} has {minutes}"
            )


def choose_functions(
    invocations: np.ndarray, kind: SampleKind, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Positions of the sampled functions, ascending; all of them, where there are not more.

    Functions are ranked by invocations, equal ones in a drawn order; the quartiles are quarters of
    that ranking. What does not divide by four goes to the rarer quartiles.

    Args:
        invocations: int64 (F,), how often each function is invoked.
        kind: of the sample.
        count: functions to choose.
        rng: for everything drawn.
    """
    everyone = len(invocations)
    if count >= everyone:
        return np.arange(everyone)
    shuffled = rng.permutation(everyone)
    ranking = shuffled[np.argsort(invocations[shuffled], kind="stable")]
    if kind == "rare":
        chosen = ranking[:count]
    elif kind == "random":
        chosen = rng.choice(everyone, count, replace=False)
    else:
        parts = np.array_split(np.arange(count), QUARTILES)
        chosen = np.concatenate(
            [
                rng.choice(quartile, len(part), replace=False)
                for quartile, part in zip(np.array_split(ranking, QUARTILES), parts, strict=True)
            ]
        )
    return np.sort(chosen)


def play(
    invocations: Invocations, sampling: Sampling, first: int, last: int, seed: int
) -> Iterator[np.ndarray]:
    """Requests of the minutes from `first` up to `last` of a trace, made a minute at a time.

    Every minute has a stream of its own, which depends on the seed and its number alone: a request
    is the same in whichever window it lies.

    Args:
        invocations: of the sampled functions.
        sampling: gives ratio, compression, and the begin of the window, which is time 0.
        first: minute of the trace.
        last: minute of the trace behind the last one.
        seed: of what is drawn.

    Yields:
        `REQUEST` arrays, ascending in time; before the window time is negative.
    """
    for number in range(first, last):
        stream = np.random.SeedSequence(seed, spawn_key=(REQUESTS_KEY, number))
        rng = np.random.default_rng(stream)
        requests = invocations.minute(number, rng)
        requests = requests[rng.random(len(requests)) < sampling.ratio]
        requests["time"] -= sampling.start * SECONDS_PER_MINUTE
        requests["time"] /= sampling.compression
        if len(requests):
            yield requests
