"""A trace: requests of single functions over time, and what a profiler knows of the functions.

Loaders make it, `simulate` plays it. It may be endless: requests come in chunks.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from env.base.errors import InputError
from env.sim.bounds import LARGEST_MEMORY, LARGEST_WORK, LONGEST, MOST_CORES
from env.sim.queue_records import EARLIER
from env.sim.workflow_template import WorkflowTemplate

NO_EDGES = np.zeros(0, np.int64)

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
    """What is known of J functions before they run. Entry j of every array is function j.

    Attributes:
        names: what reports call them.
        execution: float64 (J,), E(j): mean seconds of execution at full speed, above 0.
        cold_start: float64 (J,), D(j): seconds to start a container of its image, at least 0.
        memory: int64 (J,), R(j): MB of a container, at least 1.
        parallelism: int64 (J,), threads of execution, at least 1.

    Raises:
        InputError: the arrays differ in length, are empty, or an entry is out of range.
    """

    names: tuple[str, ...]
    execution: np.ndarray
    cold_start: np.ndarray
    memory: np.ndarray
    parallelism: np.ndarray

    def __post_init__(self) -> None:
        if not self.names:
            raise InputError("function profiles: no functions, at least 1 is needed")
        self._check("execution", np.float64, np.nextafter(0.0, 1.0), LONGEST)
        self._check("cold_start", np.float64, 0.0, LONGEST)
        self._check("memory", np.int64, 1, LARGEST_MEMORY)
        self._check("parallelism", np.int64, 1, MOST_CORES)

    def operations(self, function: np.ndarray, seconds: np.ndarray, core_speed: int) -> np.ndarray:
        """int64 (K,), work of executions of some functions that take some time at full speed.

        Raises:
            InputError: it is more than can be counted.
        """
        work = np.maximum(1, np.rint(seconds * core_speed * self.parallelism[function]))
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
                self.parallelism[[j]],
                NO_EDGES,
                NO_EDGES,
                function_names=(name,),
                images=(j,),
            )
            for j, name in enumerate(self.names)
        )

    def _check(self, field: str, dtype: type, least: float, most: float) -> None:
        given = np.asarray(getattr(self, field))
        if given.shape != (len(self.names),):
            raise InputError(
                f"function profiles: {field} has shape {given.shape}, "
                f"there are {len(self.names)} names"
            )
        good = (given >= least) & (given <= most)
        if dtype is np.int64:
            good &= given == np.floor(given)
        if not good.all():
            whole = "a whole number" if dtype is np.int64 else "a number"
            lowest = f"at least {least}" if least >= 1 or least == 0 else "above 0"
            bad = int(np.flatnonzero(~good)[0])
            raise InputError(
                f"function profiles: {field} of '{self.names[bad]}' is {given[bad]}, "
                f"{whole} {lowest} and at most {most:g} is needed"
            )
        object.__setattr__(self, field, np.ascontiguousarray(given, dtype=dtype))


@dataclass(frozen=True, eq=False)
class Trace:
    """Requests of the functions of some profiles.

    Attributes:
        profiles: of the functions.
        requests: gives, each time it is called, an iterator over the same requests from the
            beginning: chunks of `REQUEST` records of any length, ascending in time.
    """

    profiles: FunctionProfiles
    requests: Callable[[], Iterator[np.ndarray]]


def earlier(requests: np.ndarray) -> np.ndarray:
    """EARLIER (K,), the executions of `REQUEST` records, which are taken to begin on arrival."""
    found = np.zeros(len(requests), EARLIER)
    found["image"], found["begin"] = requests["function"], requests["time"]
    found["end"] = requests["time"] + requests["duration"]
    return found
