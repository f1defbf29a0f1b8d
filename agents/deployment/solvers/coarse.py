"""All nodes in one region."""

from collections.abc import Iterable
from functools import reduce

import numpy as np

from agents.deployment.problem import Plan, Problem, Solver


class Coarse(Solver):
    """Tries each region that all nodes may run in."""

    def plans(self, problem: Problem, rng: np.random.Generator) -> Iterable[Plan]:
        """A plan for each such region."""
        for region in reduce(np.intersect1d, problem.permitted):
            yield np.full_like(problem.home, region)
