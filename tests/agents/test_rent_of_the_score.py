"""What of a lease the greedy score charges, and what agents see of who else will use a server."""

from dataclasses import replace

import numpy as np
import pytest

from agents.placement.greedy_objective import GreedyObjective
from agents.scheduler import Decision
from env.learn.observation import CONTEXT_FEATURES, NODE_FEATURES, write_context, write_nodes
from env.score.greedy_score import ScoreWeights, greedy_scores
from env.sim.declared.hardware import ClusterConfig
from env.sim.forecast.candidates import update_finish_bounds
from env.sim.view.raw_env import RawEnv
from tests.agents.moments import (
    BALANCED,
    FAST,
    FAST_TOO,
    FAST_TYPE,
    LONG,
    SLOW,
    SLOW_TYPE,
    TWO_TYPES,
    Fn,
    chosen,
    moment,
    workflow,
)


def two_prices(fast: float) -> ClusterConfig:
    """An hour of the slow server with its 2 cores costs 1 USD; 8 cores are twice as fast."""
    types = replace(SLOW_TYPE, hourly_rate=1.0), replace(FAST_TYPE, hourly_rate=fast)
    return replace(TWO_TYPES, server_types=types)


# An hour of the slow server with its 2 cores costs 1 USD, one of the fast with its 8 cores 3 USD.
@pytest.mark.parametrize(("weight", "node"), [("rent", SLOW), ("rent_per_core", FAST)])
def test_rent_is_that_of_the_lease_or_of_each_core(weight: str, node: int) -> None:
    decision = moment(ask=Fn(), cluster=two_prices(3))
    only = ScoreWeights.model_validate({"finish": 0, "delay": 0, "rent": 0, weight: 1})
    assert chosen(GreedyObjective(name="greedy_objective", weights=only), decision) == node


def for_rent(**weights: float) -> GreedyObjective:
    """A rule for which only rent counts."""
    only = ScoreWeights(finish=0, delay=0, rent=1, **weights)
    return GreedyObjective(name="greedy_objective", weights=only)


def scores_of_rent(decision: Decision, **weights: float) -> np.ndarray:
    """(N,) greedy scores for which only rent counts."""
    only = ScoreWeights.model_validate({"finish": 0, "delay": 0, "rent": 1, **weights})
    scores = np.empty(len(decision.env.state.nodes))
    by_objective = only.by_objective(BALANCED)
    greedy_scores(decision.env.state, decision.candidates(100), by_objective, scores)
    return scores


# The slow server is a fourth of the other: it counts as 4 ** economy USD if the other's cores are
# not dearer for what they do.
@pytest.mark.parametrize(
    ("economy", "fast", "node"),
    [
        (0, 7, SLOW),
        (1, 7, SLOW),  # 4 against 7
        (2, 7, FAST),  # 16 against 7
        (2, 8, FAST),  # 16 against 8: 0.5 USD for an hour of a slow core on both
        (2, 8.1, SLOW),  # 1 against 8.1
    ],
)
def test_economy_makes_servers_dear_that_are_small(economy: float, fast: float, node: int) -> None:
    decision = moment(ask=Fn(), cluster=two_prices(fast))
    assert chosen(for_rent(economy=economy), decision) == node


# One core-second has arrived in one second, so `demand` cores are expected to be busy.
@pytest.mark.parametrize(
    ("demand", "node"),
    [
        (0.5, SLOW),  # 1 against 7
        (5, SLOW),  # (5 / 2) ** 2 = 6.25 against 7
        (6, FAST),  # (6 / 2) ** 2 = 9 against 7
        (100, FAST),  # (8 / 2) ** 2 = 16 against 7
    ],
)
def test_a_server_is_worth_filling_if_there_is_enough(demand: float, node: int) -> None:
    decision = Decision(RawEnv([1.0], [workflow(Fn())], two_prices(7)), BALANCED)
    assert chosen(for_rent(economy=2, demand=demand), decision) == node


def test_cores_under_a_lease_meet_a_part_of_the_demand() -> None:
    # 2 core-seconds in 3,599.5 s, times 3,599.5 * 2: 4 cores are expected to be busy. The 2 of the
    # slow server are under a lease, so 2 are left to fill another; without its own lease all 4.
    decision = moment((SLOW, Fn()), ask=Fn(), cluster=two_prices(7), later=3599.5)
    scores = scores_of_rent(decision, economy=1, demand=3599.5 * 2)
    assert scores[FAST] / scores[SLOW] == pytest.approx(7 / (4 / 2))


