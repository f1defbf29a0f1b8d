"""Which plan is best in an hour, by whatever solver."""

from collections.abc import Iterable, Mapping

import numpy as np

from agents.deployment.estimate import METRICS, Estimate, Estimator
from agents.deployment.inputs import Inputs
from agents.rule_kinds import Rule
from env.base.errors import InputError
from env.workloads.code.configuration import Constraint, Constraints, Metric

Plan = np.ndarray
"""int64 (N,), the region of each node."""


class Problem:
    """What solvers see: where nodes may run, and what plans come to.

    Attributes:
        permitted: of each node the regions it may run in.
        home: the plan that has all nodes at home.

    Args:
        inputs: of the workflow.
        constraints: what plans have to keep to, and what they rank by.
        estimator: of these inputs.
        intensity: (R,) gCO2e/kWh in the hour.
    """

    def __init__(
        self,
        inputs: Inputs,
        constraints: Constraints,
        estimator: Estimator,
        intensity: np.ndarray,
    ) -> None:
        self.permitted = [np.flatnonzero(row) for row in inputs.permitted]
        self.home: Plan = np.full(len(inputs.nodes), inputs.home)
        self._constraints, self._estimator, self._intensity = constraints, estimator, intensity
        self._estimates: dict[bytes, Estimate] = {}

    def estimate(self, plan: Plan) -> Estimate:
        """What a plan comes to; it is played once."""
        key = plan.tobytes()
        if key not in self._estimates:
            self._estimates[key] = self._estimator.estimate(plan, self._intensity)
        return self._estimates[key]

    def is_valid(self, plan: Plan) -> bool:
        """Whether a plan keeps the hard constraints, in its tail."""
        hard = self._constraints.hard_resource_constraints
        return not _violated(hard, self.estimate(plan).tail, self.estimate(self.home).tail)

    def value(self, plan: Plan) -> tuple[float, ...]:
        """By which plans rank, the least first: soft constraints violated, then metrics."""
        soft, mean = self._constraints.soft_resource_constraints, self.estimate(plan).mean
        ranked = (float(mean[METRICS.index(name)]) for name in self._constraints.priority_order)
        return _violated(soft, mean, self.estimate(self.home).mean), *ranked


def _violated(
    constraints: Mapping[Metric, Constraint | None], found: np.ndarray, at_home: np.ndarray
) -> int:
    """How many constraints metrics (3,) violate, beside those of the home deployment."""
    each = ((METRICS.index(name), constraint) for name, constraint in constraints.items())
    return sum(one is not None and one.fails(found[at], at_home[at]) for at, one in each)


class Solver(Rule):
    """What plans are tried; another solver is another file in solvers/."""

    def plans(self, problem: Problem, rng: np.random.Generator) -> Iterable[Plan]:
        """Plans with permitted regions; the best of those that are valid is taken."""
        raise NotImplementedError


def best_plan(problem: Problem, solver: Solver, rng: np.random.Generator) -> Plan:
    """The best valid plan that a solver tries; of equal ones the first.

    Raises:
        InputError: none is valid.
    """
    valid = filter(problem.is_valid, solver.plans(problem, rng))
    found = min(valid, key=problem.value, default=None)
    if found is None:
        raise InputError(f"{solver.name}: no plan it tries keeps all hard_resource_constraints")
    return found
