"""Finished episodes of every kind of world, recorded: for tests of files, validators and pictures.

A small cluster on which functions wait for servers, containers, data and memory.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from agents.baseline import make_baselines
from agents.order.chosen import Chosen
from agents.order.fcfs import Fcfs
from agents.order.funcsched import FuncSched
from agents.order.rr import RoundRobin
from agents.order.srtf import Srtf
from env.sim.declared.episode import Episode
from env.sim.declared.funding import Funding, Grant
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.images import Images
from env.sim.declared.keep_alive_policy import Fixed, Lru, NoKeepAlive
from env.sim.declared.ordering import Order
from env.sim.declared.rules import Lease, Rules
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.node.fit import need_of, suits
from env.sim.view.raw_env import RawEnv
from env.workloads.traces.trace import REQUEST, FunctionProfiles
from env.workloads.traces.trace_samples import TraceSample
from tests.env.small import ten_second_bins
from tests.episodes import begun

SPEED = 1_000_000
CLUSTER = ClusterConfig(
    single_core_speed=SPEED,
    memory_bandwidth=1e9,
    numa_bandwidth=3e8,
    network_bandwidth=1e8,
    server_types=(
        ServerType("small", 2, 0.5, 20.0, 1, 2, 2048),
        ServerType("large", 1, 2.0, 30.0, 2, 4, 4096),
    ),
)
DIAMOND = WorkflowTemplate(
    "diamond",
    computation=[10 * SPEED, 30 * SPEED, 20 * SPEED, 5 * SPEED],
    memory_req=[1024, 2048, 1536, 512],
    parallelism=[1, 2, 2, 1],
    edges=[(0, 1), (0, 2), (1, 3), (2, 3)],
    data_bytes=[10**8, 10**9, 0, 10**8],
    function_names=("split", "work", "work", "join"),
)
SHORT = WorkflowTemplate("short", [2 * SPEED], [1024], [1], [], [], function_names=("short",))
ARRIVALS = [0.0, 1.0, 2.0, 3.0, 90.0, 200.0, 201.0, 4000.0]
LEASES = {
    "hourly": Lease(),
    "hourly in steps of a minute": Lease(step=60.0),
    "always charged": Lease(kind="always", step=600.0),
    "always free": Lease(kind="always", charged=False),
}
KEPT = {
    "none": NoKeepAlive(),
    "fixed": Fixed(keep=40.0),
    "lru": Lru(),
    "hybrid histogram": ten_second_bins(30, 0.1),
}
ORDERS: dict[str, Order | None] = {
    "immediate": None,
    "fcfs": Fcfs(),
    "rr": RoundRobin(time_slice=4.0),
    "srtf": Srtf(check_interval=2.0),
    "funcsched": FuncSched(starve_threshold=30.0),
    "chosen": Chosen(),
}


def played(env: RawEnv) -> RawEnv:
    """The same, played to its end: on the nodes in turn, with less memory now and then.

    Who chooses takes the last that waits, now and then without one.
    """
    turn = 0
    while not env.done:
        turn += 1
        if env.waiting:
            busy = bool(env.state.nodes["running_count"].any())
            env.choose(None if busy and turn % 3 == 0 else env.waiting[-1])
            continue
        function = env.current_function
        assert function is not None
        count, own = len(env.state.nodes), env.function_index(function.wf_id, function.fn_id)
        need = function.memory_req if env.rules.order is None else need_of(env.state, own)
        nodes = [(turn + k) % count for k in range(count)]
        node = next(node for node in nodes if suits(env.state, node, need))
        env.step(*env.place_of(node), function.memory_req - (turn % 5 == 0))
    return env


def world(
    order: str = "immediate",
    lease: str = "hourly",
    keep_alive: str = "none",
    cold_start: float = 2.5,
    **others: Any,
) -> RawEnv:
    """A finished episode of workflows, recorded; `others` are fields of `Rules`."""
    rules = Rules(ORDERS[order], lease=LEASES[lease], keep_alive=KEPT[keep_alive], **others)
    images = Images.by_name([DIAMOND], cold_start)
    templates = [DIAMOND] * len(ARRIVALS)
    tenants = ["a", "b"] * (len(ARRIVALS) // 2)
    return played(
        begun(
            ARRIVALS, templates, CLUSTER, record=True, tenants=tenants, rules=rules, images=images
        )
    )


FUNDING = Funding(
    tenants={
        "a": Grant(tickets=3, currency="lab"),
        "b": Grant(tickets=1, currency="lab"),
        "c": Grant(tickets=1),
    },
    currencies={"lab": Grant(tickets=2)},
)


def shared(order: str, **others: Any) -> RawEnv:
    """The same of three tenants with tickets, who take turns by them; many wait at a time.

    The order is a file of conf/baseline, or two: `stride+sjf`.
    """
    (player,) = make_baselines([order], queued=True, funded=True)
    arrivals = [float(index // 4) for index in range(40)]
    rules = Rules(player.order, lease=LEASES["always free"], keep_alive=KEPT["lru"], **others)
    templates = [(DIAMOND, SHORT)[index % 3 == 0] for index in range(40)]
    tenants = [("a", "b", "b", "c", "a")[index % 5] for index in range(40)]
    images = Images.by_name(templates, 2.5)
    return played(
        begun(
            arrivals,
            templates,
            CLUSTER,
            record=True,
            tenants=tenants,
            rules=rules,
            images=images,
            funding=FUNDING,
            turns_seed=7,
            tickets=[(1.0, 8.0)[index % 7 == 0] for index in range(40)],
        )
    )


def crowded() -> RawEnv:
    """The tenants of `shared` on nodes with more threads than cores, which they share by tickets.

    Functions are placed at once.
    """
    tenants = [("a", "b", "b", "c", "a")[index % 5] for index in range(20)]
    cluster = replace(CLUSTER, cpu_share="tickets")
    arrivals = [float(index // 4) for index in range(20)]
    return played(
        begun(arrivals, [DIAMOND] * 20, cluster, record=True, tenants=tenants, funding=FUNDING)
    )


def trace(order: str = "rr", lease: str = "always free", **others: Any) -> RawEnv:
    """A finished episode of a trace sample of which earlier requests are known, recorded."""
    profiles = FunctionProfiles(
        names=("often", "seldom", "never"),
        execution=np.array([2.0, 8.0, 1.0]),
        cold_start=np.array([1.0, 3.0, 1.0]),
        memory=np.array([1024, 2048, 128]),
    )
    often = [(20.0 * k, 0, 1.0 + 0.5 * (k % 3)) for k in range(20)]
    seldom = [(25.0 + 70.0 * k, 1, 8.0 + k) for k in range(5)] + [(26.0, 1, 9.0), (27.0, 1, 7.0)]
    window = np.array(sorted([*often, *seldom, *((100.0, 1, 6.0),) * 6]), REQUEST)
    history = np.array([(-100.0 + 20.0 * k, 0, 1.0) for k in range(4)], REQUEST)
    sample = TraceSample(profiles, lambda: iter([window]), lambda: iter([history]))
    rules = Rules(ORDERS[order], lease=LEASES[lease], keep_alive=KEPT["hybrid histogram"], **others)
    episode = Episode(sample.episode(SPEED), CLUSTER, rules)
    return played(RawEnv.of(episode, record=True))