# One core-second has arrived in one second and is not placed: each of these expects 4 busy cores.
@pytest.mark.parametrize(
    "expected",
    [
        {"arrival_use": 4},
        {"arrival_use": 12, "arrival_horizon": 2},
        {"known_use": 4 * 3600},
        {"arrival_use": 3, "known_use": 3600},
    ],
)
def test_a_lease_is_charged_as_far_as_nobody_else_is_expected(expected: dict[str, float]) -> None:
    decision = Decision(RawEnv([1.0], [workflow(Fn())], two_prices(7)), BALANCED)
    whole = scores_of_rent(decision)
    shares = scores_of_rent(decision, own_use=1800, **expected) / whole
    # The slow server is used whole, and by this function for 1 of 2 * 3600 core-seconds; of the 8
    # fast cores 4 are used.
    assert shares[SLOW] == pytest.approx(1800 / 7200)
    assert shares[FAST] == pytest.approx(0.5 + 0.5 * 1800 / 28_800)


def test_a_function_uses_no_more_of_a_lease_than_an_hour_has() -> None:
    # 3 core-hours for a server of 2 cores.
    decision = Decision(RawEnv([1.0], [workflow(Fn(3 * 3_600_000))], two_prices(7)), BALANCED)
    shares = scores_of_rent(decision, own_use=0.5, known_use=4) / scores_of_rent(decision)
    assert shares[SLOW] == pytest.approx(0.5)


def test_cores_under_a_lease_meet_a_part_of_the_load() -> None:
    # As above 4 busy cores are expected, and the 2 of the slow server are under a lease.
    decision = moment((SLOW, Fn()), ask=Fn(), cluster=two_prices(7), later=3599.5)
    shares = scores_of_rent(decision, arrival_use=3599.5 * 2) / scores_of_rent(decision)
    assert shares[SLOW] == pytest.approx(0.0)
    assert shares[FAST] == pytest.approx(1 - 2 / 8)


def seen_use(decision: Decision, feature: str) -> np.ndarray:
    """(N,) a feature of every node."""
    scores = np.zeros(len(decision.env.state.nodes))
    out = np.empty((len(scores), len(NODE_FEATURES)), np.float32)
    write_nodes(decision.env.state, decision.candidates(100), scores, out)
    return out[:, NODE_FEATURES.index(feature)]


# 3 core-hours arrive after an hour, and an hour before the start counts: 1.5 an hour. None of it is
# placed. The slow server has 2 cores, the fast 8.
@pytest.mark.parametrize(
    ("feature", "core_hours", "slow", "fast"),
    [
        ("arrival_use", 3, 1.5 / 2, 1.5 / 8),
        ("known_use", 3, 3 / 2, 3 / 8),
        ("known_use", 12, 2, 12 / 8),  # no more than two servers
    ],
)
def test_agents_see_how_much_of_a_server_will_be_used(
    feature: str, core_hours: int, slow: float, fast: float
) -> None:
    asked = workflow(Fn(core_hours * 3_600_000))
    decision = Decision(RawEnv([3600.0], [asked], two_prices(7)), BALANCED)
    use = seen_use(decision, feature)
    assert use[SLOW] == pytest.approx(slow)
    assert use[FAST] == use[FAST_TOO] == pytest.approx(fast)


# A chain of two core-hours and, beside it, one more function of 2 threads and 2 core-hours: 4
# core-hours in 2 hours, and 3 threads that could begin.
@pytest.mark.parametrize(("feature", "cores"), [("parallel_use", 2), ("queue_use", 3)])
def test_agents_see_how_many_cores_can_be_used_at_once(feature: str, cores: int) -> None:
    hour, wide = Fn(3_600_000), Fn(7_200_000, parallelism=2)
    asked = workflow(hour, hour, wide, edges={(0, 1): 0})
    env = RawEnv([0.0], [asked], two_prices(7))
    use = seen_use(Decision(env, BALANCED), feature)
    assert use[SLOW] == pytest.approx(cores / 2)
    assert use[FAST] == pytest.approx(cores / 8)
    # The first of the chain goes to the slow server, which is up after 10 s. Of its 2 cores, which
    # have a lease, the others take 3 core-hours in 7,210 s, or one for each of 2 threads.
    env.step(*env.place_of(SLOW), 100)
    use = seen_use(Decision(env, BALANCED), feature)
    left = {"parallel_use": 3 * 3600 / 7210, "queue_use": 2.0}[feature]
    assert use[FAST] == pytest.approx((left - 2) / 8, abs=1e-5)
    assert use[SLOW] == pytest.approx(left / 2, rel=1e-4)


def seen_context(env: RawEnv) -> dict[str, float]:
    """What agents see whatever the node, by name."""
    update_finish_bounds(env.state)
    context = np.empty(len(CONTEXT_FEATURES), np.float32)
    write_context(env.state, context)
    return dict(zip(CONTEXT_FEATURES, map(float, context), strict=True))


