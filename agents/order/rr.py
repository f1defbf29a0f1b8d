"""Order `rr`: round robin."""

from typing import Annotated

import numpy as np
from pydantic import Field

from agents.rule_kinds import QueueOrder


class RoundRobin(QueueOrder):
    """Every function runs for at most a time slice while others wait, then joins the queue again.

    A slice is execution alone, without the cold start before it.

    Attributes:
        time_slice: seconds.
    """

    time_slice: Annotated[float, Field(ge=1e-3, le=1e6)]  # less never ends

    def write(self, options: np.void) -> None:
        """Fills in the options of the engine."""
        super().write(options)
        options["time_slice"] = self.time_slice
