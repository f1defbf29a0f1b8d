"""Order `fcfs`: first come, first served."""

from typing import Literal

import numpy as np

from agents.order.by_rank import ByRank
from env.sim.rules import DeclaredFunctions


class Fcfs(ByRank):
    """Whoever joined the queue first goes first."""

    name: Literal["fcfs"] = "fcfs"

    def rank(self, functions: DeclaredFunctions) -> np.ndarray:
        """(D,) see `Order` in env/sim/rules.py."""
        return np.zeros(len(functions.execution))
