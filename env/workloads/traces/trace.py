"""A trace: requests of single functions over time, and profiles of the functions.

`Recording` is the common form every trace is read into. It states either counts a minute and
percentiles of durations, or every single invocation. What it does not state stays open here;
`profiles` fills it in.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from env.base.errors import InputError
from env.sim.declared.bounds import LARGEST_WORK
from env.sim.declared.workflow_template import WorkflowTemplate

SAMPLE_KEY, REQUESTS_KEY, ANNOTATION_KEY = 0, 1, 2
"""First word of every spawn key: draws from one seed are independent by it."""
NO_EDGES = np.zeros(0, np.int64)

SECONDS_PER_MINUTE = 60
QUANTILES = np.array([0, 0.01, 0.25, 0.50, 0.75, 0.99, 1])
"""Points of a duration's inverse distribution function, as the Azure trace of 2019 has them."""

# One request; `duration` is the draw of this request, which no scheduler may look at.
REQUEST = np.dtype(
    [
        ("time", np.float64),  # seconds, of its arrival
        ("function", np.int64),  # index into the profiles
        ("duration", np.float64),  # seconds of execution at full speed
    ]
)


@dataclass(frozen=True, eq=False)
class FunctionProfiles:
    """What schedulers may know of J functions of one thread before they run. Entry j is function j.

    Attributes:
        names: what reports call them.
        execution: float64 (J,), E(j): mean seconds of execution at full speed, above 0.
        cold_start: float64 (J,), D(j): seconds to start a container of its image, at least 0.
        memory: int64 (J,), R(j): MB of a container, at least 1.
    """

    names: tuple[str, ...]
    execution: np.ndarray
    cold_start: np.ndarray
    memory: np.ndarray

    def operations(self, function: np.ndarray, seconds: np.ndarray, core_speed: int) -> np.ndarray:
        """int64 (K,), work of executions of some functions that take some time at full speed.

        Raises:
            InputError: it is more than can be counted.
        """
        work = np.maximum(1, np.rint(seconds * core_speed))
        if len(work) and work.max() > LARGEST_WORK:
            name = self.names[function[np.argmax(work)]]
            raise InputError(
                f"trace: a request of '{name}' is {work.max():g} operations, "
                f"at most {LARGEST_WORK:g} are possible"
            )
        return work.astype(np.int64)

    def templates(self, core_speed: int) -> tuple[WorkflowTemplate, ...]:
        """Each function as a workflow of it alone, which takes its mean execution."""
        work = self.operations(np.arange(len(self.names)), self.execution, core_speed)
        return tuple(
            WorkflowTemplate(
                name,
                work[[j]],
                self.memory[[j]],
                np.ones(1, np.int64),
                NO_EDGES,
                NO_EDGES,
                function_names=(name,),
                images=(j,),
            )
            for j, name in enumerate(self.names)
        )


