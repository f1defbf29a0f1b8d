"""Order `srf`: smallest memory first."""

from typing import Literal

import numpy as np

from env.schema import Strict
from env.sim.central_queue import BY_RANK
from env.sim.controller import DeclaredFunctions


class Srf(Strict):
    """The smallest memory R first."""

    name: Literal["srf"] = "srf"

    def write(self, options: np.void) -> None:
        """Fills in the options of the engine."""
        options["order"] = BY_RANK

    def rank(self, functions: DeclaredFunctions) -> np.ndarray:
        """(D,) see `Order` in env/sim/controller.py."""
        return functions.memory.astype(np.float64)
