"""The placement `deployed`: functions run where the plan says that was active at the arrival."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.baseline import known_baselines, make_baselines
from env.base.errors import InputError
from env.sim.check.validate import violations
from env.sim.declared.regions import Region, Regions
from env.sim.episode.recording import episode_of
from tests.agents.deployment.in_regions import (
    AWAY,
    HOME,
    chain,
    episode,
    played,
    scheduler,
)
from tests.agents.moments import TWO_TYPES

HOUR = 3600.0
SHORT = chain(2.0, 2.0)
"""Away it emits less."""
BOUND = replace(SHORT, regions=(Regions(), Regions(allowed=(HOME,))))


def test_what_runs_keeps_its_plan() -> None:
    """A plan is active from 2 h on. The first workflow goes on at home at 5 h."""
    env = episode([0.0, 2 * HOUR - 1, 2 * HOUR], chain(5 * HOUR, 2.0))
    assert played(env, scheduler(home_share=0.0)) == [[HOME] * 2, [HOME] * 2, [AWAY] * 2]


def test_some_calls_stay_at_home_by_the_seed_of_the_episode() -> None:
    """Conformance 12; nothing of an episode is left for the next one."""
    env, player = episode([0.0, *np.linspace(2 * HOUR, 5 * HOUR, 1000)], SHORT), scheduler()
    regions = played(env, player)
    assert {each[0] == each[1] for each in regions} == {True}
    share = np.mean([each == [HOME] * 2 for each in regions[1:]])
    assert share == pytest.approx(0.1, abs=0.03)
    assert played(env, player) == regions == played(env, scheduler())
    assert played(env, player, seed=1) != regions


def test_home_and_a_coarse_plan_of_bound_functions_stay_at_home() -> None:
    (home,) = make_baselines(["home"])
    for template, player in ((SHORT, home), (BOUND, scheduler(solver="coarse"))):
        env = episode([0.0, 3 * HOUR], template)
        assert played(env, player) == [[HOME] * 2] * 2
    assert played(env, scheduler(home_share=0.0)) == [[HOME] * 2, [AWAY, HOME]]


@settings(deadline=None, max_examples=25)
@given(
    seconds=st.lists(st.sampled_from([0.5, 60.0, 2 * HOUR]), min_size=3, max_size=3),
    regions=st.lists(st.sampled_from([*BOUND.regions]), min_size=3, max_size=3),
    size=st.sampled_from([0, 10**6, 10**9]),
    times=st.lists(st.floats(0, 60 * HOUR), min_size=3, max_size=30),
    solver=st.sampled_from(["coarse", "fine", "stochastic"]),
)
def test_functions_run_where_they_may_and_as_planned_when_they_arrived(
    seconds: list[float], regions: list[Regions], size: int, times: list[float], solver: str
) -> None:
    env = episode(sorted(times), chain(*seconds, size=size, regions=regions))
    player = scheduler(solver=solver, tokens_per_solve=0.5, solves_per_day=4, expiry=30 * HOUR)
    found = played(env, player)
    assert violations(episode_of(env, "episode", "a test")) == []
    (plan_at,) = player._config.placement._plans.values()
    for time, each in zip(env.arrival_times, found, strict=True):
        allowed, plan = [[HOME] * 3], plan_at(time)
        if plan is not None:
            allowed.append([*plan.instances(int(time // HOUR) % 24, 1.0).values()])
        assert each in allowed
        for there in allowed:
            assert all(
                at == HOME or may == Regions() for at, may in zip(there, regions, strict=True)
            )
    assert found == played(env, player)


@pytest.fixture
def plan(tmp_path: Path) -> str:
    """A file by which the first of two functions is away from 12 h on."""
    hours = {
        hour: {
            "current_deployment": {"instances": {"0": first, "1": AWAY}, "metrics": {}},
            "home_deployment": {"instances": {"0": HOME, "1": HOME}, "metrics": {}},
        }
        for hour, first in ((0, HOME), (12, AWAY))
    }
    called = {"workflow_name": "shop", "workflow_version": "0.0.1"}
    text = json.dumps(called | {"expiry_time": 0, "home_share": 0.0, "hours": hours})
    (tmp_path / "plan.json").write_text(text)
    return str(tmp_path / "plan.json")


def test_a_plan_from_a_file_is_obeyed(plan: str) -> None:
    env = episode([0.0, 13 * HOUR], SHORT)
    assert played(env, scheduler(plan=plan)) == [[HOME, AWAY], [AWAY, AWAY]]


def test_what_cannot_be_obeyed_gets_one_line(plan: str) -> None:
    env, file = episode([0.0], SHORT), Path(plan)
    other = episode([0.0], replace(SHORT, name="shop-0.0.2"))
    with pytest.raises(InputError, match="a plan of shop-0.0.1, one of shop-0.0.2 is needed"):
        played(other, scheduler(plan=plan))
    with pytest.raises(InputError, match="solver and plan are both given"):
        scheduler(plan=plan, solver="fine")
    with pytest.raises(InputError, match="hours.0: 1 must not run in aws:away"):
        played(episode([0.0], BOUND), scheduler(plan=plan))
    file.write_text(file.read_text().replace(AWAY, "aws:awa"))
    with pytest.raises(InputError, match="hours.0: region 'aws:awa' is unknown, did you mean"):
        played(env, scheduler(plan=plan))
    with pytest.raises(InputError, match="it chooses among regions: cluster.regions has none"):
        played(episode([0.0], SHORT, TWO_TYPES), scheduler())
    here = replace(TWO_TYPES, regions={"here": Region()})
    with pytest.raises(InputError, match="cluster: home_region: String should match pattern"):
        played(episode([0.0], SHORT, here), scheduler())
    assert not {"home", "caribou_fine"} & set(known_baselines())
