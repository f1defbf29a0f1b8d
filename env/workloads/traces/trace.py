"""A trace: requests of single functions over time, and profiles of the functions."""

from dataclasses import dataclass

import numpy as np

from env.base.errors import InputError
from env.sim.declared.bounds import LARGEST_WORK
from env.sim.declared.workflow_template import WorkflowTemplate

SAMPLE_KEY, REQUESTS_KEY, ANNOTATION_KEY = 0, 1, 2
"""First word of every spawn key: draws from one seed are independent by it."""
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
