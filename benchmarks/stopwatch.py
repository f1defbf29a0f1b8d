"""Time by the clock and of the processor, of functions that are called now and then."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

PHASES = ("sampling", "learner", "ppo")
"""What is timed of a training; ppo is all of it."""


def clocks() -> np.ndarray:
    """Seconds: by the clock, and of processor time of this process."""
    return np.array([time.perf_counter(), time.process_time()])


class Stopwatch:
    """A function whose calls are timed.

    Attributes:
        seconds: (2,) as of `clocks`, of all calls since it was last set to 0.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.seconds = np.zeros(2)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls it."""
        begin = clocks()
        result = self._function(*args, **kwargs)
        self.seconds += clocks() - begin
        return result


def phase_rates(watches: Mapping[str, Stopwatch], iterate: Callable[[], int]) -> np.ndarray:
    """(PHASES, 2) steps per second of one iteration, as of `clocks`.

    Args:
        watches: of the phases.
        iterate: calls them, and returns the steps of it.
    """
    for watch in watches.values():
        watch.seconds[:] = 0.0
    steps = iterate()
    return steps / np.array([watches[phase].seconds for phase in PHASES])
