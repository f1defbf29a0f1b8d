"""Placement `cheapest`: the node that adds least rent."""

from agents.rule_kinds import PlacementRule
from agents.scheduler import Decision


class Cheapest(PlacementRule):
    """The smallest rise of rent; ties by finish time.

    Time counts for nothing: all functions queue up on the servers with the lowest hourly rate, for
    another hour there costs less than a first hour anywhere else.
    """

    def choose(self, decision: Decision) -> int:
        return decision.smallest(decision.rows["rent_increase"], decision.rows["finish_time"])
