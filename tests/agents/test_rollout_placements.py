"""Placement rules that look ahead in copies of the simulator, on cases to work out by hand."""

import pytest

from agents.placement.best_of import BestOf
from agents.placement.greedy_objective import GreedyObjective
from agents.placement.rollout import Rollout
from agents.scheduler import Decision
from env.score.greedy_score import ScoreWeights
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.view.raw_env import RawEnv
from tests.agents.moments import (
    BALANCED,
    FAST,
    FAST_TYPE,
    LONG,
    SLOW,
    SLOW_TYPE,
    TWO_TYPES,
    Fn,
    chosen,
    workflow,
)

WEIGHTS = ScoreWeights(finish=1, delay=1, rent=1)
BIG = Fn(memory=2000)
"""Fits on the fast nodes alone."""


def rolled_out(decision: Decision, clairvoyant: bool) -> int:
    return chosen(Rollout(name="rollout", clairvoyant=clairvoyant, weights=WEIGHTS), decision)


def test_rollout_sees_what_greedy_misses() -> None:
    # The second function has to go to the fast server, 3.6 USD. For the first one alone the slow
    # server is 3.24 USD cheaper; both on the fast one are 0.36 USD cheaper, and sooner done.
    env = RawEnv([0.0], [workflow(Fn(), BIG, edges={(0, 1): 0})], TWO_TYPES)
    decision = Decision(env, BALANCED)
    assert chosen(GreedyObjective(name="greedy_objective", weights=WEIGHTS), decision) == SLOW
    assert rolled_out(decision, clairvoyant=False) == FAST


def test_only_the_clairvoyant_knows_what_arrives_later() -> None:
    # The same need of the fast server, in a workflow that arrives a second later.
    env = RawEnv([0.0, 1.0], [workflow(Fn()), workflow(BIG)], TWO_TYPES)
    decision = Decision(env, BALANCED)
    assert rolled_out(decision, clairvoyant=False) == SLOW
    assert rolled_out(decision, clairvoyant=True) == FAST


HASTY = ScoreWeights(finish=1, delay=0, rent=0)
LONG_FUNCTION = Fn(LONG)
"""Done after 10 + 1,000 s on the slow server and 60 + 500 s on the fast one: `HASTY` takes that."""


@pytest.mark.parametrize(
    ("arrival_times", "workflows", "clairvoyant", "node"),
    [
        # As above: a function alone is cheaper on the slow server, with a big one on the fast.
        ([0.0], [workflow(LONG_FUNCTION)], True, SLOW),
        ([0.0], [workflow(LONG_FUNCTION, BIG, edges={(0, 1): 0})], False, FAST),
        ([0.0, 1.0], [workflow(LONG_FUNCTION), workflow(BIG)], False, SLOW),
        ([0.0, 1.0], [workflow(LONG_FUNCTION), workflow(BIG)], True, FAST),
    ],
)
def test_best_of_does_as_the_rule_that_comes_out_best(
    arrival_times: list[float], workflows: list[WorkflowTemplate], clairvoyant: bool, node: int
) -> None:
    decision = Decision(RawEnv(arrival_times, workflows, TWO_TYPES), BALANCED)
    rule = BestOf(
        name="best_of", clairvoyant=clairvoyant, rules=({"weights": HASTY}, {"weights": WEIGHTS})
    )
    assert chosen(GreedyObjective(name="greedy_objective", weights=HASTY), decision) == FAST
    assert chosen(rule, decision) == node


def test_rollout_without_a_difference_does_as_greedy() -> None:
    # Both servers are rented, and the workflow ends with its long function wherever the last one
    # runs: after 60 + 0.5 s on the fast nodes, which come first here, after 10 + 1 s on the slow.
    cluster = ClusterConfig(1000, 1e6, 1e5, 1e4, (FAST_TYPE, SLOW_TYPE))
    env = RawEnv([0.0], [workflow(Fn(), Fn(), Fn(10**6), Fn())], cluster)
    for node in (0, 2, 0):
        env.step(*env.place_of(node), 100)
    decision = Decision(env, BALANCED)
    assert chosen(GreedyObjective(name="greedy_objective", weights=WEIGHTS), decision) == 2
    assert rolled_out(decision, clairvoyant=True) == 2
