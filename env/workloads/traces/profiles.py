"""Rules for what a trace does not state: from a `Recording` to `FunctionProfiles`.

The rules are here, their numbers in conf/workload/annotation and in cold_start.csv beside this
file.
"""

import csv
import math
import zlib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, Self, get_args

import numpy as np
from pydantic import Field, model_validator

from env.base.schema import ASCENDING, Strict
from env.workloads.traces.trace import ANNOTATION_KEY, FunctionProfiles, Recording

MS_PER_SECOND = 1_000
COLD_START_TABLE = Path(__file__).with_name("cold_start.csv")

Runtime = Literal["python", "nodejs", "java", "dotnet", "ruby", "go"]
RUNTIMES: tuple[Runtime, ...] = get_args(Runtime)

Megabytes = Annotated[float, Field(ge=1, le=1e9)]
Factor = Annotated[float, Field(gt=0, le=1e6)]


class LogNormal(Strict):
    """A log-normal distribution; sigma is the standard deviation of the natural logarithm."""

    median: float = Field(gt=0, le=1e9)
    sigma: float = Field(ge=0, le=20)

    def draw(self, rng: np.random.Generator) -> float:
        """One number."""
        return self.median * math.exp(self.sigma * rng.standard_normal())


class ProfileRules(Strict):
    """Numbers of `annotate_functions`; conf/workload/annotation explains each."""

    min_duration: float = Field(gt=0, le=1e6)
    min_memory: Megabytes
    max_memory: Megabytes
    missing_memory: LogNormal
    memory_factor: Annotated[tuple[Factor, Factor], ASCENDING]
    runtime_shares: dict[Runtime, Annotated[float, Field(ge=0, le=1e9)]]
    cold_start_factor: Annotated[tuple[Factor, Factor], ASCENDING]

    @model_validator(mode="after")
    def _usable(self) -> Self:
        if self.min_memory > self.max_memory:
            raise ValueError(f"min_memory {self.min_memory} is above max_memory {self.max_memory}")
        if not sum(self.runtime_shares.values()) > 0:
            raise ValueError("runtime_shares are all 0, one above 0 is needed")
        return self


def annotate_functions(
    recording: Recording, rules: ProfileRules, seed: int
) -> tuple[FunctionProfiles, Counter[str]]:
    """Fills in what the trace leaves open.

    - Execution E(j): the mean of the durations that requests of j are given.
    - Memory R(j): as recorded, else drawn, times `memory_factor`; whole MB within the bounds.
    - Cold start D(j): that of a hello-world in a drawn runtime at the measured memory size nearest
      to R(j) (see cold_start.csv), times `cold_start_factor`.
    - Parallelism: 1, for no trace says that a request keeps more than one core busy.

    The draws of a function depend on the seed and its name alone: it is the same in every sample.

    Returns:
        The profiles, and how often each rule had to decide.
    """
    shares = np.array([rules.runtime_shares.get(runtime, 0.0) for runtime in RUNTIMES])
    shares /= shares.sum()
    draws: list[float] = []
    for name in recording.names:
        stream = np.random.SeedSequence(seed, spawn_key=(ANNOTATION_KEY, zlib.crc32(name.encode())))
        rng = np.random.default_rng(stream)
        # All are drawn for every function, so that none shifts the others.
        draws += [rules.missing_memory.draw(rng), rng.choice(len(RUNTIMES), p=shares)]
        draws += [_log_uniform(rng, rules.cold_start_factor)]
        draws += [_log_uniform(rng, rules.memory_factor)]
    drawn_memory, runtimes, cold_factor, memory_factor = np.reshape(draws, (-1, 4)).T
    missing = np.isnan(recording.memory)
    amount = memory_factor * np.where(missing, drawn_memory, recording.memory)
    memory = _containers(amount, rules)
    hello_world = [
        hello_world_cold_start(RUNTIMES[int(runtime)], size)
        for runtime, size in zip(runtimes, memory.tolist(), strict=True)
    ]
    profiles = FunctionProfiles(
        names=recording.names,
        execution=recording.invocations.mean_duration,
        cold_start=cold_factor * hello_world,
        memory=memory,
    )
    counts = {
        "memory drawn": int(missing.sum()),
        "memory raised to min_memory": int((amount < rules.min_memory).sum()),
        "memory cut to max_memory": int((amount > rules.max_memory).sum()),
    }
    return profiles, +Counter(counts)


def _log_uniform(rng: np.random.Generator, bounds: tuple[float, float]) -> float:
    """Within its bounds, which the exponential of a logarithm may miss by a digit."""
    drawn = math.exp(rng.uniform(*np.log(bounds)))
    return min(max(drawn, bounds[0]), bounds[1])


def largest_memory(recording: Recording, rules: ProfileRules) -> np.ndarray:
    """MB, int64 (F,): the most memory that `annotate_functions` may give, with any seed.

    Where no memory was measured, the draw has no bound but `max_memory`.
    """
    amount = np.nan_to_num(rules.memory_factor[1] * recording.memory, nan=rules.max_memory)
    return _containers(amount, rules)


def _containers(memory: np.ndarray, rules: ProfileRules) -> np.ndarray:
    """Whole MB within the bounds, int64."""
    return np.ceil(np.clip(memory, rules.min_memory, rules.max_memory)).astype(np.int64)


@cache
def hello_world_cold_start(runtime: Runtime, memory: float) -> float:
    """Seconds, median of the measured cold starts at the memory size (MB) nearest to `memory`."""
    rows = [row for row in _cold_starts() if row["runtime"] == runtime]
    nearest = min(rows, key=lambda row: abs(int(row["memory_mb"]) - memory))
    return float(nearest["p50_ms"]) / MS_PER_SECOND


@cache
def _cold_starts() -> list[dict[str, str]]:
    lines = COLD_START_TABLE.read_text().splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))
