"""Placement `first_fit`: the first node with room."""

from typing import ClassVar, Literal

import numpy as np

from agents.rule_kinds import Fit, PlacementRule, Question


class FirstFit(PlacementRule):
    """The first node, in the order of the config, with the memory and the cores free now.

    If there is none, the one with the lowest load.
    """

    name: Literal["first_fit"]
    fit: ClassVar[Fit] = "first_fit"

    def choose(self, asked: Question) -> int:
        """Index of a feasible NUMA node."""
        threads = asked.candidates["parallelism"] + asked.decision.function.parallelism
        load = threads / asked.decision.env.state.nodes["cpu"]
        room = (asked.free_memory >= asked.memory_alloc) & (load <= 1.0)
        return asked.smallest(~room, np.where(room, 0.0, load))
