"""Order `chosen`: whoever plays the episode chooses, as a learned queue agent does."""

from typing import Literal

import numpy as np

from env.base.schema import Strict
from env.sim.central_queue import CHOSEN
from env.sim.rules import DeclaredFunctions


class Chosen(Strict):
    """Asks which waiting function goes next, whenever one of them could start."""

    name: Literal["chosen"] = "chosen"

    def write(self, options: np.void) -> None:
        """Fills in the options of the engine."""
        options["order"] = CHOSEN

    def rank(self, functions: DeclaredFunctions) -> np.ndarray:
        """(D,) see `Order` in env/sim/rules.py."""
        return np.zeros(len(functions.execution))
