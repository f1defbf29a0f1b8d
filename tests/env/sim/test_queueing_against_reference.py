"""Queued dispatch computes what its reference model computes, run for run and number for number."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.order.critical_path import CriticalPath
from agents.order.fcfs import Fcfs
from agents.order.funcsched import FuncSched
from agents.order.heft import Heft
from agents.order.rr import RoundRobin
from agents.order.sjf import Sjf
from agents.order.srf import Srf
from agents.order.srtf import Srtf
from env.sim import idle_forecast
from env.sim.hardware import ClusterConfig, ServerType
from env.sim.keep_alive_policy import (
    FaasCache,
    Fixed,
    HybridHistogram,
    Lru,
    NoKeepAlive,
)
from env.sim.records import COMPLETED
from env.sim.rules import Images, KeepAlive, Order, Rules
from env.sim.view.raw_env import RawEnv
from env.sim.workflow_template import WorkflowTemplate
from env.workloads.traces.simulate import stream
from env.workloads.traces.trace import REQUEST, FunctionProfiles, Trace
from tests.reference_queueing import Function, Job, ReferencePlatform
from tests.reference_queueing import Rules as ReferenceRules
from tests.strategies import CORE_SPEEDS, Scenario, scenarios

RANDOM = settings(
    max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
SLICES = st.sampled_from([1.0, 1.5, 2.0]) | st.floats(1.0, 3.0)
LONG_SLICES = st.sampled_from([400.0, 1500.0])
WIDE = st.integers(2, 12)
SECONDS = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0]) | st.floats(0.0, 4.0)


def mean(idle_times: Sequence[float], order: tuple[int, ...] = (1, 0, 0)) -> float:
    """Stands in for ARIMA, which is slow and not what is tested here."""
    return float(np.mean(idle_times))


def of_one_speed(cluster: ClusterConfig) -> ClusterConfig:
    """On a server a million times slower, a function would be preempted a million times."""
    kinds = tuple(replace(kind, single_core_speed=None) for kind in cluster.server_types)
    return replace(cluster, server_types=kinds)


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


def orders(seconds: st.SearchStrategy[float]) -> st.SearchStrategy[Order]:
    """All orders; the preemptive ones with time slices of so many seconds."""
    return st.one_of(
        st.sampled_from([Fcfs(), Sjf(), Srf(), Heft(), CriticalPath()]),
        seconds.map(lambda time: RoundRobin(time_slice=time)),
        seconds.map(lambda time: Srtf(check_interval=time)),
        st.sampled_from([0.0, 2.0, 5.0, 1e9]).map(lambda time: FuncSched(starve_threshold=time)),
    )


def keep_alives() -> st.SearchStrategy[KeepAlive]:
    return st.one_of(
        st.sampled_from([NoKeepAlive(), Lru(), FaasCache()]),
        st.sampled_from([1.0, 2.0, 7.0]).map(lambda keep: Fixed(keep=keep)),
        histograms(),
    )


def histograms(bins: st.SearchStrategy[int] = WIDE) -> st.SearchStrategy[HybridHistogram]:
    """Hybrid histograms; the fewer bins, the more idle times ask for a forecast."""
    return st.builds(
        HybridHistogram,
        bin=st.sampled_from([0.5, 1.0]),
        bins=bins,
        prewarm_percentile=st.sampled_from([5.0, 50.0]),
        keep_percentile=st.sampled_from([50.0, 99.0]),
        margin=st.sampled_from([0.0, 0.1]),
        least_idle_times=st.integers(1, 3),
        least_variation=st.sampled_from([0.0, 1.0]),
        fixed_keep=st.sampled_from([1.0, 3.0]),
        most_out_of_bounds=st.sampled_from([0.3, 0.8]),
        forecast_margin=st.just(0.15),
        forecast_from=st.just(100),
        forecast_order=st.just((1, 0, 0)),
    )


def queueings(seconds: st.SearchStrategy[float]) -> st.SearchStrategy[Rules]:
    """All combinations; see `orders`."""
    placements = st.sampled_from(["first_fit", "best_fit", "worst_fit"])
    return st.builds(Rules.always_up, orders(seconds), keep_alives(), placements)


def rules_of(queueing: Rules) -> ReferenceRules:
    """The options as the reference takes them."""
    order, keep_alive = queueing.order, queueing.keep_alive
    assert isinstance(keep_alive, NoKeepAlive | Fixed | Lru | FaasCache | HybridHistogram)
    dynamic = {Srtf: "srtf", FuncSched: "funcsched"}
    own = {
        name: getattr(keep_alive, name)
        for name in ReferenceRules.__dataclass_fields__
        if hasattr(keep_alive, name) and name != "keep_alive"
    }
    if isinstance(keep_alive, HybridHistogram):
        own["keep"] = keep_alive.fixed_keep
    return ReferenceRules(
        order=dynamic.get(type(order), "rank"),
        time_slice=getattr(order, "time_slice", getattr(order, "check_interval", np.inf)),
        starve_threshold=getattr(order, "starve_threshold", np.inf),
        placement=queueing.placement,
        keep_alive=keep_alive.policy,
        **own,
    )


def rows_of(runs: np.ndarray) -> list[tuple[object, ...]]:
    """RUN records as the reference has them."""
    return [
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


@RANDOM
@given(given_trace=traces(), queueing=queueings(SLICES))
def test_traces(given_trace: Requested, queueing: Rules) -> None:
    cluster, profiles = given_trace.cluster, given_trace.profiles
    speed = cluster.single_core_speed
    largest = max(kind.cpu for kind in cluster.server_types)

    def operations(seconds: float, function: int) -> int:
        return max(1, round(seconds * speed * int(profiles.parallelism[function])))

    functions = [
        Function(
            image=index,
            execution=operations(profiles.execution[index], index)
            / (speed * min(int(threads), largest)),
            parallelism=int(threads),
        )
        for index, threads in enumerate(profiles.parallelism)
    ]
    # Of single functions, both ranks of a workflow are its execution: the longest first.
    rank = {Sjf: 1, Heft: -1, CriticalPath: -1}.get(type(queueing.order), 0)
    ranks = [rank * function.execution for function in functions]
    if isinstance(queueing.order, Srf):
        ranks = profiles.memory.tolist()
    functions = [
        Function(one.image, one.execution, one.parallelism, own)
        for one, own in zip(functions, ranks, strict=True)
    ]
    jobs = [
        Job(number, 0, int(function), operations(duration, int(function)), float(time))
        for number, (time, function, duration) in enumerate(given_trace.requests.tolist())
    ]
    wanted = ReferencePlatform(
        cluster,
        functions,
        profiles.cold_start.tolist(),
        profiles.memory.tolist(),
        jobs,
        rules_of(queueing),
        mean,
    )
    requests, size = given_trace.requests, given_trace.chunk
    chunks = [requests[first : first + size] for first in range(0, len(requests), size)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(idle_forecast, "next_idle_time", mean)
        played = list(stream(Trace(profiles, lambda: iter(chunks)), cluster, queueing))
    computed = [row for runs in played for row in rows_of(runs)]
    assert computed == wanted.runs


@RANDOM
@given(scenario=scenarios(), queueing=queueings(LONG_SLICES), data=st.data())
def test_workflows(scenario: Scenario, queueing: Rules, data: st.DataObject) -> None:
    """Functions of DAGs in the queue; functions of different workflows may share an image."""
    check_workflows(scenario.arrival_times, scenario.templates, scenario.cluster, queueing, data)


@RANDOM
@given(scenario=scenarios(), order=orders(LONG_SLICES), data=st.data())
def test_workflows_that_come_again(scenario: Scenario, order: Order, data: st.DataObject) -> None:
    """Images of several sources and successors become idle together, mostly for long times."""
    times, templates = [0.0], [scenario.templates[0]]
    pauses = st.sampled_from([5.0, 30.0, 5000.0]) | st.floats(0.0, 60.0)
    for _ in range(data.draw(st.integers(2, 5))):
        times.append(times[-1] + data.draw(pauses))
        templates.append(data.draw(st.sampled_from(scenario.templates)))
    queueing = Rules.always_up(order, data.draw(histograms(bins=st.integers(1, 4))))
    check_workflows(times, templates, scenario.cluster, queueing, data)


def check_workflows(
    times: Sequence[float],
    templates: Sequence[WorkflowTemplate],
    cluster: ClusterConfig,
    queueing: Rules,
    data: st.DataObject,
) -> None:
    """Plays workflows, with images drawn for their functions, in the engine and the reference."""
    cluster = of_one_speed(cluster)
    count = data.draw(st.integers(1, 4))
    images = Images(
        cold_start=np.array([data.draw(SECONDS) for _ in range(count)]),
        of={
            template: np.array(
                [data.draw(st.integers(0, count - 1)) for _ in range(template.function_count)]
            )
            for template in dict.fromkeys(templates)
        },
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(idle_forecast, "next_idle_time", mean)
        env = RawEnv(times, templates, cluster, rules=queueing, images=images)
    known = env.state.waiting
    first_known = dict(
        zip(images.of, np.cumsum([0, *(one.function_count for one in images.of)]), strict=False)
    )
    functions, jobs = [], []
    for wf_id, template in enumerate(templates):
        own: list[Job] = []
        for fn_id in range(template.function_count):
            entry = known[first_known[template] + fn_id]
            functions.append(
                Function(
                    image=int(images.of[template][fn_id]),
                    execution=float(entry["execution"]),
                    parallelism=int(template.parallelism[fn_id]),
                    rank=float(entry["rank"]),
                )
            )
            work = int(template.computation[fn_id])
            own.append(Job(wf_id, fn_id, len(functions) - 1, work, times[wf_id]))
        for (source, target), size in zip(template.edges, template.data_bytes, strict=True):
            own[target].predecessors.append((own[source], int(size)))
        jobs += own
    memories = [0] * count
    for template in templates:
        for image, memory in zip(images.of[template], template.memory_req, strict=True):
            memories[image] = max(memories[image], int(memory))
    wanted = ReferencePlatform(
        cluster,
        functions,
        images.cold_start.tolist(),
        memories,
        jobs,
        rules_of(queueing),
        mean,
    )
    assert rows_of(env.runs) == wanted.runs
    assert env.done
