"""What orders by a fixed rank have in common."""

import numpy as np

from env.base.schema import Strict
from env.sim.central_queue import BY_RANK


class ByRank(Strict):
    """The smallest `rank` first, which does not change while a function waits."""

    def write(self, options: np.void) -> None:
        """Fills in the options of the engine."""
        options["order"] = BY_RANK
