"""Placement `greedy_objective`: the node with the smallest predicted rise of J."""

from typing import Final

import numpy as np

from agents.rule_kinds import PlacementRule
from agents.scheduler import Decision
from env.base.schema import Strict
from env.score.greedy_score import ScoreWeights, greedy_node, greedy_scores
from env.score.reward import Objective

MUCH_MORE: Final = 3.0
"""How many times more than the other time or cost has to count to have weights of its own."""


class WeightsByObjective(Strict):
    """Weights of the greedy score, which are searched for one objective each.

    Attributes:
        weights: where time and cost count about the same, and wherever there are no others.
        latency: where time counts `MUCH_MORE` than cost.
        cost: where cost counts `MUCH_MORE` than time.
    """

    weights: ScoreWeights
    latency: ScoreWeights | None = None
    cost: ScoreWeights | None = None

    def of(self, objective: Objective) -> ScoreWeights:
        """Those of an objective."""
        time, cost = objective.time_weight + objective.completion_weight, objective.cost_weight
        if time > MUCH_MORE * cost:
            return self.latency or self.weights
        if cost > MUCH_MORE * time:
            return self.cost or self.weights
        return self.weights


class GreedyObjective(WeightsByObjective, PlacementRule):
    """Weighs finish delay, the delay of all workflows it touches, and extra rent.

    The formula is that of `ScoreWeights`; its terms for delay and rent are the predicted rise of J,
    with the mean cost of the workflows that have arrived in place of that of the whole episode. The
    finish term prefers, among placements that move no bound and no lease, those that end early.
    """

    def choose(self, decision: Decision) -> int:
        return greedy_choice(decision, self.of(decision.objective))


def greedy_choice(decision: Decision, weights: ScoreWeights) -> int:
    """The node with the smallest greedy score; ties by finish time, then by index."""
    candidates = decision.rows
    scores = np.empty(len(candidates))
    by_objective = weights.by_objective(decision.objective)
    greedy_scores(decision.env.state, candidates, by_objective, scores)
    return int(greedy_node(candidates, scores))
