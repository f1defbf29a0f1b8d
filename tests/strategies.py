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
from env.sim.declared.episode import Episode, EpisodeWorkload
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.images import Images
from env.sim.declared.keep_alive_policy import FaasCache, Fixed, HybridHistogram, Lru, NoKeepAlive
from env.sim.declared.ordering import Order
from env.sim.declared.power import Power
from env.sim.declared.regions import Link, Region, Regions
from env.sim.declared.rules import KeepAlivePolicy, Lease, Rules
from env.sim.declared.workflow_template import WorkflowTemplate
from tests.env.small import held

# Whole numbers make ties; the others make roundings.
MOMENTS = st.one_of(
    st.integers(0, 12).map(float),
    st.floats(0.0, 20.0),
    st.sampled_from([3599.0, 3600.0, 3601.0, 7200.0, 20000.0]),
)
SECONDS = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0]) | st.floats(0.0, 4.0)
CORE_SPEEDS = st.sampled_from([1, 7, 1000, 1_000_000])


PRICES = {"request": 0.5, "gb_second": {"x86_64": 3.0, "arm64": 2.0}}
LEASES = [
    Lease(),
    Lease(kind="always"),
    Lease(kind="always", charged=False),
    Lease(kind="always", charged=False, use=PRICES),
    Lease(
        kind="always", charged=False, use={**PRICES, "free_requests": 2, "free_gb_seconds": 0.02}
    ),
]
STEPS = st.sampled_from([60.0, 600.0, 3600.0])
SLICES = st.sampled_from([2.0, 400.0, 1500.0])
PAUSES = st.sampled_from([5.0, 30.0, 70.0, 700.0, 5000.0])
ARRIVALS = (
    st.integers(0, 150).map(float)
    | MOMENTS
    | st.sampled_from([59.0, 60.0, 61.0, 120.0, 600.0, 1200.0])
)


@dataclass(frozen=True)
class World:
    """An episode. Who is asked chooses at random among the first `spread` nodes.

    `placements` have a node and MB for each function instead.
    """

    episode: Episode
    seed: int = 0
    spread: int = 1
    placements: Mapping[tuple[int, int], tuple[int, int]] | None = None

    @property
    def node_memories(self) -> list[int]:
        return [
            kind.memory
            for kind in self.episode.cluster.server_types
            for _ in range(kind.count * kind.numa_nodes)
        ]


INTENSITIES = st.sampled_from([400.0, [10.0, 0.0, 500.0], [300.0, 100.0]])


@st.composite
def regions(draw: st.DrawFn) -> dict[str, Region]:
    """Two or three regions, or mostly none."""
    names = draw(st.sampled_from(["", "", "", "ab", "abc"]))
    links = st.builds(
        Link,
        round_trip=st.sampled_from([0.0, 0.5, 3.0]),
        bandwidth=st.sampled_from([7.0, 1e7]),
        egress=st.sampled_from([0.0, 0.02, 9.0]),
    )
    return {
        name: Region(
            price=draw(st.sampled_from([1.0, 1.2])),
            relative_performance=draw(st.sampled_from([1.0, 0.6])),
            power={"pue": 2.0, "carbon_intensity_g_per_kwh": draw(INTENSITIES)},
            links={other: draw(links) for other in names if name < other or draw(st.booleans())},
        )
        for name in names
    }


@st.composite
def clusters(draw: st.DrawFn) -> ClusterConfig:
    """One to three types of one or two servers with one to three NUMA nodes, in each region."""
    places = draw(regions())
    power = {"idle_core_w": 1.0, "busy_core_w": 5.0, "memory_w_per_gb": 0.5, "pue": 1.0}
    return ClusterConfig(
        regions=places,
        home=draw(st.sampled_from([None, *places])),
        transfer_kwh_per_gb=draw(st.sampled_from([0.0, 1.0])),
        power=Power(carbon_intensity_g_per_kwh=draw(INTENSITIES), **power),
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
                architecture=draw(st.sampled_from(["x86_64", "arm64"])),
            )
            for index in range(draw(st.integers(1, 3)))
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
    """A DAG of one to `most` functions; some call others with certainty."""
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
    chances = st.sampled_from(draw(st.sampled_from([(1.0,), (1.0, 0.3), (0.3,)])))
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
        probability=np.array([draw(chances) for _ in edges]),
        regions=tuple(draw(permissions(list(cluster.regions))) for _ in functions),
    )


def permissions(names: Sequence[str]) -> st.SearchStrategy[Regions]:
    """Where a function may run: mostly everywhere, or in one of the regions."""
    if not names:
        return st.just(Regions())
    one = st.sampled_from(names).map(lambda name: Regions(allowed=(name,)))
    return st.sampled_from([Regions(), Regions(disallowed=(names[0],))]) | one


NEEDS = {"GPU": (0, 0.3, 0.5, 0.7, 1, 2), "license": (0, 0.25, 1, 1.5, 2)}


