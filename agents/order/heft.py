"""Order `heft`: largest upward rank first."""

import numpy as np

from agents.rule_kinds import QueueOrder
from env.sim.declared.ordering import DeclaredFunctions


class Heft(QueueOrder):
    """The largest upward rank first: what is left of its workflow behind it takes longest.

    Topcuoglu et al., IEEE TPDS 13(3), 2002: the priority of HEFT.
    """

    def rank(self, functions: DeclaredFunctions) -> np.ndarray:
        """(D,) see `Order` in env/sim/declared/ordering.py."""
        return -functions.upward_rank
