"""Placement `data_local`: where the predecessors' data is."""

from agents.rule_kinds import PlacementRule
from agents.scheduler import Decision


class DataLocal(PlacementRule):
    """The smallest transfer time; ties by finish time."""

    def choose(self, decision: Decision) -> int:
        nodes = decision.rows
        return decision.smallest(nodes["data_transfer_time"], nodes["finish_time"])