# As above, on 10 cores that do 2 * 1000 + 8 * 2000 operations a second.
def test_agents_see_what_could_begin_in_all() -> None:
    hour, wide = Fn(3_600_000), Fn(7_200_000, parallelism=2)
    env = RawEnv([0.0], [workflow(hour, hour, wide, edges={(0, 1): 0})], two_prices(7))
    context = seen_context(env)
    assert context["queue_threads"] == pytest.approx(np.log1p(3 / 10))
    assert context["queue_work"] == pytest.approx(np.log1p(10_800_000 / 18_000) / 8)
    assert context["parallel_cores"] == pytest.approx(np.log1p(2 / 10))
    env.step(*env.place_of(SLOW), 100)
    context = seen_context(env)
    assert context["queue_threads"] == pytest.approx(np.log1p(2 / 10))
    assert context["queue_work"] == pytest.approx(np.log1p(7_200_000 / 18_000) / 8)
    assert context["parallel_cores"] == pytest.approx(np.log1p(3 * 3600 / 7210 / 10))


def test_agents_see_what_the_own_workflow_could_begin() -> None:
    # Two workflows: an hour on one thread before another hour, and half an hour on three.
    hour, wide = Fn(3_600_000), Fn(5_400_000, parallelism=3)
    chain = workflow(hour, hour, edges={(0, 1): 0})
    env = RawEnv([0.0, 0.0], [chain, workflow(wide)], two_prices(7))
    context = seen_context(env)
    assert context["queue_threads"] == pytest.approx(np.log1p(4 / 10))
    assert context["workflow_threads"] == pytest.approx(np.log1p(1 / 10))
    assert context["workflow_cores"] == pytest.approx(np.log1p(1 / 10))
    env.step(*env.place_of(SLOW), 100)
    context = seen_context(env)  # of the other workflow
    assert context["queue_threads"] == context["workflow_threads"]
    assert context["workflow_threads"] == pytest.approx(np.log1p(3 / 10))
    assert context["workflow_cores"] == pytest.approx(np.log1p(3 / 10))


# One that takes half an hour at full speed uses one core, one of half a core-second half a core: it
# counts as work for a second.
@pytest.mark.parametrize(("short", "cores"), [(1_800_000, 1.0), (500, 0.5)])
def test_workflows_use_cores_side_by_side(short: int, cores: float) -> None:
    hour = Fn(3_600_000)
    asked = [workflow(hour, hour), workflow(Fn(short))]
    env = RawEnv([0.0, 0.0], asked, two_prices(7))
    assert seen_context(env)["parallel_cores"] == pytest.approx(np.log1p((2 + cores) / 10))


def test_agents_see_the_threads_on_the_whole_server() -> None:
    # 3 on one of the fast server's two nodes, 1 on the other: 8 cores; 1 on the 2 slow cores.
    placed = (FAST, Fn(LONG, parallelism=3)), (FAST_TOO, Fn(LONG)), (SLOW, Fn(LONG))
    load = seen_use(moment(*placed, ask=Fn()), "server_load")
    assert load == pytest.approx([1 / 2, 4 / 8, 4 / 8])


# A workflow has a function of 1,000 s on the slow server, up after 10 s, and one of 3,000 s on the
# fast server, up after 60 s. With 2 more threads on the 2 slow cores the first ends 500 s later,
# and could end 2,050 s later before its workflow does.
def test_agents_see_what_those_who_share_cores_lose() -> None:
    asked = [workflow(Fn(LONG), Fn(6 * LONG)), workflow(Fn(2 * LONG, parallelism=2))]
    env = RawEnv([0.0, 0.0], asked, TWO_TYPES)
    env.step(*env.place_of(SLOW), 100)
    env.step(*env.place_of(FAST), 100)
    decision = Decision(env, BALANCED)
    # The critical path is 6,000 s at the cluster's speed. The engine's threads do 666 operations a
    # second, not 2000 / 3.
    lost, near = 500 / 6000, 0.01
    ends = seen_use(decision, "later_ends")
    assert ends == pytest.approx([np.log1p(10 * lost), 0, 0], rel=near)
    ends = seen_use(decision, "later_ends_tight")
    assert ends == pytest.approx([np.log1p(10 * lost * 500 / (2050 + 500)), 0, 0], rel=near)
    assert seen_use(decision, "delay_others") == pytest.approx([0, 0, 0])


@pytest.mark.parametrize("feature", ["arrival_use", "known_use", "parallel_use", "queue_use"])
def test_other_leases_are_taken_from_the_use_of_a_server(feature: str) -> None:
    # What has arrived, and what of it is not placed, is next to nothing, but for the thread that
    # could begin; 2 slow cores have a lease.
    decision = moment((SLOW, Fn(1)), ask=Fn(1), cluster=two_prices(7), later=1.0)
    use = seen_use(decision, feature)
    asked = 1 if feature == "queue_use" else 0
    assert use[SLOW] == pytest.approx(asked / 2, abs=1e-3)
    assert use[FAST] == pytest.approx((asked - 2) / 8, abs=1e-3)
