"""Placement `data_local`: where the predecessors' data is."""

from typing import Literal

from agents.rule_kinds import PlacementRule, Question


class DataLocal(PlacementRule):
    """The smallest transfer time; ties by finish time."""

    name: Literal["data_local"]

    def choose(self, asked: Question) -> int:
        """Index of a feasible NUMA node."""
        nodes = asked.candidates
        return asked.smallest(nodes["data_transfer_time"], nodes["finish_time"])
