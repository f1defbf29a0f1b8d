"""What orders have in common that hold functions back while electricity is dirty."""

from typing import Annotated

import numpy as np
from pydantic import Field

from agents.scheduler import Decision
from env.base.schema import Strict
from env.sim.declared.ordering import WithoutRank
from env.sim.events.carbon import coming_intensities
from env.sim.queue.central_queue import CHOSEN
from env.sim.state.records import NONE


class HeldBack(Strict, WithoutRank):
    """Each start is asked: now, or not before something changes, such as when a function ends.

    While nothing runs somebody starts. Lechowicz et al., "Carbon- and Precedence-Aware Scheduling
    for Data Processing Clusters", SIGCOMM 2025.

    Attributes:
        hours: that are looked ahead for the least and the most that electricity emits.
    """

    hours: Annotated[int, Field(ge=1, le=8760)]

    def write(self, options: np.void) -> None:
        """Fills in the options of the engine."""
        options["order"] = CHOSEN

    def choose(self, decision: Decision) -> int:
        """A row of `choose`: one that fits, or the last, which holds all back."""
        state, rows = decision.env.state, decision.rows
        fits = np.flatnonzero(rows["node"] != NONE)
        waiting = state.waiting[rows["declared"][fits]]
        place, may_start = self.pick(decision, waiting, *coming_intensities(state, self.hours))
        runs = state.servers["container_count"].any()
        return int(fits[place]) if may_start or not runs else len(rows) - 1

    def pick(
        self, decision: Decision, waiting: np.ndarray, now: float, least: float, most: float
    ) -> tuple[int, bool]:
        """Who goes next, and whether this may be now.

        Args:
            decision: with the whole cluster.
            waiting: WAITING (F,), those that fit.
            now, least, most: gCO2e per kWh now and in the coming `hours`.
        """
        raise NotImplementedError
