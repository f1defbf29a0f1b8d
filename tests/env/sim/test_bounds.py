"""Extreme numbers are refused when they are given; those still allowed play to a finite end."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from agents.order.fcfs import Fcfs
from agents.order.rr import RoundRobin
from env.sim.check.validate import violations
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.images import Images
from env.sim.declared.keep_alive_policy import Fixed, Lru
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.episode.recording import episode_of
from env.sim.view.raw_env import RawEnv
from env.workloads.traces.trace import FunctionProfiles
from tests.documents import refused_in_a_line
from tests.env.sim.test_sharing import env_of, order
from tests.env.small import always_up, chain, cluster_of, held
from tests.episodes import end

KIND = ServerType("s", 1, 1.0, 1.0, 1, 4, 1000)
CLUSTER = cluster_of(KIND)
WHERE = {"where": "big.json", "function_names": ("a", "b")}


def two(work: int = 1000, memory: int = 1, threads: int = 1, size: int = 0) -> WorkflowTemplate:
    return chain(work, work, memory=memory, threads=threads, size=size)


NO_FILES = ("", "a/b", "a\x1b[2J", "a" * 51)


@pytest.mark.parametrize(
    ("field", "value"),
    [("count", 2**53), ("hourly_rate", 1e-250), ("cold_start_latency", np.inf), ("cpu", 0)]
    + [("name", name) for name in NO_FILES],
)
def test_server_types(field: str, value: Any) -> None:
    says = "1 to 50 printable characters but / is needed" if field == "name" else "found "
    with refused_in_a_line(f"ServerType: {field}: ", says):
        replace(KIND, **{field: value})


FAST = replace(CLUSTER, single_core_speed=2**53)
PROFILES = FunctionProfiles(("F",), *np.ones((3, 1)))
TOO_LARGE: dict[str, tuple[Callable[[], Any], str]] = {
    **{
        f"{field} {value}": (
            partial(replace, CLUSTER, **{field: value}),
            f"^ClusterConfig: {field}: .*, found {value}",
        )
        for field in ("memory_bandwidth", "numa_bandwidth", "network_bandwidth")
        for value in (0.5, np.nan)
    },
    "all cores": (
        lambda: replace(FAST, server_types=(replace(KIND, cpu=1_000_000),)),
        "all cores do .* operations/s together",
    ),
    "computation": (
        lambda: replace(two(), computation=np.array([2**63 - 1] * 2)),
        r"computation\[0\] is .*at most",
    ),
    "data": (lambda: replace(two(), data_bytes=np.array([2**60])), r"data_bytes\[0\] is .*at most"),
    **{
        f"probability {value}": (
            partial(replace, two(), probability=np.array([value])),
            r"probability\[0\] is .*, above 0 and at most 1",
        )
        for value in (0.0, 1.1, np.nan)
    },
    "probabilities": (partial(replace, two(), probability=np.ones(2)), "1 edges but 2 probab"),
    "seconds": (
        lambda: RawEnv([0.0], [replace(two(work=10**12), **WHERE)], CLUSTER),
        r"^big.json: workflow 'chain': takes 2e\+09 s",
    ),
    "memory": (
        lambda: RawEnv([0.0], [replace(two(memory=1001), **WHERE)], CLUSTER),
        "^big.json: workflow 'chain': function 0 needs 1001 MB",
    ),
    "transfer": (
        lambda: RawEnv(
            [0.0] * 2,
            [two(size=9), replace(two(size=2**53), **WHERE)],
            replace(CLUSTER, network_bandwidth=1.0),
        ),
        r"^big.json: workflow 'chain': 9.0072e\+15 bytes of edge 'a' -> 'b' take",
    ),
    "work of one": (lambda: two(work=2**62), "operations in all"),
    "work of a request": (
        lambda: PROFILES.operations(np.array([0]), np.array([1e9]), 2**53),
        "a request of 'F' is .* operations",
    ),
    "keep": (lambda: Fixed(keep=1e-300), "keep"),
    "slice": (lambda: RoundRobin(time_slice=1e-300), "time_slice"),
    "tickets": (
        lambda: env_of([two()] * 2, "ab", order("stride"), held(a=1, b=1), tickets=[1, np.nan]),
        "tickets: numbers above 0 are needed",
    ),
}


@pytest.mark.parametrize("make, says", TOO_LARGE.values(), ids=TOO_LARGE)
def test_what_is_too_large_or_small_is_named(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()


CORNERS = {
    "slow links, late, dear": (
        ClusterConfig(1, 1.0, 1.0, 1.0, (replace(KIND, hourly_rate=1e9, cold_start_latency=1e9),)),
        two(work=5 * 10**8, memory=1000, size=10**9),
    ),
    "much work, many cores": (
        ClusterConfig(2**42, 1e18, 1e18, 1e18, (replace(KIND, cpu=10**6, memory=10**12),)),
        two(work=2**60, memory=10**12, threads=10**6, size=2**53),
    ),
    "cheap and tiny": (
        ClusterConfig(10**6, 1.0, 1.0, 1.0, (replace(KIND, hourly_rate=1e-12),)),
        two(work=1),
    ),
}


@pytest.mark.parametrize("corner", CORNERS)
def test_what_is_still_allowed_plays_to_its_end(corner: str) -> None:
    cluster, template = CORNERS[corner]
    env = end(RawEnv([0.0, 1e9], [template] * 2, cluster, record=True))
    assert np.isfinite(env.time) and np.isfinite(env.total_rent)
    assert env.total_rent > 0
    assert violations(episode_of(env, corner, "a test")) == []


def test_what_the_memory_of_the_machine_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """10 NUMA nodes and 100,000 images: 8 MB of which is the newest container of which image."""
    monkeypatch.setattr("env.sim.state.block.MACHINE", 10**7)
    template = two()
    images = Images(np.zeros(10**5), {template: np.zeros(2, int)})
    cluster = replace(CLUSTER, server_types=(replace(KIND, count=20),))
    newest = "are for 2000000 records 'newest' (NUMA nodes x images)"
    with refused_in_a_line("an episode needs ", "of which the machine has 0.01: ", newest):
        RawEnv([0.0], [template], cluster, rules=always_up(Fcfs(), Lru()), images=images)


def test_the_table_of_warm_containers_grows_with_what_is_warm() -> None:
    """Not with what a cluster of 1,300 nodes of 256 GB could keep of an image of 1 MB."""
    cluster = replace(CLUSTER, server_types=(replace(KIND, count=1300, memory=262_144),))
    template = two()
    images = Images(np.ones(1), {template: np.zeros(2, int)})
    rules = always_up(RoundRobin(time_slice=1.0), Lru())
    env = RawEnv([0.0] * 5, [template] * 5, cluster, rules=rules, images=images)
    assert env.done and env.state.block.nbytes < 10**7
