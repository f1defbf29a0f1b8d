"""Queued dispatch computes what its reference model computes, run for run and number for number."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.order.critical_path import CriticalPath
from agents.order.heft import Heft
from agents.order.sjf import Sjf
from agents.order.srf import Srf
from benchmarks.trace_player import stream
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.rules import Rules
from env.sim.node import idle_forecast
from env.sim.state.records import COMPLETED
from env.workloads.traces.trace import REQUEST, FunctionProfiles, Trace
from tests.reference_inputs import mean, rules_of
from tests.reference_records import Function, Image, Job
from tests.reference_world import ReferenceWorld
from tests.strategies import (
    CORE_SPEEDS,
    SECONDS,
    keep_alives,
    orders,
)

SLICES = st.sampled_from([1.0, 1.5, 2.0]) | st.floats(1.0, 3.0)


@dataclass(frozen=True)
class Requested:
    """A trace and the cluster it runs on."""

    cluster: ClusterConfig
    profiles: FunctionProfiles
    requests: np.ndarray
    chunk: int


@st.composite
def traces(draw: st.DrawFn) -> Requested:
    """Some requests of few functions that hardly fit beside each other, all at once or by turns."""
    kind = ServerType(
        name="server",
        count=draw(st.integers(1, 2)),
        hourly_rate=0.0,
        cold_start_latency=0.0,
        numa_nodes=draw(st.integers(1, 2)),
        cpu=draw(st.integers(1, 4)),
        memory=draw(st.integers(4, 8)),
    )
    cluster = ClusterConfig(draw(CORE_SPEEDS), 1e9, 1e9, 1e9, (kind,))
    count = draw(st.integers(1, 4))

    def each(values: st.SearchStrategy[float]) -> np.ndarray:
        return np.array([draw(values) for _ in range(count)])

    profiles = FunctionProfiles(
        names=tuple(f"function {index}" for index in range(count)),
        execution=each(SECONDS).clip(0.25),
        cold_start=each(SECONDS),
        memory=each(st.integers(1, cluster.largest_node_memory)),
        parallelism=each(st.integers(1, 3)),
    )
    steady = st.sampled_from([1.0, 6.0, 9.0]).map(lambda pause: [pause] * 10)
    crowded = st.lists(st.sampled_from([0.0, 0.0, 1.0]) | SECONDS, min_size=5, max_size=15)
    gaps = draw(steady | crowded)
    requests = np.array(
        [
            (time, draw(st.integers(0, count - 1)), draw(SECONDS))
            for time in np.cumsum(np.array(gaps, np.float64))
        ],
        REQUEST,
    )
    return Requested(cluster, profiles, requests, draw(st.integers(1, 8)))


def queueings(seconds: st.SearchStrategy[float]) -> st.SearchStrategy[Rules]:
    """All combinations; see `orders`."""
    placements = st.sampled_from(["first_fit", "best_fit", "worst_fit"])
    return st.builds(Rules.always_up, orders(seconds), keep_alives(), placements)


def check(runs: np.ndarray, jobs: Sequence[Job], cluster: ClusterConfig, queueing: Rules) -> None:
    """RUN records are those of the reference."""
    computed = [
        (
            *(int(run[key]) for key in ("wf_id", "fn_id", "node")),
            bool(run["warm"]),
            bool(run["outcome"] == COMPLETED),
            *(float(run[key]) for key in ("dispatch_time", "start_time", "end_time")),
            *(float(run[key]) for key in ("queueing_time", "cold_start_time")),
            *(float(run[key]) for key in ("data_transfer_time", "execution_time")),
        )
        for run in runs
    ]
    rules = rules_of(queueing.order, queueing.keep_alive, placement=queueing.placement)
    wanted = ReferenceWorld(cluster, jobs, rules, mean)
    assert computed == [run[:-1] for run in wanted.runs]
    assert {run.startup for run in wanted.runs} <= {0.0}


@given(given_trace=traces(), queueing=queueings(SLICES))
def test_traces(given_trace: Requested, queueing: Rules) -> None:
    cluster, profiles = given_trace.cluster, given_trace.profiles
    speed = cluster.single_core_speed
    largest = max(kind.cpu for kind in cluster.server_types)

    def operations(seconds: float, function: int) -> int:
        return max(1, round(seconds * speed * int(profiles.parallelism[function])))

    # Of single functions, both ranks of a workflow are its execution: the longest first.
    sign = {Sjf: 1, Heft: -1, CriticalPath: -1}.get(type(queueing.order), 0)
    functions = []
    for index, (threads, memory) in enumerate(
        zip(profiles.parallelism.tolist(), profiles.memory.tolist(), strict=True)
    ):
        cores = speed * min(int(threads), largest)
        execution = operations(profiles.execution[index], index) / cores
        rank = memory if isinstance(queueing.order, Srf) else sign * execution
        image = Image(float(profiles.cold_start[index]))
        functions.append(Function(image, execution, int(threads), int(memory), rank))
    jobs = [
        Job(number, 0, functions[int(index)], operations(duration, int(index)), float(time))
        for number, (time, index, duration) in enumerate(given_trace.requests.tolist())
    ]
    requests, size = given_trace.requests, given_trace.chunk
    chunks = [requests[first : first + size] for first in range(0, len(requests), size)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(idle_forecast, "next_idle_time", mean)
        played = list(stream(Trace(profiles, lambda: iter(chunks)), cluster, queueing))
    check(np.concatenate(played), jobs, cluster, queueing)
