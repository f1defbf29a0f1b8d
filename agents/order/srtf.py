"""Order `srtf`: shortest remaining time first."""

from typing import Annotated

import numpy as np
from pydantic import Field

from agents.rule_kinds import QueueOrder
from env.sim.declared.ordering import DeclaredFunctions
from env.sim.queue.central_queue import SHORTEST_REMAINING


class Srtf(QueueOrder):
    """The smallest E - seconds executed so far first, also before one that runs.

    A running function is compared with the first that waits each time it has executed for
    `check_interval`, and gives way to one with less left. A request that runs for longer than E has
    nothing left.

    Attributes:
        check_interval: seconds.
    """

    check_interval: Annotated[float, Field(ge=1e-3, le=1e6)]  # less never ends

    def write(self, options: np.void) -> None:
        """Fills in the options of the engine."""
        options["order"] = SHORTEST_REMAINING
        options["time_slice"] = self.check_interval

    def rank(self, functions: DeclaredFunctions) -> np.ndarray:
        """(D,) see `Order` in env/sim/declared/ordering.py."""
        return functions.execution
