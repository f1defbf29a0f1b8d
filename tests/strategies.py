"""Hypothesis strategies: random clusters, workflows and placements, small and full of trouble.

Numbers are small on purpose: containers contend, wait for memory, tie and outlive leases.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

from agents.order.critical_path import CriticalPath
from agents.order.fcfs import Fcfs
from agents.order.funcsched import FuncSched
from agents.order.heft import Heft
from agents.order.rr import RoundRobin
from agents.order.sjf import Sjf
from agents.order.srf import Srf
from agents.order.srtf import Srtf
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.images import Images
from env.sim.declared.keep_alive_policy import FaasCache, Fixed, HybridHistogram, Lru, NoKeepAlive
from env.sim.declared.ordering import Order
from env.sim.declared.power import Power
from env.sim.declared.rules import KeepAlive
from env.sim.declared.workflow_template import WorkflowTemplate

# Whole numbers make ties; the others make roundings.
MOMENTS = st.one_of(
    st.integers(0, 12).map(float),
    st.floats(0.0, 20.0),
    st.sampled_from([3599.0, 3600.0, 3601.0, 7200.0, 20000.0]),
)
SECONDS = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0]) | st.floats(0.0, 4.0)
WIDE = st.integers(2, 12)
CORE_SPEEDS = st.sampled_from([1, 7, 1000, 1_000_000])


@dataclass(frozen=True)
class Scenario:
    """An episode and the placement of each function: (type, server, NUMA node, MB given)."""

    arrival_times: tuple[float, ...]
    templates: tuple[WorkflowTemplate, ...]
    cluster: ClusterConfig
    placements: Mapping[tuple[int, int], tuple[str, int, int, int]]


@st.composite
def clusters(draw: st.DrawFn) -> ClusterConfig:
    """One to three types of one or two servers with one to three NUMA nodes."""
    return ClusterConfig(
        single_core_speed=draw(CORE_SPEEDS),
        memory_bandwidth=draw(st.sampled_from([1000.0, 1e10])),
        numa_bandwidth=draw(st.sampled_from([300.0, 3e9])),
        network_bandwidth=draw(st.sampled_from([12.5, 1.25e8])),
        server_types=tuple(
            ServerType(
                name=f"type{index}",
                count=draw(st.integers(1, 2)),
                hourly_rate=draw(st.sampled_from([0.0, 0.17, 1.5])),
                cold_start_latency=draw(st.sampled_from([0.0, 1.0, 2.5, 60.0])),
                numa_nodes=draw(st.integers(1, 3)),
                cpu=draw(st.integers(1, 4)),
                memory=draw(st.integers(4, 16)),
                single_core_speed=draw(st.none() | CORE_SPEEDS),
            )
            for index in range(draw(st.integers(1, 3)))
        ),
        power=draw(
            st.none()
            | st.just(
                Power(
                    idle_core_w=0.74,
                    busy_core_w=3.5,
                    memory_w_per_gb=0.3725,
                    pue=1.11,
                    carbon_intensity_g_per_kwh=410.0,
                )
            )
        ),
    )


def _computations(core_speed: int) -> st.SearchStrategy[int]:
    """A few seconds of work, one operation, or more than an hour."""
    return st.one_of(
        st.integers(1, 12).map(lambda seconds: seconds * core_speed),
        st.integers(1, 20 * core_speed),
        st.just(1),
        st.just(4000 * core_speed),
    )


@st.composite
def workflow_templates(
    draw: st.DrawFn, name: str, cluster: ClusterConfig, most: int = 6
) -> WorkflowTemplate:
    """A DAG of one to `most` functions."""
    count = draw(st.integers(1, most))
    pairs = [(source, target) for source in range(count) for target in range(source + 1, count)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    functions = [
        (
            draw(_computations(cluster.single_core_speed)),
            draw(st.integers(1, cluster.largest_node_memory)),
            draw(st.integers(1, 6)),
        )
        for _ in range(count)
    ]
    computation, memory_req, parallelism = np.array(functions, dtype=np.int64).T
    return WorkflowTemplate(
        name=name,
        computation=computation,
        memory_req=memory_req,
        parallelism=parallelism,
        edges=np.array(edges, dtype=np.int64).reshape(-1, 2),
        data_bytes=np.array(
            [draw(st.sampled_from([0, 1000, 12345, 10**9])) for _ in edges], dtype=np.int64
        ),
    )


@st.composite
def with_named_resources(
    draw: st.DrawFn, cluster: ClusterConfig, templates: Sequence[WorkflowTemplate]
) -> tuple[ClusterConfig, list[WorkflowTemplate]]:
    """Up to two named resources, few of each, and functions that need some, none or all of it.

    The server type with the most memory has as much of each as any function needs.
    """
    names = draw(st.sampled_from([(), ("gpu",), ("gpu", "license")]))
    most = {name: draw(st.integers(1, 2)) for name in names}
    largest = max(cluster.server_types, key=lambda kind: kind.memory)
    kinds = tuple(
        replace(
            kind,
            resources=most
            if kind is largest
            else {name: draw(st.integers(0, units)) for name, units in most.items()},
        )
        for kind in cluster.server_types
    )
    given = [
        replace(
            template,
            resources={
                name: np.array(
                    [draw(st.integers(0, units)) for _ in range(template.function_count)]
                )
                for name, units in most.items()
            },
        )
        for template in templates
    ]
    return replace(cluster, server_types=kinds), given


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """An episode of one to four workflows in which few nodes get all the functions."""
    cluster = draw(clusters())
    templates = tuple(
        draw(workflow_templates(f"workflow {index}", cluster))
        for index in range(draw(st.integers(1, 4)))
    )
    nodes = [
        (server_type, server_id, node_id)
        for server_type in cluster.server_types
        for server_id in range(server_type.count)
        for node_id in range(server_type.numa_nodes)
    ]
    favourites = draw(st.lists(st.sampled_from(nodes), min_size=1, max_size=3))
    placements = {}
    for wf_id, template in enumerate(templates):
        for fn_id in range(template.function_count):
            server_type, server_id, node_id = draw(st.sampled_from(favourites))
            needed = min(int(template.memory_req[fn_id]), server_type.memory)
            given = draw(st.sampled_from([needed, max(1, needed // 2), server_type.memory]))
            placements[wf_id, fn_id] = (server_type.name, server_id, node_id, given)
    arrivals = tuple(draw(MOMENTS) for _ in templates)
    return Scenario(arrivals, templates, cluster, placements)


def of_one_speed(cluster: ClusterConfig) -> ClusterConfig:
    """On a server a million times slower, a function would be preempted a million times."""
    kinds = tuple(replace(kind, single_core_speed=None) for kind in cluster.server_types)
    return replace(cluster, server_types=kinds)


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


@st.composite
def images_of(draw: st.DrawFn, templates: Sequence[WorkflowTemplate]) -> Images:
    """One to four images; functions, also of different workflows, may share one."""
    count = draw(st.integers(1, 4))
    return Images(
        cold_start=np.array([draw(SECONDS) for _ in range(count)]),
        of={
            template: np.array(
                [draw(st.integers(0, count - 1)) for _ in range(template.function_count)]
            )
            for template in dict.fromkeys(templates)
        },
    )
