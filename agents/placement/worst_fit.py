"""Placement `worst_fit`: the emptiest node (load balancing by memory)."""

from typing import ClassVar, Literal

from agents.rule_kinds import Fit, PlacementRule, Question


class WorstFit(PlacementRule):
    """The node whose free memory is left largest."""

    name: Literal["worst_fit"]
    fit: ClassVar[Fit] = "worst_fit"

    def choose(self, asked: Question) -> int:
        """Index of a feasible NUMA node."""
        return asked.smallest(-asked.free_memory)
