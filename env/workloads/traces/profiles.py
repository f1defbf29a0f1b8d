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
from env.workloads.traces.trace import ANNOTATION_KEY, FunctionProfiles
from env.workloads.traces.trace_recording import Recording

MS_PER_SECOND = 1_000
COLD_START_TABLE = Path(__file__).with_name("cold_start.csv")

Runtime = Literal["python", "nodejs", "java", "dotnet", "ruby", "go"]
RUNTIMES: tuple[Runtime, ...] = get_args(Runtime)

Megabytes = Annotated[float, Field(ge=1, le=1e9)]
Factor = Annotated[float, Field(gt=0, le=1e6)]


class LogNormal(Strict):
    """A log-normal distribution.

    Attributes:
        median: in the unit of what is drawn.
        sigma: standard deviation of the natural logarithm.
    """

    median: float = Field(gt=0, le=1e9)
    sigma: float = Field(ge=0, le=20)

    def draw(self, rng: np.random.Generator) -> float:
        """One number."""
        return self.median * math.exp(self.sigma * rng.standard_normal())


class ProfileRules(Strict):
    """Numbers of the rules that `annotate_functions` applies.

    Attributes:
        min_duration: seconds, shorter executions are raised to it.
        min_memory: MB, smaller containers are raised to it.
        max_memory: MB, larger containers are cut to it.
        missing_memory: MB, drawn where no memory was measured.
        memory_factor: [low, high], a container's memory over what its functions were measured to
            use, log-uniform.
        runtime_shares: weights, a function's runtime is drawn by.
        cold_start_factor: [low, high], what a function's cold start is to that of a hello-world in
            its runtime, log-uniform.
    """

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
            raise ValueError(
                f"min_memory is {self.min_memory}, allowed: at most max_memory, {self.max_memory}"
            )
        if not sum(self.runtime_shares.values()) > 0:
            raise ValueError("runtime_shares are all 0, one above 0 is needed")
        return self


def annotate_functions(
    recording: Recording, rules: ProfileRules, seed: int
) -> tuple[FunctionProfiles, Counter[str]]:
    """Fills in what the trace leaves open.

    - Execution E(j): the mean of the durations that requests of j are given.
    - Memory R(j): as recorded, else drawn, times a factor drawn from `memory_factor`; rounded up to
      whole MB, at least `min_memory` and at most `max_memory`.
    - Cold start D(j): a runtime drawn by `runtime_shares`, the median of a hello-world in it at the
      measured memory size nearest to R(j) (see cold_start.csv), times a factor drawn from
      `cold_start_factor`.
    - Parallelism: 1, for no trace says that a request keeps more than one core busy.

    Every function has a stream of its own, which depends on the seed and its name alone: a
    function is the same in every sample.

    Args:
        recording: F functions.
        rules: numbers of the rules.
        seed: of the draws.

    Returns:
        The profiles, and how often each rule had to decide.
    """
    counts: Counter[str] = Counter()
    memory = np.empty(len(recording.names), np.int64)
    cold_start = np.empty(len(recording.names))
    shares = np.array([rules.runtime_shares.get(runtime, 0.0) for runtime in RUNTIMES])
    shares /= shares.sum()
    for j, (name, measured) in enumerate(zip(recording.names, recording.memory, strict=True)):
        stream = np.random.SeedSequence(seed, spawn_key=(ANNOTATION_KEY, zlib.crc32(name.encode())))
        rng = np.random.default_rng(stream)
        # All are drawn for every function, so that none shifts the others.
        drawn = rules.missing_memory.draw(rng)
        runtime = RUNTIMES[rng.choice(len(RUNTIMES), p=shares)]
        factor = _log_uniform(rng, rules.cold_start_factor)
        given_over_used = _log_uniform(rng, rules.memory_factor)
        if math.isnan(measured):
            counts["memory drawn"] += 1
        amount = given_over_used * (drawn if math.isnan(measured) else measured)
        if amount < rules.min_memory:
            counts["memory raised to min_memory"] += 1
        if amount > rules.max_memory:
            counts["memory cut to max_memory"] += 1
        memory[j] = math.ceil(min(max(amount, rules.min_memory), rules.max_memory))
        cold_start[j] = factor * hello_world_cold_start(runtime, float(memory[j]))
    profiles = FunctionProfiles(
        names=recording.names,
        execution=recording.invocations.mean_duration,
        cold_start=cold_start,
        memory=memory,
        parallelism=np.ones(len(recording.names), np.int64),
    )
    return profiles, counts


def _log_uniform(rng: np.random.Generator, bounds: tuple[float, float]) -> float:
    """Within its bounds, which the exponential of a logarithm may miss by a digit."""
    drawn = math.exp(rng.uniform(*np.log(bounds)))
    return min(max(drawn, bounds[0]), bounds[1])


def largest_memory(recording: Recording, rules: ProfileRules) -> np.ndarray:
    """The most memory that `annotate_functions` may give to each function, whatever the seed.

    What is drawn for a function without a measured memory has no bound but `max_memory`.

    Args:
        recording: F functions.
        rules: numbers of the rules.

    Returns:
        MB, int64 (F,).
    """
    amount = np.nan_to_num(rules.memory_factor[1] * recording.memory, nan=rules.max_memory)
    return np.ceil(np.clip(amount, rules.min_memory, rules.max_memory)).astype(np.int64)


def hello_world_cold_start(runtime: Runtime, memory: float) -> float:
    """Seconds, median of the measured cold starts at the memory size (MB) nearest to `memory`."""
    sizes = _cold_starts()[runtime]
    return sizes[min(sizes, key=lambda size: abs(size - memory))]


@cache
def _cold_starts() -> dict[str, dict[int, float]]:
    """Runtime to memory size (MB) to seconds."""
    table: dict[str, dict[int, float]] = {}
    with COLD_START_TABLE.open(newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            sizes = table.setdefault(row["runtime"], {})
            sizes[int(row["memory_mb"])] = float(row["p50_ms"]) / MS_PER_SECOND
    return table