@dataclass(frozen=True, eq=False)
class MinuteCounts:
    """Counts a minute; what they leave open is drawn.

    - Arrivals are uniform in their minute, independent of each other.
    - A duration is the inverse distribution function at a uniform number; between the stated
      quantiles its logarithm is linear. Its mean is 1.07 and 1.10 times the measured one over all
      requests of two excerpts of 2019 (with straight lines between the quantiles 1.15 and 1.20).

    Attributes:
        counts: whole numbers (M, F); 32 bits are enough, a day of 50,000 functions is 300 MB.
        durations: float64 (F, 7), seconds at `QUANTILES`, above 0, ascending.
    """

    counts: np.ndarray
    durations: np.ndarray

    @property
    def minutes(self) -> int:
        """M."""
        return len(self.counts)

    @property
    def mean_duration(self) -> np.ndarray:
        """Seconds, float64 (F,): the integral of the inverse distribution function."""
        low, high = self.durations[:, :-1], self.durations[:, 1:]
        growth = np.log(high / low)
        # The mean of low * exp(growth * u) over u in [0, 1]; expm1 holds for small growth as well.
        means = np.where(growth > 0, low * np.expm1(growth) / np.where(growth > 0, growth, 1), low)
        return means @ np.diff(QUANTILES)

    def count(self, first: int, last: int) -> np.ndarray:
        """Invocations of every function from minute `first` up to `last`, int64 (F,)."""
        return self.counts[first:last].sum(axis=0)

    def select(self, functions: np.ndarray) -> "MinuteCounts":
        """The same for some functions, in the order of their positions `functions`."""
        return MinuteCounts(self.counts[:, functions], self.durations[functions])

    def minute(self, number: int, rng: np.random.Generator) -> np.ndarray:
        """Requests of one minute, `REQUEST`, ascending; time 0 is the begin of minute 0."""
        counts = self.counts[number]
        times = rng.random(counts.sum())
        uniform = rng.random(len(times))
        requests = np.empty(len(times), REQUEST)
        requests["function"] = np.repeat(np.arange(len(counts)), counts)
        requests["time"] = (number + times) * SECONDS_PER_MINUTE
        segment = np.searchsorted(QUANTILES, uniform, side="right") - 1
        share = (uniform - QUANTILES[segment]) / np.diff(QUANTILES)[segment]
        low, high = (self.durations[requests["function"], segment + end] for end in (0, 1))
        requests["duration"] = low * (high / low) ** share
        return requests[np.argsort(requests["time"], kind="stable")]


@dataclass(frozen=True, eq=False)
class SingleInvocations:
    """Every invocation as it was measured; nothing is drawn.

    Attributes:
        requests: `REQUEST` (N,), ascending in time.
        functions: F.
        minutes: M.
    """

    requests: np.ndarray
    functions: int
    minutes: int

    @property
    def mean_duration(self) -> np.ndarray:
        """Seconds, float64 (F,): mean of what was measured."""
        sums = np.bincount(self.requests["function"], self.requests["duration"], self.functions)
        return sums / np.bincount(self.requests["function"], minlength=self.functions)

    def count(self, first: int, last: int) -> np.ndarray:
        """As of `MinuteCounts`."""
        return np.bincount(self._between(first, last)["function"], minlength=self.functions)

    def select(self, functions: np.ndarray) -> "SingleInvocations":
        """As of `MinuteCounts`."""
        position = np.full(self.functions, -1)
        position[functions] = np.arange(len(functions))
        requests = self.requests[position[self.requests["function"]] >= 0]
        requests["function"] = position[requests["function"]]
        return SingleInvocations(requests, len(functions), self.minutes)

    def minute(self, number: int, rng: np.random.Generator) -> np.ndarray:
        """As of `MinuteCounts`; nothing is drawn."""
        return self._between(number, number + 1)

    def _between(self, first: int, last: int) -> np.ndarray:
        bounds = np.array([first, last]) * SECONDS_PER_MINUTE
        begin, end = np.searchsorted(self.requests["time"], bounds)
        return self.requests[begin:end]


Invocations = MinuteCounts | SingleInvocations
"""Of F functions over M whole minutes."""


@dataclass(frozen=True, eq=False)
class Recording:
    """A trace as its source describes it.

    Attributes:
        source: what errors and reports call it.
        names: F names.
        memory: MB, float64 (F,); not a number where it was not measured.
        invocations: of the F functions, each of them at least once.
        counts: what was left out or assumed, and how often.
        groups: what the source says the functions belong to, F names each: `owner`, `app`.
    """

    source: str
    names: tuple[str, ...]
    memory: np.ndarray
    invocations: Invocations
    counts: Mapping[str, int] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def select(self, functions: np.ndarray) -> "Recording":
        """The same for some functions, in the order of their positions `functions`."""
        return replace(
            self,
            names=tuple(self.names[position] for position in functions),
            memory=self.memory[functions],
            invocations=self.invocations.select(functions),
            groups={
                kind: tuple(names[position] for position in functions)
                for kind, names in self.groups.items()
            },
        )