@st.composite
def with_named_resources(
    draw: st.DrawFn, cluster: ClusterConfig, templates: Sequence[WorkflowTemplate]
) -> tuple[ClusterConfig, list[WorkflowTemplate]]:
    """Up to two named resources, few of each, and functions that need some, none or all of it.

    Those of GPU have ids, so 1.5 cannot be asked for.

    The server type with the most memory has as much of each as any function needs, everywhere.
    """
    names = draw(st.sampled_from([(), ("GPU",), ("GPU", "license")]))
    most = {name: draw(st.integers(1, 2)) for name in names}
    largest = max(cluster.server_types, key=lambda kind: kind.memory)
    kinds = tuple(
        replace(
            kind,
            resources=most
            if kind.name.partition("_")[0] == largest.name.partition("_")[0]
            else {name: draw(st.integers(0, units)) for name, units in most.items()},
        )
        for kind in cluster.server_types
    )
    given = [
        replace(
            template,
            resources={
                name: np.array(
                    [
                        draw(st.sampled_from([need for need in NEEDS[name] if need <= units]))
                        for _ in range(template.function_count)
                    ]
                )
                for name, units in most.items()
            },
        )
        for template in templates
    ]
    return replace(cluster, server_types=kinds), given


def of_one_speed(cluster: ClusterConfig) -> ClusterConfig:
    """On a server a million times slower, a function would be preempted a million times."""
    kinds = tuple(replace(kind, single_core_speed=None) for kind in cluster.server_types)
    return replace(cluster, server_types=kinds)


def orders() -> st.SearchStrategy[Order]:
    return st.one_of(
        st.sampled_from([Fcfs(), Sjf(), Srf(), Heft(), CriticalPath()]),
        SLICES.map(lambda time: RoundRobin(time_slice=time)),
        SLICES.map(lambda time: Srtf(check_interval=time)),
        st.sampled_from([0.0, 2.0, 5.0, 1e9]).map(lambda time: FuncSched(starve_threshold=time)),
    )


def keep_alives() -> st.SearchStrategy[KeepAlivePolicy]:
    return st.one_of(
        st.sampled_from([NoKeepAlive(), Lru(), FaasCache()]),
        st.sampled_from([Lru(), FaasCache()]),
        st.sampled_from([1.0, 2.0, 7.0]).map(lambda keep: Fixed(keep=keep)),
        histograms(st.integers(2, 12)),
        histograms(st.integers(1, 4)),
    )


def histograms(bins: st.SearchStrategy[int]) -> st.SearchStrategy[HybridHistogram]:
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


SEEDS, SPREADS = st.integers(0, 1000), st.sampled_from([1, 2, 100])


@st.composite
def plain_worlds(draw: st.DrawFn, by_tickets: bool = False) -> World:
    """One to four workflows whose functions are placed at once, on few nodes.

    Where tenants share cores by tickets, one of them runs nothing.
    """
    cluster = draw(clusters())
    count = draw(st.integers(1, 4))
    templates = [draw(workflow_templates(f"workflow {index}", cluster)) for index in range(count)]
    arrivals = tuple(draw(MOMENTS) for _ in templates)
    workload = EpisodeWorkload(arrivals, tuple(templates))
    if by_tickets:
        tickets = {name: draw(st.integers(1, 9)) for name in "abc"}
        funding = held(idle=draw(st.sampled_from([1, 10**9])), **tickets)
        tenants = tuple(draw(st.sampled_from("abc")) for _ in templates)
        workload = replace(workload, tenants=tenants, funding=funding)
        cluster = replace(cluster, cpu_share="tickets")
    return World(Episode(workload, cluster), draw(SEEDS), draw(SPREADS))


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A few workflows that come again, at once or after leases have ended, under any rules."""
    cluster = draw(clusters())
    of_requests = draw(st.booleans())
    made = [
        draw(workflow_templates(f"workflow {index}", cluster, 1 if of_requests else 6))
        for index in range(draw(st.integers(1, 3)))
    ]
    lease = draw(st.sampled_from(LEASES)).model_copy(update={"step": draw(STEPS)})
    renewed = lease.kind == "always" and lease.charged
    beside_each_other = draw(st.sampled_from([1, 2, 4]))
    # Where time passes step by step or slice by slice, it does not pass for years.
    longest = 20 * lease.step if renewed else 4000
    made = [
        replace(
            template,
            computation=np.minimum(template.computation, int(longest * cluster.single_core_speed)),
            data_bytes=np.minimum(template.data_bytes, 12345),
            memory_req=np.maximum(1, template.memory_req // beside_each_other),
        )
        for template in made
    ]
    cluster, made = draw(with_named_resources(cluster, made))
    most = 15 if of_requests else 6
    templates = tuple(
        draw(st.lists(st.sampled_from(made), min_size=draw(st.integers(1, 5)), max_size=most))
    )
    drawn = st.integers(1, 20 * cluster.single_core_speed)
    order = draw(orders()) if draw(st.booleans()) else None
    if renewed or isinstance(order, RoundRobin | Srtf):
        cluster = of_one_speed(cluster)
    arrivals = draw(
        st.tuples(*[ARRIVALS for _ in templates])
        | PAUSES.map(lambda pause: tuple(pause * place for place in range(len(templates))))
    )
    work = tuple(draw(drawn) for _ in templates) if of_requests else ()
    given = {"work": work, "images": draw(images_of(templates))}
    given["begin_hour"] = draw(st.sampled_from([0, 1, 30]))
    workload = EpisodeWorkload(arrivals, templates, **given)
    rules = Rules(
        order=order,
        placement=draw(st.sampled_from(["first_fit", "best_fit", "worst_fit", "asked"])),
        patience=draw(st.sampled_from([0.0, 1.0, 5.0, 30.0, np.inf])),
        lease=lease,
        keep_alive=draw(keep_alives()),
    )
    return World(Episode(workload, cluster, rules), draw(SEEDS), draw(SPREADS))
