"""Placement `rollout`: tries every node in a fork that `greedy_objective` plays to its end."""

from typing import Literal

import numpy as np

from agents.placement.greedy_objective import greedy_choice
from agents.scheduler import Decision
from env.base.schema import Strict
from env.score.greedy_play import rollout_outcomes
from env.score.greedy_score import ScoreWeights


class Rollout(Strict):
    """The node from which `greedy_objective`, with the same weights, reaches the lowest J.

    J is that of all workflows that have arrived when the fork ends; ties: what `greedy_objective`
    would choose. Simulating the future takes a perfect model of it, so this is a reference, never
    counted as a hand-written baseline. Source: Bertsekas, Tsitsiklis, Wu, Journal of Heuristics 3,
    1997, rollout algorithms.

    Attributes:
        clairvoyant: whether the workflows to come are known and arrive in the forks.
        weights: of `greedy_objective` in the forks.
    """

    name: Literal["rollout"]
    clairvoyant: bool
    weights: ScoreWeights

    def choose(
        self,
        decision: Decision,
        candidates: np.ndarray,
        memory_alloc: int,
        rng: np.random.Generator,
    ) -> int:
        """Index of the NUMA node; see `PlacementRule`."""
        outcomes = rollout_outcomes(
            decision.env.state, memory_alloc, self.clairvoyant, decision.objective, self.weights
        )
        greedy = greedy_choice(decision, candidates, self.weights)
        return greedy if outcomes[greedy] == outcomes.min() else int(np.argmin(outcomes))
