"""Order `sjf`: shortest job first."""

from typing import Literal

import numpy as np

from env.schema import Strict
from env.sim.central_queue import BY_RANK
from env.sim.controller import DeclaredFunctions


class Sjf(Strict):
    """The smallest mean execution time E first."""

    name: Literal["sjf"] = "sjf"

    def write(self, options: np.void) -> None:
        """Fills in the options of the engine."""
        options["order"] = BY_RANK

    def rank(self, functions: DeclaredFunctions) -> np.ndarray:
        """(D,) see `Order` in env/sim/controller.py."""
        return functions.execution
