"""Order `sjf`: shortest job first."""

import numpy as np

from agents.rule_kinds import QueueOrder
from env.sim.declared.ordering import DeclaredFunctions


class Sjf(QueueOrder):
    """The smallest mean execution time E first."""

    def rank(self, functions: DeclaredFunctions) -> np.ndarray:
        """(D,) see `Order` in env/sim/declared/ordering.py."""
        return functions.execution
