"""Stochastic heuristic descent: some nodes are moved at a time, at random."""

import math
from collections.abc import Iterable
from typing import Annotated

import numpy as np
from pydantic import Field

from agents.deployment.inputs import Share
from agents.deployment.problem import Plan, Problem, Solver
from agents.deployment.solvers.coarse import Coarse


class Stochastic(Solver):
    """Goes from plan to plan; conf/solver/stochastic.yaml explains the numbers.

    A candidate is accepted with the Boltzmann probability exp(-(how much it is worse) / T), which
    is 1 if it is better. Caribou's published code differs from its design document in this: it
    accepts by 2^(-|home - T| / T), which does not look at the candidate and at T = 0 accepts all of
    them. It also prefers regions that were good before, which the document does not have.
    """

    learning_rate: Share
    iterations: Annotated[int, Field(ge=1, le=1_000_000)]
    temperature: Annotated[float, Field(ge=0, le=1e6)]
    cooling: Share

    def plans(self, problem: Problem, rng: np.random.Generator) -> Iterable[Plan]:
        """The coarse plans, and then each valid candidate, from the best of these on."""
        coarse = list(Coarse().plans(problem, rng))
        yield from coarse
        current = min(filter(problem.is_valid, coarse), key=problem.value, default=problem.home)
        energy, temperature = _energy(problem, current), self.temperature
        for _ in range(self.iterations * sum(map(len, problem.permitted))):
            moved, temperature = list(current), temperature * self.cooling
            count = rng.integers(1, self.moves(len(moved)), endpoint=True)
            for node in rng.integers(len(moved), size=count):
                moved[node] = rng.choice(problem.permitted[node])
            yield (candidate := tuple(moved))
            found = _energy(problem, candidate)
            if rng.random() < acceptance(found - energy, temperature):
                current, energy = candidate, found

    def moves(self, nodes: int) -> int:
        """How many of them are moved at a time at most; at least 1 is."""
        return int(self.learning_rate * nodes) + 1


def _energy(problem: Problem, plan: Plan) -> float:
    """A plan's value as one number, its first metric beside home's; infinite if it is not valid."""
    (violated, metric, *_), (_, at_home, *_) = problem.value(plan), problem.value(problem.home)
    if not problem.is_valid(plan):
        return math.inf
    return violated + metric / at_home if at_home else violated


def acceptance(worse: float, temperature: float) -> float:
    """The probability of accepting a candidate whose energy is higher by so much."""
    if worse <= 0:
        return 1.0
    return math.exp(-worse / temperature) if temperature else 0.0
