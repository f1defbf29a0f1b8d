"""Order `fcfs`: first come, first served."""

from typing import Literal

import numpy as np

from env.schema import Strict
from env.sim.central_queue import BY_RANK
from env.sim.controller import DeclaredFunctions


class Fcfs(Strict):
    """Whoever joined the queue first goes first."""

    name: Literal["fcfs"] = "fcfs"

    def write(self, options: np.void) -> None:
        """Fills in the options of the engine."""
        options["order"] = BY_RANK

    def rank(self, functions: DeclaredFunctions) -> np.ndarray:
        """(D,) see `Order` in env/sim/controller.py."""
        return np.zeros(len(functions.execution))
