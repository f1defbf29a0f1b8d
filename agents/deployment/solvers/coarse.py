"""All nodes in one region."""

from collections.abc import Iterable

import numpy as np

from agents.deployment.problem import Plan, Problem, Solver


class Coarse(Solver):
    """Tries each region that all nodes may run in."""

    def plans(self, problem: Problem, rng: np.random.Generator) -> Iterable[Plan]:
        """A plan for each such region."""
        shared = set(problem.permitted[0]).intersection(*problem.permitted)
        return ((region,) * len(problem.home) for region in sorted(shared))
