"""Order `funcsched`: time and memory together, cold starts counted."""

from typing import Annotated

import numpy as np
from pydantic import Field

from agents.rule_kinds import QueueOrder
from env.sim.queue.central_queue import FUNCSCHED


class FuncSched(QueueOrder):
    """The smallest (E + D * [W = 0]) * R first; who waits too long goes before all others.

    Jin et al., "Exploiting Temporal-Spatial Characteristics for Function Scheduling in Serverless
    Computing", Journal of Computer Research and Development 60(9), 2023, section 3.3.

    Attributes:
        starve_threshold: seconds of waiting from which on the oldest goes first.
    """

    starve_threshold: Annotated[float, Field(ge=0, le=1e9)]

    def write(self, options: np.void) -> None:
        """Fills in the options of the engine."""
        options["order"] = FUNCSCHED
        options["starve_threshold"] = self.starve_threshold
