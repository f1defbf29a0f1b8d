"""Servers go down, drain and come back; functions are killed, skipped and fail."""

import numpy as np
import pytest

from agents.order.chosen import Chosen
from agents.order.fcfs import Fcfs
from agents.order.srtf import Srtf
from env.base.errors import InputError
from env.sim.assembly.new_state import reset
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.images import Images
from env.sim.declared.keep_alive_policy import Lru, NoKeepAlive
from env.sim.declared.rules import Lease, Rules
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.events.endings import bring_back, drain, skip_function, take_down
from env.sim.events.engine import play
from env.sim.events.submissions import end_function, schedule_arrival
from env.sim.forecast.candidates import forecast_placements
from env.sim.node.keep_alive import prewarm
from env.sim.state.records import ARRIVAL, COMPLETED, FAILED, KILLED, LEASE_END, NONE
from env.sim.state.timers import set_timer
from env.sim.view.raw_env import RawEnv
from tests.env.small import always_up, chain, cluster_of, functions
from tests.episodes import begun
from tests.recount import assert_recounted

PHASES = {
    "server starting": 30.0,
    "container starting": 37.0,
    "data coming": 44.0,
    "running": 58.0,
    "idle": 75.0,
}
"""What function 1 of `CHAIN` is about on server 0 where servers start by the hour, see `chain`."""

CLUSTER = ClusterConfig(1_000, 1e12, 1e12, 100.0, (ServerType("s", 2, 0.36, 10.0, 1, 2, 4),))
CHAIN = chain(10_000, 20_000, memory=3, size=800)
PROBE = functions(1_000)
DIAMOND = WorkflowTemplate(
    "diamond",
    [10_000] * 5,
    [1] * 5,
    [1] * 5,
    [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)],
    [100, 100, 1000, 1000, 100],
)
IMAGES = Images(np.array([5.0, 5.0, 0.0]), {CHAIN: np.array([0, 1]), PROBE: np.array([2])})
WORLDS = {
    f"{dispatch}, {kind}{'' if charged else ', unpaid'}": Rules(
        order=Fcfs() if dispatch == "queued" else None,
        placement="asked",
        lease=Lease(kind=kind, charged=charged),
        keep_alive=Lru(),
    )
    for dispatch in ("immediate", "queued")
    for kind, charged in (("hourly", True), ("always", True), ("always", False))
}


def go_on(env: RawEnv) -> None:
    """Plays on after servers have changed or functions were skipped."""
    assert_recounted(env.state)
    env._play_on(play(env.state))


def state_names(env: RawEnv) -> list[str]:
    return [server.state_name for server in env.cluster.servers["s"]]


@pytest.mark.parametrize(
    ("world", "phase"),
    [
        (world, phase)
        for world in WORLDS
        for phase in PHASES
        if phase != "server starting" or "hourly" in world
    ],
)
def test_a_server_goes_down_and_comes_back(world: str, phase: str) -> None:
    """In each phase of function 1 of the chain, on server 0.

    By the hour: function 0 starts its server until 10 and its container until 15, runs until 25.
    Function 1 then starts server 0 until 35, its container until 40, reads 800 bytes at 100 a
    second until 48, and runs until 68. Where servers are always up, all this is 10 s earlier, from
    25 on 20 s. A function of another workflow arrives in the midst; it is when somebody decides.
    """
    hourly = "hourly" in world
    time = PHASES[phase] - (0.0 if hourly else 20.0)
    env = RawEnv([0.0, time], [CHAIN, PROBE], CLUSTER, rules=WORLDS[world], images=IMAGES)
    env.step("s", 1, 0, 3)
    env.step("s", 0, 0, 3)
    assert env.time == time
    rent = env.total_rent
    take_down(env.state, 0)
    go_on(env)
    first, second = env.workload.workflows[0].functions
    assert state_names(env) == ["down", "up"]
    assert env.state.images["warm"].tolist() == [1, 0, 0]
    assert env.total_rent == rent
    assert first.completion_time == (25.0 if hourly else 15.0)
    if phase == "idle":
        assert second.completion_time == (68.0 if hourly else 48.0)
    else:
        assert second.state == "SUBMITTED"
        assert second.place is None
    with pytest.raises(InputError, match=r"server s 0 is down, it takes nothing new$"):
        env.step("s", 0, 0, 1)
    waiting = env.current_function
    candidates = forecast_placements(env.state, waiting.memory_req)
    assert candidates["feasible"].tolist() == [0, 1]
    assert candidates["finish_time"][0] == np.inf
    bring_back(env.state, 0)
    go_on(env)
    assert state_names(env) == ["off" if hourly else "starting", "up"]
    while not env.done:
        # The one that was killed goes where its data are, the other to the server that is back.
        env.step("s", 1 if env.current_function.wf_id == 0 else 0, 0, 3)
        assert_recounted(env.state)
    if phase != "idle":
        # A container for 5 s, the data at 1e12 bytes a second, and 20 s of work, all of it.
        assert second.completion_time == pytest.approx(time + 5.0 + 20.0)
        assert second.place == ("s", 1, 0)
    record = env.state.functions[env.function_index(0, 1)]
    assert record["attempt"] == (0 if phase == "idle" else 1)
    probe = env.workload.workflows[1].functions[0]
    assert probe.completion_time == time + 10.0 + 1.0
    outcomes = env.runs["outcome"][(env.runs["wf_id"] == 0) & (env.runs["fn_id"] == 1)]
    assert outcomes.tolist() == ([COMPLETED] if phase == "idle" else [KILLED, COMPLETED])
    # Each server was leased once, and the one that came back again.
    assert env.total_rent == pytest.approx(0.0 if "unpaid" in world else 3 * 0.36)


