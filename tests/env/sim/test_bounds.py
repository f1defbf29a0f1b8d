"""Extreme numbers are refused when they are given; those still allowed play to a finite end."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from agents.order.fcfs import Fcfs
from agents.order.rr import RoundRobin
from benchmarks.trace_player import simulate
from env.base.errors import InputError
from env.sim.check.validate import violations
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.images import Images
from env.sim.declared.keep_alive_policy import Fixed, Lru, NoKeepAlive
from env.sim.declared.rules import Rules
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.episode.recording import episode_of
from env.sim.view.raw_env import RawEnv
from env.workloads.traces.trace import REQUEST, FunctionProfiles, Trace
from tests.env.sim.test_sharing import env_of, held, order

KIND = ServerType("s", 1, 1.0, 1.0, 1, 4, 1000)
CLUSTER = ClusterConfig(1000, 1e9, 1e9, 1e9, (KIND,))


def chain(work: int = 1000, memory: int = 1, threads: int = 1, size: int = 0) -> WorkflowTemplate:
    return WorkflowTemplate("chain", [work] * 2, [memory] * 2, [threads] * 2, [(0, 1)], [size])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("count", 2**53),
        ("hourly_rate", 1e-250),
        ("cold_start_latency", float("inf")),
        ("single_core_speed", 0),
    ],
)
def test_server_types(field: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"'s': {field} is .*at least .* and at most") as caught:
        replace(KIND, **{field: value})
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("name", ["", "a/b", "a\x1b[2J", "a" * 51])
def test_names_that_no_file_could_have(name: str) -> None:
    with pytest.raises(InputError, match=r"1 to 50 printable characters but / is needed$") as error:
        replace(KIND, name=name)
    assert str(error.value).isprintable() and len(str(error.value)) < 200


@pytest.mark.parametrize("field", ["memory_bandwidth", "numa_bandwidth", "network_bandwidth"])
@pytest.mark.parametrize("value", [0.5, float("nan")])
def test_bandwidths(field: str, value: float) -> None:
    with pytest.raises(InputError, match=f"^{field} is"):
        replace(CLUSTER, **{field: value})


def test_all_cores_together() -> None:
    kind = replace(KIND, cpu=1_000_000)
    with pytest.raises(InputError, match="all cores do .* operations/s together"):
        replace(CLUSTER, single_core_speed=2**53, server_types=(kind,))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("computation", 2**63 - 1),
        ("data_bytes", 2**60),
    ],
)
def test_workflows(field: str, value: float) -> None:
    with pytest.raises(InputError, match=rf"{field}\[0\] is .*at most"):
        replace(chain(), **{field: np.array([value] * (1 if field == "data_bytes" else 2))})


def test_what_is_too_large_is_named_by_file_and_edge() -> None:
    names = {"where": "big.json", "function_names": ("a", "b")}
    with pytest.raises(InputError, match="^big.json: workflow 'chain': takes 2e\\+09 s"):
        RawEnv([0.0], [replace(chain(work=10**12), **names)], CLUSTER)
    with pytest.raises(InputError, match="^big.json: workflow 'chain': function 0 needs 1001 MB"):
        RawEnv([0.0], [replace(chain(memory=1001), **names)], CLUSTER)
    slow, large = replace(CLUSTER, network_bandwidth=1.0), replace(chain(size=2**53), **names)
    edge = "^big.json: workflow 'chain': 9.0072e\\+15 bytes of edge 'a' -> 'b' take"
    with pytest.raises(InputError, match=edge):
        RawEnv([0.0] * 2, [chain(size=9), large], slow)


def test_the_work_of_all_workflows() -> None:
    fast = replace(CLUSTER, single_core_speed=2**53)
    with pytest.raises(InputError, match="operations in all"):
        RawEnv([0.0] * 3, [chain(work=2**60)] * 3, fast)
    with pytest.raises(InputError, match="operations in all"):
        chain(work=2**62)


@pytest.mark.parametrize(
    ("time", "duration", "cold", "says"),
    [
        (1e12, 1.0, 1.0, "time of a request"),
        (0.0, 1e300, 1.0, "duration of a request"),
        (0.0, 1.0, 1e12, "images: a cold start is"),
    ],
)
def test_traces(time: float, duration: float, cold: float, says: str) -> None:
    requests = np.array([(time, 0, duration)], REQUEST)
    one = np.array([1])
    with pytest.raises(InputError, match=says):
        profiles = FunctionProfiles(("F",), np.array([1.0]), np.array([cold]), one, one)
        simulate(
            Trace(profiles, lambda: iter([requests])),
            CLUSTER,
            Rules.always_up(Fcfs(), NoKeepAlive()),
        )


def test_work_of_a_request() -> None:
    one = np.array([1])
    profiles = FunctionProfiles(("F",), np.array([1.0]), np.array([1.0]), one, one)
    requests = np.array([(0.0, 0, 1e9)], REQUEST)
    fast = replace(CLUSTER, single_core_speed=2**53)
    with pytest.raises(InputError, match="a request of 'F' is .* operations"):
        simulate(
            Trace(profiles, lambda: iter([requests])), fast, Rules.always_up(Fcfs(), NoKeepAlive())
        )


def test_images_and_queues() -> None:
    with pytest.raises(InputError, match="a cold start is 1e\\+300 s"):
        Images(np.array([1.0, 1e300]), {})
    with pytest.raises(ValueError, match="keep"):
        Fixed(keep=1e-300)
    with pytest.raises(ValueError, match="time_slice"):
        RoundRobin(time_slice=1e-300)


CORNERS = {
    "slow links, late, dear": (
        ClusterConfig(1, 1.0, 1.0, 1.0, (replace(KIND, hourly_rate=1e9, cold_start_latency=1e9),)),
        chain(work=5 * 10**8, memory=1000, threads=1, size=10**9),
    ),
    "much work, many cores": (
        ClusterConfig(2**42, 1e18, 1e18, 1e18, (replace(KIND, cpu=10**6, memory=10**12),)),
        chain(work=2**60, memory=10**12, threads=10**6, size=2**53),
    ),
    "cheap and tiny": (
        ClusterConfig(10**6, 1.0, 1.0, 1.0, (replace(KIND, hourly_rate=1e-12),)),
        chain(work=1, memory=1, threads=1, size=0),
    ),
}


@pytest.mark.parametrize("corner", CORNERS)
def test_what_is_still_allowed_plays_to_its_end(corner: str) -> None:
    cluster, template = CORNERS[corner]
    env = RawEnv([0.0, 1e9], [template] * 2, cluster, record=True)
    while not env.done:
        function = env.current_function
        assert function is not None
        env.step("s", 0, 0, function.memory_req)
    assert np.isfinite(env.time) and np.isfinite(env.total_rent)
    assert env.total_rent > 0
    assert violations(episode_of(env, corner, "a test")) == []


@pytest.mark.parametrize(
    "wrong",
    [
        [1.0, float("nan")],
    ],
)
def test_tickets_of_workflows_are_above_0(wrong: list[float]) -> None:
    how, templates = order("stride"), [chain(), chain()]
    with pytest.raises(InputError, match="tickets: numbers above 0 are needed"):
        env_of(templates, ["a", "b"], how, held(a=1, b=1), tickets=wrong)


def test_what_the_memory_of_the_machine_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """10 NUMA nodes and 100,000 images: 8 MB of which is the newest container of which image."""
    monkeypatch.setattr("env.sim.state.block.MACHINE", 10**7)
    template = chain()
    images = Images(np.zeros(10**5), {template: np.zeros(2, int)})
    cluster = replace(CLUSTER, server_types=(replace(KIND, count=20),))
    with pytest.raises(InputError) as caught:
        RawEnv([0.0], [template], cluster, rules=Rules.always_up(Fcfs(), Lru()), images=images)
    told = str(caught.value)
    assert told.startswith("an episode needs ") and "of which the machine has 0.01: " in told
    assert told.endswith("are for 2000000 records 'newest' (NUMA nodes x images)")


def test_the_table_of_warm_containers_grows_with_what_is_warm() -> None:
    """Not with what a cluster of 1,300 nodes of 256 GB could keep of an image of 1 MB."""
    cluster = replace(CLUSTER, server_types=(replace(KIND, count=1300, memory=262_144),))
    template = chain()
    images = Images(np.ones(1), {template: np.zeros(2, int)})
    rules = Rules.always_up(RoundRobin(time_slice=1.0), Lru())
    env = RawEnv([0.0] * 5, [template] * 5, cluster, rules=rules, images=images)
    assert env.done and env.state.block.nbytes < 10**7
