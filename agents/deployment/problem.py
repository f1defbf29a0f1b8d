"""Which plan is best in an hour, by whatever solver."""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Literal

import numpy as np

from agents.deployment.estimate import Estimator, Plan
from agents.deployment.inputs import Inputs
from agents.rule_kinds import Rule
from env.base.errors import InputError
from env.workloads.code.configuration import Constraint, Constraints, Metric

Limits = Mapping[Metric, Constraint | None]


class Problem:
    """What solvers see: where nodes may run, and what plans come to.

    Attributes:
        permitted: of each node the regions it may run in.
        home: the plan that has all nodes at home.
        estimate: what a plan comes to; it is played once.

    Args:
        inputs: of the workflow.
        constraints: what plans have to keep to, and what they rank by.
        estimator: of these inputs.
        intensity: (R,) gCO2e/kWh in the hour.
    """

    def __init__(
        self, inputs: Inputs, constraints: Constraints, estimator: Estimator, intensity: np.ndarray
    ) -> None:
        self.permitted = [np.flatnonzero(row).tolist() for row in inputs.permitted]
        self.home: Plan = (inputs.home,) * len(inputs.nodes)
        self.estimate = cache(lambda plan: estimator.estimate(plan, intensity))
        self._constraints = constraints

    def is_valid(self, plan: Plan) -> bool:
        """Whether a plan keeps the hard constraints, in its tail."""
        return not self._violated(self._constraints.hard_resource_constraints, "tail", plan)

    def value(self, plan: Plan) -> tuple[float, ...]:
        """By which plans rank, the least first: soft constraints violated, then metrics."""
        soft, mean = self._constraints.soft_resource_constraints, self.estimate(plan)["average"]
        ranked = (mean[name] for name in self._constraints.priority_order)
        return self._violated(soft, "average", plan), *ranked

    def _violated(self, limits: Limits, kind: Literal["average", "tail"], plan: Plan) -> int:
        """How many limits a plan violates."""
        found, at_home = self.estimate(plan)[kind], self.estimate(self.home)[kind]
        each = ((limit, found[name], at_home[name]) for name, limit in limits.items())
        return sum(limit is not None and limit.fails(*metrics) for limit, *metrics in each)


class Solver(Rule):
    """What plans are tried; another solver is another file in solvers/."""

    def plans(self, problem: Problem, rng: np.random.Generator) -> Iterable[Plan]:
        """Plans with permitted regions; the best of those that are valid is taken."""
        raise NotImplementedError


def best_plan(problem: Problem, solver: Solver, rng: np.random.Generator) -> Plan:
    """The best valid plan that a solver tries; of equal ones home, else the first.

    Raises:
        InputError: none is valid.
    """
    valid = filter(problem.is_valid, solver.plans(problem, rng))
    found = min(valid, key=lambda plan: (problem.value(plan), plan != problem.home), default=None)
    if found is None:
        raise InputError(f"{solver.name}: no plan it tries keeps all hard_resource_constraints")
    return found