@pytest.mark.parametrize("world", WORLDS)
def test_nothing_new_comes_to_a_server_that_drains(world: str) -> None:
    """Function 1 runs on server 0 at the time at which the probe comes, and ends as it would."""
    hourly = "hourly" in world
    time = 58.0 if hourly else 38.0
    env = RawEnv([0.0, time], [CHAIN, PROBE], CLUSTER, rules=WORLDS[world], images=IMAGES)
    env.step("s", 1, 0, 3)
    env.step("s", 0, 0, 3)
    drain(env.state, 0)
    go_on(env)
    assert state_names(env) == ["draining", "up"]
    with pytest.raises(InputError, match=r"server s 0 is draining, it takes nothing new$"):
        env.step("s", 0, 0, 1)
    assert forecast_placements(env.state, 1)["feasible"].tolist() == [0, 1]
    env.step("s", 1, 0, 1)
    assert env.done
    assert env.workload.workflows[0].completion_time == (68.0 if hourly else 48.0)
    # Its container does not stay warm where nobody could use it.
    assert env.state.images["warm"].tolist() == [1, 0, 1]
    assert KILLED not in env.runs["outcome"]


def test_a_server_out_of_service_is_not_forecast_as_its_equal_that_is_off() -> None:
    env = RawEnv([0.0], [PROBE], CLUSTER)
    for change in (drain, take_down):
        change(env.state, 1)
        assert forecast_placements(env.state, 1)["feasible"].tolist() == [1, 0]


def test_a_server_that_drains_is_neither_chosen_nor_prewarmed() -> None:
    """Best fit would take node 0, which has less memory; so would a container started ahead."""
    kinds = [ServerType(name, 1, 0.0, 0.0, 1, 1, memory) for name, memory in (("a", 4), ("b", 3))]
    cluster = cluster_of(*kinds)
    own = always_up(Fcfs(), Lru(), placement="worst_fit")
    env = RawEnv([5.0], [PROBE], cluster, rules=own, images=IMAGES)
    assert env.runs["node"].tolist() == [0]
    reset(env.state)
    drain(env.state, 0)
    env._taken = []
    go_on(env)
    assert env.runs["node"].tolist() == [1]
    # Image 2 has no container on node 0 only: the most free memory is there.
    for drained, node in ((False, 0), (True, 1)):
        reset(env.state)
        if drained:
            drain(env.state, 0)
        env.state.images[2]["last_end"] = 0.0
        env.state.images[2]["keep_until"] = 100.0
        prewarm(env.state, 2, 1.0)
        assert env.state.nodes["idle_memory"].tolist() == [int(node == 0), int(node == 1)]


def test_what_was_to_be_chosen_is_asked_again() -> None:
    """Not only when the next event comes, at 50."""
    images = Images(np.zeros(6), {DIAMOND: np.arange(5), PROBE: np.array([5])})
    own = always_up(Chosen(), NoKeepAlive())
    env = RawEnv([0.0, 50.0], [DIAMOND, PROBE], CLUSTER, rules=own, images=images)
    for change, what in ((drain, 0), (take_down, 0), (bring_back, 0), (skip_function, 4)):
        change(env.state, what)
        go_on(env)
        assert (env.time, env.waiting) == (0.0, (0,))


