"""Every node in every region: the best plan there is."""

import math
from collections.abc import Iterable
from itertools import product
from typing import Annotated

import numpy as np
from pydantic import Field

from agents.deployment.problem import Plan, Problem, Solver
from env.base.errors import InputError


class Fine(Solver):
    """Tries all plans; conf/solver/fine.yaml explains the number.

    The document has it begin with the regions that are permitted for all nodes, and then try each
    node's; these are all plans in another order.
    """

    most_plans: Annotated[int, Field(ge=1)]

    def plans(self, problem: Problem, rng: np.random.Generator) -> Iterable[Plan]:
        """All plans.

        Raises:
            InputError: there are too many.
        """
        count = math.prod(map(len, problem.permitted))
        if count > self.most_plans:
            raise InputError(
                f"solver=fine: {count:,} plans, solver.most_plans is {self.most_plans:,}; "
                "solver=stochastic tries some of them"
            )
        return product(*problem.permitted)
