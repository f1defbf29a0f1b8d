"""Placement `greedy_objective`: the node with the smallest predicted rise of J."""

from typing import Literal

import numpy as np

from agents.scheduler import Decision
from env.base.schema import Strict
from env.score.greedy_score import ScoreWeights, greedy_node, greedy_scores


class GreedyObjective(Strict):
    """Weighs finish delay, the delay of all workflows it touches, and extra rent.

    The formula is that of `ScoreWeights`; its terms for delay and rent are the predicted rise of J,
    with the mean cost of the workflows that have arrived in place of that of the whole episode. The
    finish term prefers, among placements that move no bound and no lease, those that end early.
    """

    name: Literal["greedy_objective"]
    weights: ScoreWeights

    def choose(
        self,
        decision: Decision,
        candidates: np.ndarray,
        memory_alloc: int,
        rng: np.random.Generator,
    ) -> int:
        """Index of the NUMA node; see `PlacementRule`."""
        return greedy_choice(decision, candidates, self.weights)


def greedy_choice(decision: Decision, candidates: np.ndarray, weights: ScoreWeights) -> int:
    """The node with the smallest greedy score; ties by finish time, then by index."""
    scores = np.empty(len(candidates))
    by_objective = weights.by_objective(decision.objective)
    greedy_scores(decision.env.state, candidates, by_objective, scores)
    return int(greedy_node(candidates, scores))
