"""Placement `rollout`: tries every node in a fork that `greedy_objective` plays to its end."""

from typing import ClassVar

import numpy as np

from agents.placement.greedy_objective import greedy_choice
from agents.rule_kinds import PlacementRule
from agents.scheduler import Decision
from env.score.greedy_score import Forks, ScoreWeights


class Rollout(PlacementRule):
    """The node from which `greedy_objective`, with the same weights, reaches the lowest J.

    J is that of all workflows that have arrived when the fork ends; ties: what `greedy_objective`
    would choose. Simulating the future takes a perfect model of it, so this is a reference, never
    counted as a hand-written baseline. Source: Bertsekas, Tsitsiklis, Wu, Journal of Heuristics 3,
    1997, rollout algorithms.

    Attributes:
        clairvoyant: whether the workflows to come are known and arrive in the forks.
        weights: of `greedy_objective` in the forks.
    """

    is_reference: ClassVar[bool] = True
    clairvoyant: bool
    weights: ScoreWeights

    def choose(self, decision: Decision) -> int:
        forks = Forks(decision.env.state, self.clairvoyant, decision.objective)
        outcomes = forks.of_nodes(int(decision.memory_alloc[0]), self.weights)
        greedy = greedy_choice(decision, self.weights)
        return greedy if outcomes[greedy] == outcomes.min() else int(np.argmin(outcomes))
