"""Which plans solvers find: properties of all, and Caribou's cases of constraints and ranks."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml

from agents.deployment.estimate import METRICS, Estimate
from agents.deployment.problem import Plan, Problem, Solver, best_plan
from agents.deployment.solvers.coarse import Coarse
from agents.deployment.solvers.fine import Fine
from agents.deployment.solvers.stochastic import Stochastic, acceptance
from env.base.errors import InputError
from env.base.schema import validated
from env.sim.declared.regions import Regions
from env.workloads.code.configuration import Constraint, Constraints
from run.command import CONF
from tests.agents.deployment.tables import (
    HOME,
    NEAR,
    drawn_inputs,
    inputs,
    problem,
    tables_of,
    workflow,
)


def conf_of(name: str) -> dict[str, Any]:
    return dict(yaml.safe_load((CONF / "solver" / f"{name}.yaml").read_text()))


FINE, STOCHASTIC = Fine(**conf_of("fine")), Stochastic(**conf_of("stochastic"))
LIMITS = {
    "hard_resource_constraints": {"runtime": {"type": "relative", "value": 115}},
    "soft_resource_constraints": {"cost": {"type": "relative", "value": 98}},
}


def solved(given: Problem, solver: Solver, seed: int = 0) -> Plan:
    return best_plan(given, solver, np.random.default_rng(seed))


@pytest.mark.parametrize("seed", range(8))
def test_what_holds_of_all_solvers(seed: int) -> None:
    order = METRICS if seed % 2 else METRICS[::-1]
    made = drawn_inputs(4, 3, seed, bound="b" * (seed % 3))
    given = problem(made, priority_order=order, **LIMITS)
    plans = [solved(given, solver, seed) for solver in (FINE, STOCHASTIC, Coarse())]
    best, stochastic, coarse = map(given.value, plans)
    assert best <= stochastic <= coarse <= given.value(given.home)
    most = 1.15 * given.estimate(given.home).tail[0]
    for plan in plans:
        assert given.estimate(plan).tail[0] <= most
        assert made.permitted[range(4), plan].all()


@pytest.mark.parametrize("case", range(500, 512))
def test_the_heuristic_finds_the_optimum_of_small_cases(case: int) -> None:
    given = problem(drawn_inputs(4, 3, case), **LIMITS)
    best = given.value(solved(given, FINE))
    hits = [given.value(solved(given, STOCHASTIC, seed)) == best for seed in range(20)]
    assert sum(hits) >= 18


def test_fine_tries_every_plan_once() -> None:
    given = problem(drawn_inputs(3, 3, 0, bound="b"))
    plans = [tuple(plan.tolist()) for plan in FINE.plans(given, np.random.default_rng(0))]
    assert len(set(plans)) == len(plans) == 9 and {plan[1] for plan in plans} == {0}
    few = Fine(most_plans=8)
    with pytest.raises(InputError, match="9 plans, solver.most_plans is 8"):
        solved(given, few)


@pytest.mark.parametrize(
    ("where", "regions"),
    [({}, [0, 1, 2]), ({"a": Regions(disallowed=(NEAR,))}, [0, 2])],
)
def test_coarse_has_all_nodes_in_a_region(where: dict[str, Regions], regions: list[int]) -> None:
    """Conformance 9."""
    executed = {"a": {HOME: [1.0]}, "b": {HOME: [1.0]}}
    given = problem(inputs(workflow(("a", "b", 1)), tables_of(executed), where))
    plans = Coarse().plans(given, np.random.default_rng(0))
    assert [plan.tolist() for plan in plans] == [[region] * 2 for region in regions]


def test_how_many_nodes_the_heuristic_moves() -> None:
    """Conformance 10: of 3 nodes at least one; a fifth of many, and one more."""
    fifth = Stochastic(**conf_of("stochastic") | {"learning_rate": 0.2})
    assert [fifth.moves(nodes) for nodes in (1, 3, 10)] == [1, 1, 3]
    assert STOCHASTIC.moves(3) == 2
    given, hot = problem(drawn_inputs(3, 2, 0)), conf_of("stochastic") | {"temperature": 1e6}
    plans = [*Stochastic(**hot).plans(given, np.random.default_rng(0))]
    assert len({tuple(plan.tolist()) for plan in plans}) == 8
    assert [plan.tolist() for plan in plans[:2]] == [[0, 0, 0], [1, 1, 1]]  # coarse ones first


def test_acceptance_looks_at_the_candidate() -> None:
    """Conformance 10; at temperature 0 the published code accepts every candidate."""
    assert acceptance(-0.1, 0.0) == acceptance(0.0, 0.0) == 1
    assert acceptance(0.1, 0.0) == 0
    assert acceptance(0.1, 0.1) == pytest.approx(np.exp(-1))


def given_metrics(*means: tuple[float, ...], **constraints: Any) -> Problem:
    """Plans 0, 1, ... of one node come to these (runtime, cost, carbon); the last is home's.

    Tails are twice as much.
    """
    estimates = [Estimate(np.array(each), 2 * np.array(each), 1) for each in means]
    estimator: Any = SimpleNamespace(estimate=lambda plan, intensity: estimates[plan[0]])
    home, permitted = len(means) - 1, np.ones((1, len(means)), bool)
    made: Any = SimpleNamespace(nodes=("a",), home=home, permitted=permitted)
    limits = validated(Constraints, constraints, "constraints")
    return Problem(made, limits, estimator, np.zeros(len(means)))


HIGH = (9.0, 9.0, 9.0)


@pytest.mark.parametrize(
    ("constraints", "best"),
    [
        ({}, 0),
        ({"priority_order": ["runtime", "cost", "carbon"]}, 1),
        ({"priority_order": ["cost"]}, 1),
    ],
)
def test_ranks(constraints: dict[str, Any], best: int) -> None:
    """Conformance 13: by carbon, runtime and cost, unless an order is given."""
    given = given_metrics((2.0, 2.0, 1.0), (1.0, 1.0, 2.0), HIGH, **constraints)
    assert solved(given, FINE).tolist() == [best]
    ties = given_metrics((2.0, 1.0, 1.0), (1.0, 2.0, 1.0), HIGH)
    assert solved(ties, FINE).tolist() == [1]


@pytest.mark.parametrize(
    ("constraint", "fails"),
    [
        ({"type": "relative", "value": 200}, False),
        ({"type": "relative", "value": 166}, True),
        ({"type": "absolute", "value": 0.4}, True),
        ({"type": "absolute", "value": 0.5}, False),
        ({"type": "absolute"}, False),
    ],
)
def test_constraints(constraint: dict[str, Any], fails: bool) -> None:
    """Conformance 14: 0.5 where home has 0.3; hard ones hold in the tail."""
    assert validated(Constraint, constraint, "").fails(0.5, 0.3) == fails
    given = given_metrics(
        (1.0, 0.25, 1.0), (9.0, 0.15, 9.0), hard_resource_constraints={"cost": constraint}
    )
    assert solved(given, FINE).tolist() == [1 if fails else 0]


def test_fewer_soft_violations_rank_first() -> None:
    """Conformance 14; a constraint that is null is none."""
    limits = {"cost": {"type": "absolute", "value": 1}, "carbon": None}
    given = given_metrics((1.0, 2.0, 1.0), (1.0, 1.0, 2.0), HIGH, soft_resource_constraints=limits)
    assert solved(given, FINE).tolist() == [1]


def test_no_plan_keeps_the_hard_constraints() -> None:
    limits = {"hard_resource_constraints": {"carbon": {"type": "absolute", "value": 0}}}
    given = problem(drawn_inputs(3, 2, 0), **limits)
    for solver in (FINE, STOCHASTIC, Coarse()):
        with pytest.raises(InputError, match=f"^{solver.name}: no plan it tries keeps all hard_re"):
            solved(given, solver)
