"""What of a lease the greedy score charges: whole, by the core, by the size of the server."""

from dataclasses import replace

import numpy as np
import pytest

from agents.placement.greedy_objective import GreedyObjective
from agents.scheduler import Decision
from env.observation import ScoreWeights, greedy_scores
from env.sim.cluster import ClusterConfig
from env.sim.raw_env import RawEnv
from tests.agents.moments import (
    BALANCED,
    FAST,
    FAST_TYPE,
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
    weights = ScoreWeights(finish=0, delay=0, rent=1, economy=1, demand=3599.5 * 2)
    scores = np.empty(3)
    greedy_scores(
        decision.env.state, decision.candidates(100), weights.by_objective(BALANCED), scores
    )
    assert scores[FAST] / scores[SLOW] == pytest.approx(7 / (4 / 2))
