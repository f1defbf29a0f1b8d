"""What is planned from in the simulator, and when: by hand."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from agents.deployment.manager import DeploymentManager, InCluster, forecast, solves_a_day
from agents.deployment.solvers.fine import Fine
from env.base.errors import InputError
from env.score.metrics import FinishedEpisode
from env.score.reward import Objective
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.regions import Region, Regions
from env.sim.declared.rules import Lease, Rules
from env.workloads.code.configuration import Constraints
from tests.agents.deployment.in_regions import AWAY, CLUSTER, HOME, PER_USE, chain, episode
from tests.agents.deployment.tables import problem, settings_with
from tests.episodes import begun

HOUR, DAY = 3600.0, 86400.0
SHORT = chain(2.0)
"""A call of it is 2 GB * s; at home it emits 0.6 g, and away, in 4 s, 0.4 g."""
BOUND = chain(1.0, 1.0, regions=[Regions(disallowed=(AWAY,)), Regions()])


def test_what_is_declared_is_estimated_and_comes_to_pass() -> None:
    """100 s at home; 0.5 s and 20 s for 2 GB; 900 s, twice as long away."""
    template = chain(100.0, 900.0, size=2 * 10**9)
    env = episode([0.0], template)
    made = InCluster(env, template)
    found = [*problem(made).estimate((0, 1))["average"].values()]
    usd = 0.5 + 100 * 0.01 + 2 * (0.5 + 1800 * 0.01) + 2 * 0.09
    grams = 0.1 * 300 + 1.8 * 2 * 50 + 2 * 0.5 * (300 + 50) / 2
    assert found == pytest.approx([100 + 20.5 + 1800, usd, grams])
    for kind in CLUSTER.server_types:
        env.step(kind.name, 0, 0, 1024)
    carbon = FinishedEpisode(env.state, Objective(time_weight=1, cost_weight=1), CLUSTER.power)
    assert found == pytest.approx([env.time, env.total_rent, carbon.carbon])
    # The entry is called from home, half a second away; within a region 2 GB take 2 s.
    assert problem(made).estimate((1, 1))["average"]["runtime"] == pytest.approx(
        0.5 + 200 + 2 + 1800
    )


def test_a_lease_is_paid_by_cores_and_time() -> None:
    """36 USD an hour for 4 cores: 0.01 USD for a second of all of them."""
    wide = replace(SHORT, parallelism=np.array([9]))
    free = InCluster(episode([0.0], wide, lease=Lease(kind="always", charged=False)), wide)
    assert not free.usd_per_s.any() and not free.request.any()
    found = InCluster(episode([0.0], wide, lease=Lease()), wide)
    assert found.usd_per_s[0].tolist() == pytest.approx([0.01, 0.02])
    assert found.executions[0] == [[0.5], [1.0]]


def test_where_nodes_may_run() -> None:
    """Where it is allowed, on a server that has the memory; home is one of these."""
    small = replace(CLUSTER.server_types[1], memory=512)
    cluster = replace(CLUSTER, server_types=(CLUSTER.server_types[0], small))
    bound = replace(BOUND, memory_req=np.array([500, 500]))
    made = [InCluster(episode([0.0], each, cluster), each) for each in (bound, SHORT)]
    found = [each.permitted.tolist() for each in made]
    assert found == [[[True, False], [True, True]], [[True, False]]]
    with pytest.raises(
        InputError, match="workflow 'shop-0.0.1': 0 cannot run in aws:away, which is home"
    ):
        InCluster(episode([0.0], BOUND, replace(CLUSTER, home=AWAY)), BOUND)


def test_a_forecast_has_the_hours_to_come_by_the_hour_of_the_day() -> None:
    """Of 48 hours, which repeat, those from 30 to 53; errors are drawn every hour."""
    state = episode([0.0], SHORT, with_grid([*map(float, range(48))])).state
    found = forecast(state, 30 * HOUR + 1)
    assert found[:, 1].tolist() == [*range(6), *range(30, 48)]
    assert found[:, 0].tolist() == [300.0] * 24
    later = begun([0.0], [SHORT], with_grid([*map(float, range(48))]), begin_hour=29)
    assert forecast(later.state, HOUR + 1).tolist() == found.tolist()
    state = episode([0.0], SHORT, replace(CLUSTER, forecast_error=0.1)).state
    drawn = np.array([forecast(state, hour * HOUR)[5, 0] for hour in range(500)]) / 300
    assert (drawn.mean(), drawn.std()) == (pytest.approx(1, abs=0.02), pytest.approx(0.1, abs=0.02))


def with_grid(hours: list[float]) -> ClusterConfig:
    """`CLUSTER` with these intensities away, in g/kWh."""
    power = {"pue": 2.0, "carbon_intensity_g_per_kwh": hours}
    away = Region(price=2.0, relative_performance=0.5, power=power)
    return replace(CLUSTER, regions=CLUSTER.regions | {AWAY: away})


def manager(
    calls: Sequence[float], cluster: ClusterConfig = CLUSTER, begin_hour: int = 0, **settings: Any
) -> DeploymentManager:
    made, rng = settings_with(**settings), np.random.default_rng(0)
    rules = Rules(lease=PER_USE)
    env = begun(calls, [SHORT] * len(calls), cluster, rules=rules, begin_hour=begin_hour)
    return DeploymentManager(env, SHORT, Constraints(), Fine(most_plans=9), made, rng)


def test_tokens_buy_plans() -> None:
    """Conformance 23."""
    loop = manager(range(10), tokens_per_solve=5)
    assert [loop.tokens(time) for time in (0.0, 5.0, 10.0, HOUR)] == [0, 10, 20, 20]
    assert loop.plan_at(HOUR) is None
    plan = loop.plan_at(2 * HOUR)
    assert plan is not None and list(plan.hours) == [0, 6, 12, 18]
    counts = [solves_a_day(tokens, settings_with(tokens_per_solve=5)) for tokens in (4, 5, 39, 1e9)]
    assert counts == [0, 1, 6, 24]
    assert solves_a_day(0, settings_with(tokens_per_solve=0, solves_per_day=8)) == 8


def test_calls_count_from_the_day_after_the_last_solve() -> None:
    loop = manager([0, 1, 2 * HOUR, DAY, DAY + 1, DAY + 2], tokens_per_solve=4)
    loop.plan_at(DAY)
    assert [loop.tokens(time) for time in (DAY, DAY + 1, DAY + HOUR)] == [0, 2, 6]
    # 6 tokens buy no more than the plan that there is.
    assert len(loop.plan_at(DAY + 9 * HOUR).hours) == 1
    more = manager([0, 1, 2 * HOUR, DAY, DAY + 1, DAY + 2], tokens_per_solve=3)
    assert [len(more.plan_at(DAY + hours * HOUR).hours) for hours in (1.9, 2)] == [1, 2]
    from_noon = manager([0, 1, 2 * HOUR, DAY / 2, DAY / 2 + 1], tokens_per_solve=4, begin_hour=36)
    from_noon.plan_at(DAY)
    assert [from_noon.tokens(DAY / 2 + seconds) for seconds in (0, 1, 2)] == [0, 2, 4]


@pytest.mark.parametrize(("seconds", "begin"), [(600, 2), (3600, 2), (3601, 3)])
def test_a_staged_plan_is_active_at_the_first_check_after_redeployment(
    seconds: float, begin: int
) -> None:
    loop = manager(range(10), redeployment=seconds)
    assert loop.plan_at(begin * HOUR) is not None
    assert loop.plan_at(begin * HOUR - 1) is None, "as if it had been asked before"


def test_a_plan_expires_and_is_made_again() -> None:
    loop = manager([*range(10), *range(int(DAY), int(DAY) + 10)], expiry=3 * HOUR)
    has_plan = [loop.plan_at(time) is not None for time in (4 * HOUR - 1, 4 * HOUR, DAY + HOUR)]
    assert has_plan == [True, False, False]
    assert loop.plan_at(DAY + 2 * HOUR) is not None


def test_other_intensities_are_news() -> None:
    """50 g on the first day, 200 on the second: then a call emits 1.6 g away."""
    calls = [*range(10), *range(int(DAY), int(DAY) + 10)]
    loop = manager(calls, with_grid([*[50.0] * 24, *[200.0] * 24]))
    regions = []
    for time in (2 * HOUR, DAY + 2 * HOUR - 1, DAY + 2 * HOUR):
        plan = loop.plan_at(time)
        regions.append(plan.instances(2, 1.0)["0"])
    assert regions == [AWAY, AWAY, HOME]
