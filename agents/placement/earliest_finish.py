"""Placement `earliest_finish`: the node where the function ends first (as in HEFT)."""

from agents.rule_kinds import PlacementRule
from agents.scheduler import Decision


class EarliestFinish(PlacementRule):
    """The smallest forecast finish time: cold start, transfer, waiting and sharing included.

    Source: Topcuoglu, Hariri, Wu, IEEE TPDS 13(3), 2002, processor selection.
    """

    def choose(self, decision: Decision) -> int:
        return decision.smallest(decision.rows["finish_time"])
