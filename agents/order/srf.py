"""Order `srf`: smallest memory first."""

import numpy as np

from agents.rule_kinds import QueueOrder
from env.sim.declared.ordering import DeclaredFunctions


class Srf(QueueOrder):
    """The smallest memory R first."""

    def rank(self, functions: DeclaredFunctions) -> np.ndarray:
        """(D,) see `Order` in env/sim/declared/ordering.py."""
        return functions.memory.astype(np.float64)
