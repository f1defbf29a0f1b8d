"""Order `critical_path`: the longest path through the function first."""

import numpy as np

from agents.rule_kinds import QueueOrder
from env.sim.declared.ordering import DeclaredFunctions


class CriticalPath(QueueOrder):
    """The largest upward + downward rank first: functions on the critical path of their workflow.

    Topcuoglu et al., IEEE TPDS 13(3), 2002: the priority of CPOP.
    """

    def rank(self, functions: DeclaredFunctions) -> np.ndarray:
        """(D,) see `Order` in env/sim/declared/ordering.py."""
        return -(functions.upward_rank + functions.downward_rank)
