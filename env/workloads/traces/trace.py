"""A trace: requests of single functions over time, and what a profiler knows of the functions.

Loaders make it, `simulate` plays it. It may be endless: requests come in chunks.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from env.base.errors import InputError
from env.sim.bounds import LARGEST_MEMORY, LONGEST, MOST_CORES

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
