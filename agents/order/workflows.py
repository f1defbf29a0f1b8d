"""Order `workflows` within a tenant: by the tickets that it gives its workflows."""

from typing import Literal

import numpy as np

from env.base.schema import Strict
from env.sim.central_queue import BY_WORKFLOW
from env.sim.ordering import DeclaredFunctions


class Workflows(Strict):
    """By virtual finish times of workflows; see env/sim/workflow_tickets.py.

    Attributes:
        lends: whether functions that wait for others lend these their part of the tickets.
    """

    name: Literal["workflows"] = "workflows"
    lends: bool = True

    def write(self, options: np.void) -> None:
        """Fills in the options of the engine."""
        options["order"] = BY_WORKFLOW
        options["lends"] = self.lends

    def rank(self, functions: DeclaredFunctions) -> np.ndarray:
        """(D,) see `Order` in env/sim/ordering.py."""
        return np.zeros(len(functions.execution))
