"""Every combination of dispatch, lease and keep-alive is what the reference world has of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.order.fcfs import Fcfs
from agents.order.rr import RoundRobin
from agents.order.srtf import Srtf
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.images import Images
from env.sim.declared.keep_alive_policy import FaasCache, Lru
from env.sim.declared.ordering import Order
from env.sim.declared.resources import names_of
from env.sim.declared.rules import KeepAlive, Lease, Rules
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.node import idle_forecast
from env.sim.node.fit import need_of, suits
from env.sim.state.records import COMPLETED
from env.sim.view.raw_env import RawEnv
from tests.episodes import begun
from tests.recount import assert_tracked
from tests.reference_inputs import jobs_of, mean, rules_of
from tests.reference_records import Job, Run
from tests.reference_world import ReferenceWorld
from tests.strategies import (
    MOMENTS,
    clusters,
    histograms,
    images_of,
    keep_alives,
    of_one_speed,
    orders,
    with_named_resources,
    workflow_templates,
)

STEPS = st.sampled_from([60.0, 600.0, 3600.0])
SLICES = st.sampled_from([2.0, 400.0, 1500.0])
KEPT = st.sampled_from([Lru(), FaasCache()])
PAUSES = st.sampled_from([5.0, 30.0, 70.0, 700.0, 5000.0])
ARRIVALS = (
    st.integers(0, 150).map(float)
    | MOMENTS
    | st.sampled_from([59.0, 60.0, 61.0, 120.0, 600.0, 1200.0])
)


@dataclass(frozen=True)
class World:
    """An episode and its choices. Who is asked chooses at random among the first `spread` nodes.

    `work` is drawn where each workflow is a single function.
    """

    arrival_times: tuple[float, ...]
    templates: tuple[WorkflowTemplate, ...]
    cluster: ClusterConfig
    images: Images
    work: tuple[int, ...]
    dispatch: str
    patience: float
    order: Order
    placement: str
    lease: str
    step: float
    charged: bool
    keep_alive: KeepAlive
    seed: int
    spread: int

    @property
    def rules(self) -> Rules:
        """As the engine takes them."""
        return Rules(
            order=self.order if self.dispatch == "queued" else None,
            placement=self.placement,
            patience=self.patience,
            lease=Lease(kind=self.lease, step=self.step, charged=self.charged),
            keep_alive=self.keep_alive,
        )

    @property
    def node_memories(self) -> list[int]:
        return [
            kind.memory
            for kind in self.cluster.server_types
            for _ in range(kind.count * kind.numa_nodes)
        ]


class Chooser:
    """Answers who is asked in the engine and in the reference, in the same order alike."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.random = np.random.default_rng(world.seed)

    def __call__(self, candidates: Sequence[int], memory_req: int) -> tuple[int, int]:
        """A node and MB: what is required, half of it or, at once, all that the node has."""
        node = candidates[int(self.random.integers(min(len(candidates), self.world.spread)))]
        memories = [memory_req, max(1, memory_req // 2)]
        if self.world.dispatch == "immediate":
            memories.append(self.world.node_memories[node])
        return node, memories[int(self.random.integers(len(memories)))]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A few workflows that come again, at once or after leases have ended."""
    cluster = draw(clusters())
    of_requests = draw(st.booleans())
    made = [
        draw(workflow_templates(f"workflow {index}", cluster, 1 if of_requests else 6))
        for index in range(draw(st.integers(1, 3)))
    ]
    lease, charged = draw(st.sampled_from([("hourly", True), ("always", True), ("always", False)]))
    step = draw(STEPS)
    beside_each_other = draw(st.sampled_from([1, 2, 4]))
    # Where time passes step by step or slice by slice, it does not pass for years.
    longest = 20 * step if lease == "always" and charged else 4000
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
    dispatch = draw(st.sampled_from(["immediate", "queued"]))
    order = draw(orders(SLICES)) if dispatch == "queued" else Fcfs()
    if (lease == "always" and charged) or isinstance(order, RoundRobin | Srtf):
        cluster = of_one_speed(cluster)
    return World(
        arrival_times=draw(
            st.tuples(*[ARRIVALS for _ in templates])
            | PAUSES.map(lambda pause: tuple(pause * place for place in range(len(templates))))
        ),
        templates=templates,
        cluster=cluster,
        images=draw(images_of(templates)),
        work=tuple(draw(drawn) for _ in templates) if of_requests else (),
        dispatch=dispatch,
        patience=draw(st.sampled_from([0.0, 1.0, 5.0, 30.0, np.inf])),
        order=order,
        placement=draw(st.sampled_from(["first_fit", "best_fit", "worst_fit", "asked"])),
        lease=lease,
        step=step,
        charged=charged,
        keep_alive=draw(KEPT | keep_alives() | histograms(bins=st.integers(1, 4))),
        seed=draw(st.integers(0, 1000)),
        spread=draw(st.sampled_from([1, 2, 100])),
    )


def reference(world: World, kind: type[ReferenceWorld] = ReferenceWorld) -> ReferenceWorld:
    """The reference, having played the episode."""
    chooser = Chooser(world)

    def decide(played: ReferenceWorld, job: Job, candidates: list[int]) -> tuple[int, int]:
        return chooser(candidates, job.function.memory)

    return kind(
        world.cluster,
        jobs_of(
            world.arrival_times,
            world.templates,
            world.cluster,
            world.images,
            world.order,
            world.work,
        ),
        rules_of(
            world.order,
            world.keep_alive,
            dispatch=world.dispatch,
            patience=world.patience,
            placement=world.placement,
            lease=world.lease,
            step=world.step,
            charged=world.charged,
        ),
        mean,
        decide,
    )


def engine(world: World) -> RawEnv:
    """The engine, having played the episode, recorded if it can be; who is asked is a `Chooser`.

    Wherever any number of containers can be warm, it begins with room for one.
    """
    chooser = Chooser(world)
    env = begun(
        world.arrival_times,
        world.templates,
        world.cluster,
        record=not names_of(world.templates),  # of which an episode file knows nothing
        rules=world.rules,
        images=world.images,
        work=world.work,
    )
    while not env.done:
        assert_tracked(env.state)
        index = int(env.state.cluster[0]["deciding"])
        own = int(env.state.functions[index]["memory_req"])
        need = own if world.dispatch == "immediate" else need_of(env.state, index)
        nodes = range(len(env.state.nodes))
        candidates = [node for node in nodes if suits(env.state, node, need)]
        node, memory = chooser(candidates, own)
        env.step(*env.place_of(node), memory)
    return env


@given(world=worlds())
def test_engine(world: World) -> None:
    """Same runs, leases and counts as the reference; forecasts are those of `mean`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(idle_forecast, "next_idle_time", mean)
        patch.setattr("env.sim.assembly.with_rules.WARM", 1)
        env = engine(world)
    wanted = reference(world)
    runs = [
        Run(
            *(int(run[key]) for key in ("wf_id", "fn_id", "node")),
            bool(run["warm"]),
            bool(run["outcome"] == COMPLETED),
            *(float(run[f"{key}_time"]) for key in ("dispatch", "start", "end")),
            *(float(run[f"{key}_time"]) for key in ("queueing", "cold_start")),
            *(float(run[f"{key}_time"]) for key in ("data_transfer", "execution")),
            float(run["server_start_time"]),
        )
        for run in env.runs
    ]
    assert runs == wanted.runs
    paid = np.rint(env.state.ledger["lease_seconds"] / world.step)
    assert paid.tolist() == [server.steps for server in wanted.servers]
    leases = [server.expiration for server in wanted.servers]
    assert env.state.servers["expiration_time"].tolist() == leases
    assert env.state.cluster[0]["tracked_count"] == 0
    assert (env.cold_starts, env.time) == (wanted.starts, wanted.now)
    assert env.state.queue[0]["container_cold_starts"] == wanted.container_cold_starts
    assert env.total_rent == pytest.approx(wanted.total_rent)
