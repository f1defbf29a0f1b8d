"""Placement `first_fit`: the first node with room."""

import numpy as np

from agents.rule_kinds import PlacementRule
from agents.scheduler import Decision


class FirstFit(PlacementRule):
    """The first node, in the order of the config, with the memory and the cores free now.

    If there is none, the one with the lowest load.
    """

    def choose(self, decision: Decision) -> int:
        threads = decision.rows["parallelism"] + decision.function.parallelism
        load = threads / decision.env.state.nodes["cpu"]
        enough = decision.free_memory >= decision.memory_alloc
        room = enough & ~decision.lacks_resources & (load <= 1.0)
        return decision.smallest(~room, np.where(room, 0.0, load))
