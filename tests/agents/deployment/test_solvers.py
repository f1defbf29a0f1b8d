"""Which plans solvers find: properties of all, and Caribou's cases of constraints and ranks."""

from typing import Any

import numpy as np
import pytest
import yaml

from agents.deployment.problem import METRICS, Estimate, Plan, Problem, Solver, best_plan
from agents.deployment.solvers.coarse import Coarse
from agents.deployment.solvers.fine import Fine
from agents.deployment.solvers.stochastic import Stochastic, acceptance
from env.base.errors import InputError
from run.command import CONF
from tests.agents.deployment.tables import drawn_inputs, problem


def conf_of(name: str) -> dict[str, Any]:
    return dict(yaml.safe_load((CONF / "solver" / f"{name}.yaml").read_text()))


FINE, STOCHASTIC = Fine(**conf_of("fine")), Stochastic(**conf_of("stochastic"))
LIMITS = {
    "hard_resource_constraints": {"runtime": {"type": "relative", "value": 115}},
    "soft_resource_constraints": {"cost": {"type": "relative", "value": 98}},
}


def solved(given: Problem, solver: Solver, seed: int = 0) -> Plan:
    return best_plan(given, solver, np.random.default_rng(seed))


def tried(given: Problem, solver: Solver) -> list[Plan]:
    return [*solver.plans(given, np.random.default_rng(0))]


@pytest.mark.parametrize("seed", range(8))
def test_what_holds_of_all_solvers(seed: int) -> None:
    order = METRICS if seed % 2 else METRICS[::-1]
    made = drawn_inputs(4, 3, seed, bound="b" * (seed % 3))
    given = problem(made, priority_order=order, **LIMITS)
    plans = [solved(given, solver, seed) for solver in (FINE, STOCHASTIC, Coarse())]
    best, stochastic, coarse = map(given.value, plans)
    assert best <= stochastic <= coarse <= given.value(given.home)
    most = 1.15 * given.estimate(given.home)["tail"]["runtime"]
    assert all(given.estimate(plan)["tail"]["runtime"] <= most for plan in plans)
    assert all(made.permitted[range(4), plan].all() for plan in plans)


@pytest.mark.parametrize("case", range(500, 512))
def test_the_heuristic_finds_the_optimum_of_small_cases(case: int) -> None:
    given = problem(drawn_inputs(4, 3, case), **LIMITS)
    best = given.value(solved(given, FINE))
    assert sum(given.value(solved(given, STOCHASTIC, seed)) == best for seed in range(20)) >= 18


def test_fine_tries_every_plan_once() -> None:
    given = problem(drawn_inputs(3, 3, 0, bound="b"))
    plans = tried(given, FINE)
    assert len(set(plans)) == len(plans) == 9 and {plan[1] for plan in plans} == {0}
    with pytest.raises(InputError, match="9 plans, solver.most_plans is 8"):
        solved(given, Fine(most_plans=8))


def test_coarse_has_all_nodes_in_a_region() -> None:
    """Conformance 9."""
    assert tried(problem(drawn_inputs(2, 3, 0)), Coarse()) == [(0, 0), (1, 1), (2, 2)]
    assert tried(problem(drawn_inputs(2, 3, 0, bound="a")), Coarse()) == [(0, 0)]


def test_how_many_nodes_the_heuristic_moves() -> None:
    """Conformance 10: of 3 nodes at least one; a fifth of many, and one more."""
    fifth = Stochastic(**conf_of("stochastic") | {"learning_rate": 0.2})
    assert [fifth.moves(nodes) for nodes in (1, 3, 10)] == [1, 1, 3]
    hot = Stochastic(**conf_of("stochastic") | {"temperature": 1e6})
    plans = tried(problem(drawn_inputs(3, 2, 0)), hot)
    assert len(set(plans)) == 8 and plans[:2] == [(0, 0, 0), (1, 1, 1)]  # coarse ones first


def test_acceptance_looks_at_the_candidate() -> None:
    """Conformance 10; at temperature 0 the published code accepts every candidate."""
    assert acceptance(-0.1, 0.0) == acceptance(0.0, 0.0) == 1
    assert acceptance(0.1, 0.0) == 0
    assert acceptance(0.1, 0.1) == pytest.approx(np.exp(-1))


def best_of(*means: tuple[float, ...], **constraints: Any) -> int:
    """Which of these plans of one node; the last is home's.

    They come to these (runtime, cost, carbon), and to twice as much in the tail.
    """

    def estimate(plan: Plan) -> Estimate:
        average, tail = (
            {name: factor * value for name, value in zip(METRICS, means[plan[0]], strict=True)}
            for factor in (1, 2)
        )
        return {"average": average, "tail": tail}

    given = problem(drawn_inputs(1, len(means), 0), **constraints)
    given.home, given.estimate = (len(means) - 1,), estimate
    return solved(given, FINE)[0]


def test_ranks() -> None:
    """Conformance 13: by carbon, runtime and cost, unless an order is given."""
    plans = (2.0, 2.0, 1.0), (1.0, 1.0, 2.0), (9.0, 9.0, 9.0)
    assert best_of(*plans) == 0
    assert best_of(*plans, priority_order=["runtime", "cost", "carbon"]) == 1
    assert best_of((2.0, 1.0, 1.0), (1.0, 2.0, 1.0), (9.0, 9.0, 9.0)) == 1


@pytest.mark.parametrize(
    ("kind", "value", "fails"),
    [
        ("relative", 200, False),
        ("relative", 166, True),
        ("absolute", 0.4, True),
        ("absolute", 0.5, False),
        ("absolute", None, False),
    ],
)
def test_constraints(kind: str, value: float | None, fails: bool) -> None:
    """Conformance 14: 0.5 where home has 0.3; of soft ones, fewer violations rank first."""
    limits = {"cost": {"type": kind, "value": value}, "carbon": None}
    tails, means = (((1.0, at * 0.5, 1.0), (9.0, at * 0.3, 9.0)) for at in (0.5, 1.0))
    assert best_of(*tails, hard_resource_constraints=limits) == fails
    assert best_of(*means, soft_resource_constraints=limits) == fails


def test_no_plan_keeps_the_hard_constraints() -> None:
    limits = {"hard_resource_constraints": {"carbon": {"type": "absolute", "value": 0}}}
    given = problem(drawn_inputs(3, 2, 0), **limits)
    for solver in (FINE, STOCHASTIC, Coarse()):
        with pytest.raises(InputError, match=f"^{solver.name}: no plan it tries keeps all hard_re"):
            solved(given, solver)
