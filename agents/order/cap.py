"""Order `cap`: that of another order, but the dirtier electricity is, the fewer cores are used."""

from typing import Annotated, Final

import numpy as np
from pydantic import Field
from scipy.special import lambertw

from agents.held_back import HeldBack
from agents.order.critical_path import CriticalPath
from agents.order.fcfs import Fcfs
from agents.order.heft import Heft
from agents.order.sjf import Sjf
from agents.order.srf import Srf
from agents.rule_kinds import QueueOrder
from agents.scheduler import Decision
from env.sim.declared.ordering import DeclaredFunctions

LEAST_RATIO: Final = 1e-9
"""Of the least and the most intensity."""


class Cap(HeldBack, QueueOrder):
    """CAP: somebody starts while fewer cores are busy than `cores_allowed`, or all are allowed.

    It is the first of those that fit.

    Attributes:
        within: who goes next.
        least_share: of the cores, which may always be busy.
    """

    within: Annotated[CriticalPath | Fcfs | Heft | Sjf | Srf, Field(discriminator="name")]
    least_share: Annotated[float, Field(gt=0, le=1)]

    def rank(self, functions: DeclaredFunctions) -> np.ndarray:
        """(D,) see `Order` in env/sim/declared/ordering.py."""
        return self.within.rank(functions)

    def pick(
        self, decision: Decision, waiting: np.ndarray, now: float, least: float, most: float
    ) -> tuple[int, bool]:
        """Who is first by `within`; of equal ones, who joined first."""
        first, state = np.lexsort((waiting["number"], waiting["rank"]))[0], decision.env.state
        cores, busy = int(state.cluster["cores"][0]), state.nodes["parallelism"].sum()
        always = int(np.ceil(self.least_share * cores))
        allowed = cores_allowed(cores, always, now, least, most)
        return int(first), allowed == cores or busy < allowed


def cores_allowed(cores: int, always: int, now: float, least: float, most: float) -> int:
    """How many of the cores may be busy: `always` so many, all at the least intensity.

    Each further one has a threshold, those of the (cores - always)-search for minima. As in the
    published code their ratio alpha is that of a very long search.
    """
    more = cores - always
    if more == 0 or most == 0:
        return cores
    # At a ratio of 0 alpha would be infinite.
    alpha = 1 / (1 + lambertw((max(least / most, LEAST_RATIO) - 1) / np.e).real)
    growth = (1 + 1 / (alpha * more)) ** np.arange(more)
    thresholds = most * (1 - (1 - 1 / alpha) * growth)
    return always + int(np.count_nonzero(now <= thresholds))
