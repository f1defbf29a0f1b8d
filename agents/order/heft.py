"""Order `heft`: largest upward rank first."""

from typing import Literal

import numpy as np

from env.schema import Strict
from env.sim.central_queue import BY_RANK
from env.sim.controller import DeclaredFunctions


class Heft(Strict):
    """The largest upward rank first: what is left of its workflow behind it takes longest.

    Topcuoglu et al., IEEE TPDS 13(3), 2002: the priority of HEFT.
    """

    name: Literal["heft"] = "heft"

    def write(self, options: np.void) -> None:
        """Fills in the options of the engine."""
        options["order"] = BY_RANK

    def rank(self, functions: DeclaredFunctions) -> np.ndarray:
        """(D,) see `Order` in env/sim/controller.py."""
        return -functions.upward_rank
