"""Placement `best_of`: does what the best of several `greedy_objective` rules would do."""

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from agents.placement.greedy_objective import WeightsByObjective, greedy_choice
from agents.rule_kinds import PlacementRule
from agents.scheduler import Decision
from env.score.greedy_score import Forks


class BestOf(PlacementRule):
    """Lets every rule play a fork to its end, and places as the one with the lowest J does.

    Which rule is best depends on the cluster and on the load. Simulating the future takes a perfect
    model of it, so this is a reference, never counted as a hand-written baseline. Source: parallel
    rollout of several base policies (Chang, Givan, Chong, Discrete Event Dynamic Systems 14, 2004).

    Attributes:
        clairvoyant: whether the workflows to come are known and arrive in the forks.
        rules: weights of each; ties go to the first.
    """

    is_reference: ClassVar[bool] = True
    clairvoyant: bool
    rules: Annotated[tuple[WeightsByObjective, ...], Field(min_length=2)]

    def choose(self, decision: Decision) -> int:
        rules = [rule.of(decision.objective) for rule in self.rules]
        forks = Forks(decision.env.state, self.clairvoyant, decision.objective)
        return greedy_choice(decision, rules[int(np.argmin(forks.of_rules(rules)))])
