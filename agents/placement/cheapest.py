"""Placement `cheapest`: the node that adds least rent."""

from typing import Literal

from agents.rule_kinds import PlacementRule, Question


class Cheapest(PlacementRule):
    """The smallest rise of rent; ties by finish time.

    Time counts for nothing: all functions queue up on the servers with the lowest hourly rate, for
    another hour there costs less than a first hour anywhere else.
    """

    name: Literal["cheapest"]

    def choose(self, asked: Question) -> int:
        """Index of a feasible NUMA node."""
        return asked.smallest(asked.candidates["rent_increase"], asked.candidates["finish_time"])
