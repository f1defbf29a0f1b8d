"""Placement `worst_fit`: the emptiest node (load balancing by memory)."""

from agents.rule_kinds import PlacementRule
from agents.scheduler import Decision


class WorstFit(PlacementRule):
    """The node whose free memory is left largest; nodes short of a named resource come last."""

    def choose(self, decision: Decision) -> int:
        return decision.smallest(decision.lacks_resources, -decision.free_memory)
