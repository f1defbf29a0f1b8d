"""Timers have room, however many are out of date, and the earliest that counts fires."""

import numpy as np
import pytest

from agents.order.funcsched import FuncSched
from env.sim.declared.images import Images
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.events.endings import bring_back, take_down
from env.sim.events.submissions import schedule_arrival
from env.sim.state.records import ARRIVAL, LEASE_END, NONE
from env.sim.state.timers import set_timer
from env.sim.view.raw_env import RawEnv
from tests.env.sim.test_sharing import chain, env_of, order
from tests.env.sim.test_ways_out import CHAIN, CLUSTER, IMAGES, NO_EDGES, PROBE, WORLDS, go_on
from tests.env.small import held


@pytest.mark.parametrize("world", WORLDS)
def test_a_server_goes_down_and_comes_back_a_hundred_times_at_one_moment(world: str) -> None:
    """Two functions of 4,000 s, for which a server is leased for two hours.

    One is placed on server 0 each time, while the other is to be decided.
    """
    long = WorkflowTemplate("long", [4_000_000], [3], [1], NO_EDGES, [])
    images = Images(np.array([5.0]), {long: np.array([0])})
    env = RawEnv([0.0, 0.0], [long, long], CLUSTER, rules=WORLDS[world], images=images)
    for _ in range(100):
        env.step("s", 0, 0, 3)
        take_down(env.state, 0)
        bring_back(env.state, 0)
        go_on(env)
        assert env.time == 0.0
        assert env.state.cluster[0]["timers_size"] <= len(env.state.timers)
    for server in (0, 1):
        env.step("s", server, 0, 3)
    assert env.done
    end = 4_015.0 if "hourly" in world else 4_005.0
    assert [workflow.completion_time for workflow in env.workload.workflows] == [end, end]
    assert env.total_rent == pytest.approx(0.0 if "unpaid" in world else 102 * 2 * 0.36)


@pytest.mark.parametrize("world", WORLDS)
def test_an_arrival_takes_the_place_of_timers_that_are_out_of_date(world: str) -> None:
    """As when a trace goes on."""
    env = RawEnv([0.0, 50.0], [CHAIN, PROBE], CLUSTER, rules=WORLDS[world], images=IMAGES)
    cluster, timers = env.state.cluster, env.state.timers
    while cluster[0]["timers_size"] < len(timers):
        set_timer(env.state, 60.0, LEASE_END, 0, NONE)
    schedule_arrival(env.state, 1)
    left = timers[: cluster[0]["timers_size"]]
    assert left["index"].min() > NONE
    assert left["time"][left["major"] == ARRIVAL].tolist() == [50.0, 50.0]


@pytest.mark.parametrize("name", ["stride", "hierarchical_stride"])
def test_who_starves_goes_first_though_the_turn_had_been_another_tenants(name: str) -> None:
    """a's last, the oldest of the tenant in turn, starves at 115 s; b's large one does at 110 s."""
    arriving = {
        "first": (0.0, "a", chain(70.0, memory=80)),
        "second": (1.0, "a", chain(10.0, memory=90)),
        "long": (60.0, "b", chain(1000.0, memory=10)),
        "short": (60.0, "b", chain(10.0, memory=50)),
        "last": (65.0, "a", chain(1000.0, memory=70)),
    }
    times, tenants, templates = zip(*arriving.values(), strict=True)
    how = order(name, FuncSched(starve_threshold=50.0))
    env = env_of(templates, tenants, how, held(a=1000, b=1), times=times)
    began = dict(zip(env.runs["wf_id"].tolist(), env.runs["dispatch_time"].tolist(), strict=True))
    # `short` would go before `long`, and has no room from 80 s on.
    assert [began[number] for number in range(5)] == [0.0, 70.0, 110.0, 1080.0, 80.0]