LARGE = functions(10_000, memory=8, name="large")
WITH_GPU = functions(10_000, name="gpu", resources={"gpu": [1]})


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("template", [LARGE, WITH_GPU], ids=lambda each: each.name)
def test_what_only_a_server_that_is_down_holds_waits_and_nobody_behind_it(
    world: str, template: WorkflowTemplate
) -> None:
    """0 and 2 need server 1, which is down up to 30; 1 and 3 are done on server 0 meanwhile."""
    cold = 0.0 if "always" in world else 10.0
    kinds = (
        ServerType("small", 1, 0.36, cold, 1, 2, 4),
        ServerType("large", 1, 0.36, cold, 1, 2, 8, resources={"gpu": 1}),
    )
    env = RawEnv(
        [0.0, 0.0, 20.0, 20.0, 30.0],
        [template, PROBE, template, PROBE, PROBE],
        ClusterConfig(1_000, 1e12, 1e12, 100.0, kinds),
        rules=WORLDS[world],
        images=Images.by_name([template, PROBE], 0.0),
    )
    reset(env.state)
    take_down(env.state, 1)
    go_on(env)
    assert (env.time, env.current_function.wf_id) == (0.0, 1)
    assert forecast_placements(env.state, 1)["feasible"].tolist() == [1, 0]
    env.step("small", 0, 0, 1)
    assert (env.time, env.current_function.wf_id) == (20.0, 3)
    assert_recounted(env.state)
    env.step("small", 0, 0, 1)
    assert (env.time, env.current_function.wf_id) == (30.0, 4)
    bring_back(env.state, 1)
    go_on(env)
    placed = []
    while not env.done:
        placed.append((env.time, env.current_function.wf_id))
        large = env.current_function.wf_id < 4
        env.step("large" if large else "small", 0, 0, env.current_function.memory_req)
        assert_recounted(env.state)
    # In the queue 2 waits for what 0 holds, and 4 behind it.
    then = 40.0 + cold if "queued" in world else 30.0
    assert placed == [(30.0, 0), (then, 2), (then, 4)]
    assert np.sort(env.runs, order="wf_id")["joined_time"].tolist() == [0.0, 0.0, 20.0, 20.0, 30.0]


def test_leases_are_not_renewed_for_ever_where_nothing_fits() -> None:
    """The server that is up is too small for what waits; it is always up and paid by the minute."""
    kinds = [ServerType(name, 1, 0.6, 0.0, 1, 1, memory) for name, memory in (("a", 1), ("b", 4))]
    cluster = cluster_of(*kinds)
    own = Rules(order=Fcfs(), lease=Lease(kind="always", step=60.0), keep_alive=Lru())
    env = RawEnv([0.0], [CHAIN], cluster, rules=own, images=IMAGES)
    reset(env.state)
    take_down(env.state, 1)
    with pytest.raises(InputError, match=r"1 functions wait at 0\.0 s, and no server in service"):
        go_on(env)
    assert env.total_rent == pytest.approx(2 * 0.01)


def test_one_that_was_killed_has_all_its_work_before_it_with_srtf() -> None:
    """Of 20 s it has executed 15 when it is killed: one of 10 s goes first, though 5 were left."""
    long, short = functions(20_000), functions(10_000)
    images = Images(np.zeros(1), {each: np.zeros(1, int) for each in (long, short, PROBE)})
    cluster = cluster_of(ServerType("s", 2, 0.0, 0.0, 1, 1, 1))
    own = always_up(Srtf(check_interval=100.0), NoKeepAlive(), placement="asked")
    env = RawEnv([0.0, 15.0, 15.0], [long, PROBE, short], cluster, rules=own, images=images)
    env.step("s", 0, 0, 1)
    take_down(env.state, 0)
    go_on(env)
    order = []
    while not env.done:
        order.append((env.time, env.current_function.wf_id))
        env.step("s", 1, 0, 1)
    assert order == [(15.0, 1), (16.0, 2), (26.0, 0)]
    assert env.time == 46.0


def diamond(dispatch: str = "immediate") -> RawEnv:
    """Function 0 runs, until 20; the probe is to be placed at 12."""
    images = Images(np.zeros(6), {DIAMOND: np.arange(5), PROBE: np.array([5])})
    own = WORLDS[f"{dispatch}, hourly"]
    env = begun([0.0, 12.0], [DIAMOND, PROBE], CLUSTER, rules=own, images=images, workflow_slots=2)
    env.step("s", 0, 0, 1)
    return env


@pytest.mark.parametrize("dispatch", ["immediate", "queued"])
def test_nobody_waits_for_a_function_that_is_skipped(dispatch: str) -> None:
    """Without function 1, function 3 starts when 2 ends, and reads its data alone.

    0 runs until 20, 2 from 20 to 30; 3 on the other server reads 1000 bytes for 10 s from 40, when
    the server has started, on and ends at 60; 4 is skipped before that.
    """
    env = diamond(dispatch)
    assert skip_function(env.state, 1)
    assert not skip_function(env.state, 1)
    assert not skip_function(env.state, 0)
    go_on(env)
    env.step("s", 0, 0, 1)
    assert env.current_function.fn_id == 2
    assert not skip_function(env.state, 2)
    env.step("s", 0, 0, 1)
    assert env.current_function.fn_id == 3
    assert forecast_placements(env.state, 1)["data_transfer_time"].tolist() == (
        pytest.approx([1000 / 1e12, 10.0])
    )
    assert skip_function(env.state, 4)
    go_on(env)
    env.step("s", 1, 0, 1)
    assert env.done
    functions = env.workload.workflows[0].functions
    names = ["FINISHED", "SKIPPED", "FINISHED", "FINISHED", "SKIPPED"]
    assert [function.state for function in functions] == names
    assert functions[1].submission_time is None
    assert functions[3].completion_time == pytest.approx(60.0)
    assert env.workload.workflows[0].completion_time == functions[3].completion_time
    assert env.state.ledger["egress_bytes"].tolist() == [0.0, 1000.0]
    assert env.state.cluster[0]["free_slots"] == 2
    assert_recounted(env.state)


def test_what_is_behind_a_failed_function_fails() -> None:
    """1 fails: so do 3 and 4, but 2 still runs, from 20 to 30; then the workflow has ended."""
    env = diamond()
    end_function(env.state, 1, env.time, FAILED)
    names = ["RUNNING", "FAILED", "PENDING", "FAILED", "FAILED"]
    functions = env.workload.workflows[0].functions
    assert [function.state for function in functions] == names
    go_on(env)
    env.step("s", 0, 0, 1)
    assert env.current_function.fn_id == 2
    env.step("s", 0, 0, 1)
    assert env.done
    assert env.workload.workflows[0].completion_time == pytest.approx(30.0)
    assert env.state.cluster[0]["free_slots"] == 2
    assert_recounted(env.state)


def test_the_five_states_of_a_server() -> None:
    """It starts until 10, is up until its lease ends at 3600, and is out of service until told."""
    env = RawEnv([0.0, 5.0, 20.0, 4000.0], [PROBE] * 4, CLUSTER)
    assert state_names(env) == ["off", "off"]
    env.step("s", 0, 0, 1)
    assert state_names(env) == ["starting", "off"]
    env.step("s", 0, 0, 1)
    assert state_names(env) == ["up", "off"]
    drain(env.state, 0)
    drain(env.state, 1)
    assert state_names(env) == ["draining", "draining"]
    take_down(env.state, 1)
    drain(env.state, 1)
    assert state_names(env) == ["draining", "down"]
    bring_back(env.state, 0)
    bring_back(env.state, 1)
    assert state_names(env) == ["up", "off"]
    env.step("s", 0, 0, 1)
    assert env.time == 4000.0
    assert state_names(env) == ["off", "off"]
    drain(env.state, 0)
    assert state_names(env) == ["draining", "off"]


@pytest.mark.parametrize("world", WORLDS)
def test_a_server_goes_down_and_comes_back_a_hundred_times_at_one_moment(world: str) -> None:
    """Two functions of 4,000 s, for which a server is leased for two hours: one if it goes down.

    One is placed on server 0 each time, while the other is to be decided.
    """
    long = functions(4_000_000, memory=3)
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
    ends = [4_015.0, 4_015.0 if "hourly" in world else 4_005.0]  # server 0 starts again
    assert [workflow.completion_time for workflow in env.workload.workflows] == ends
    assert env.total_rent == pytest.approx(0.0 if "unpaid" in world else (100 + 2 * 2) * 0.36)


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
