"""Where a real Ray of two and of four nodes on this machine places tasks, and where ours would."""

import time
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pytest
import ray
from ray.cluster_utils import Cluster
from ray.exceptions import TaskUnschedulableError
from ray.util.placement_group import placement_group, placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import (
    In,
    NodeAffinitySchedulingStrategy,
    NodeLabelSchedulingStrategy,
)

from agents.placement.ray_bundles import plan
from agents.placement.ray_node_affinity import Affinity, affine
from agents.placement.ray_node_label import LabelWish, labelled
from agents.placement.ray_spread import next_in_turn
from agents.ray_nodes import Nodes
from env.resources.quantity import UNIT
from tests.agents.test_ray_policies import HYBRID

CASES = 22
"""Of each of five policies on each cluster: 220 in all."""
KEYS = ("CPU", "memory", "GPU")
CLUSTERS = {
    "two nodes": [(4, 1000, 0), (4, 1000, 0)],
    "four nodes": [(8, 1000, 0), (8, 1000, 0), (4, 1000, 0), (8, 1000, 2)],
}
"""What nodes have of `KEYS`, memory in bytes: Ray takes their word."""
LABELS = [{"zone": "a"}, {"zone": "b", "disk": "c"}, {"zone": "a", "disk": "d"}, {"zone": "b"}]
SETTLE = 0.25
"""Seconds after which schedulers know of each other's nodes; they report every 0.1 s."""
Answer = tuple[Any, Any]
"""What Ray did, and what ours allow."""


@ray.remote(num_cpus=1, max_retries=0, max_calls=0)
def where(seconds: float = 0.0) -> str:
    """The node, after some time there."""
    time.sleep(seconds)
    return str(ray.get_runtime_context().get_node_id())


def by_key(row: np.ndarray) -> dict[str, float]:
    return {key: float(each) for key, each in zip(KEYS, row, strict=True) if each}


class RealRay:
    """A cluster whose nodes are called by their row; the first is the driver's.

    Attributes:
        has, taken: (N, KEYS); `goes` asks Ray when so much is taken.
        order: nodes as Ray sorts them, by a hash: SPREAD shows in which circle, hybrid who comes
            behind the first.
    """

    def __init__(self, has: Sequence[tuple[float, ...]]) -> None:
        self.has = np.array(has)
        self.taken = np.zeros(self.has.shape)
        self.groups: list[Any] = []
        self.cluster = Cluster()
        for at, (cpus, memory, gpus) in enumerate(has):
            self.cluster.add_node(
                num_cpus=cpus,
                num_gpus=gpus,
                memory=memory,
                object_store_memory=80_000_000,
                resources={f"node_{at}": 1000},
                labels=LABELS[at],
                include_dashboard=False,
            )
        ray.init(address=self.cluster.address, log_to_driver=False)
        ids = {key: each["NodeID"] for each in ray.nodes() for key in each["Resources"]}
        self.ids = [ids[f"node_{at}"] for at in range(len(has))]
        one = np.array([1, 0, 0])
        for node in self.ids:  # each starts a worker, which later tasks use, too
            self.goes(one, NodeAffinitySchedulingStrategy(node, soft=False))
        turns: list[Any] = [self.goes(one, "SPREAD") for _ in has]
        self.last_turn = turns[-1]
        self.taken[0, 0] = self.has[0, 0]
        begin = turns.index(self.goes(one, "DEFAULT"))
        self.order = turns[begin:] + turns[:begin]

    def occupy(self) -> None:
        """Holds what is taken, as tasks that run would, and waits until all nodes know."""
        for group in self.groups:
            remove_placement_group(group)
        self._wait_for(self.has)
        held = [(at, row) for at, row in enumerate(self.taken) if row.any()]
        self.groups = [placement_group([{**by_key(row), f"node_{at}": 1}]) for at, row in held]
        self._wait_for(self.has - self.taken)
        time.sleep(SETTLE)

    def _wait_for(self, available: np.ndarray) -> None:
        seen = None
        for _ in range(1000):
            known = ray._private.state.available_resources_per_node()
            seen = np.array([[known[node].get(key, 0) for key in KEYS] for node in self.ids])
            if (seen == available).all():
                return
            time.sleep(0.02)
        raise TimeoutError(f"available: {seen}, expected: {available}")

    def goes(self, demand: np.ndarray, strategy: Any, waits: bool = False) -> Any:
        """The node on which a task runs, once that has room if it `waits`; None: on none."""
        self.occupy()
        options = dict(zip(("num_cpus", "memory", "num_gpus"), demand.tolist(), strict=True))
        task = where.options(**options, scheduling_strategy=strategy).remote()
        if waits:
            time.sleep(SETTLE)
            self.taken[:] = 0
            self.occupy()
        try:
            return self.ids.index(ray.get(task, timeout=30))
        except TaskUnschedulableError:
            return None

    def state(self, order: Sequence[int]) -> Nodes:
        """The nodes as ours see them, in an order."""
        total, available = (units(each)[list(order)] for each in (self.has, self.has - self.taken))
        return Nodes(KEYS, total, available)

    def draw(self, rng: np.random.Generator, room: bool = True) -> tuple[np.ndarray, Nodes]:
        """Takes parts of nodes; what a task asks for, for which there is `room`, and the nodes."""
        choices = [0.5, 1, 2, 3.5, 6], [0, 0, 100, 500], [0, 0, 0, 1]
        while True:
            shares = rng.integers(self.has + 1) * (rng.random((len(self.has), 1)) < 0.7)
            self.taken, demand = shares.astype(float), np.array([rng.choice(c) for c in choices])
            state = self.state(self.order)
            if state.free_for(units(demand)).any() or not room:
                return demand, state

    def allowed(self, rows: Sequence[int] | np.ndarray) -> list[int | None]:
        return [self.order[row] for row in rows] or [None]


def units(amounts: np.ndarray) -> np.ndarray:
    return (amounts * UNIT).astype(np.int64)


def hybrid(real: RealRay, rng: np.random.Generator) -> Answer:
    demand, state = real.draw(rng)
    ours = HYBRID.best(state, units(demand), real.order.index(0))
    return real.goes(demand, "DEFAULT"), real.allowed(ours)


def spread(real: RealRay, rng: np.random.Generator) -> Answer:
    demand, state = real.draw(rng)
    ours = next_in_turn(state, units(demand), real.order.index(real.last_turn) + 1)
    real.last_turn = real.goes(demand, "SPREAD")
    return real.last_turn, real.allowed(ours)


def affinity(real: RealRay, rng: np.random.Generator) -> Answer:
    demand, state = real.draw(rng)
    target = int(rng.integers(-1, len(real.has)))  # -1: a node that there is not
    row = real.order.index(target) if target >= 0 else None
    soft, strict = (bool(each) for each in rng.integers(2, size=2))
    more = {"spill_on_unavailable": soft and strict, "fail_on_unavailable": strict > soft}
    ours = affine(state, units(demand), Affinity(node=("", 0, 0), soft=soft, **more), row)
    best = HYBRID.best(state, units(demand), real.order.index(0)) if ours is None else ours
    node = "1" * 56 if row is None else real.ids[target]
    more = {f"_{key}": each for key, each in more.items()}
    waits = bool(ours) and not state.free_for(units(demand))[row]
    strategy = NodeAffinitySchedulingStrategy(node, soft, **more)
    return real.goes(demand, strategy, waits), real.allowed(best)


def label(real: RealRay, rng: np.random.Generator) -> Answer:
    rows = free = np.array([], np.int64)
    while len(rows) == 0 or not free[rows].all():  # Ray says nothing of tasks that wait
        demand, state = real.draw(rng)
        keys = rng.choice(["zone", "disk"], 2).tolist()
        hard, soft = ({key: tuple(rng.choice(list("abcd"), 2).tolist())} for key in keys)
        labels = [LABELS[at] for at in real.order]
        rows = labelled(state, units(demand), labels, LabelWish(hard=hard, soft=soft))
        free = state.free_for(units(demand))
    wanted = [{key: In(*values) for key, values in each.items()} for each in (hard, soft)]
    strategy = NodeLabelSchedulingStrategy(hard=wanted[0], soft=wanted[1])
    return real.goes(demand, strategy), real.allowed(rows)


def bundles(real: RealRay, rng: np.random.Generator) -> Answer:
    group = np.array([real.draw(rng, room=False)[0] for _ in range(rng.integers(1, 5))])
    strategy = str(rng.choice(["PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"]))

    def placed(where: Sequence[int] | None) -> Any:
        """Which bundles are where; of equal ones no matter which."""
        return where and sorted(zip(group.tolist(), where, strict=True))

    ours = []  # Ray goes through nodes of equal scores in an order of its own
    for order in permutations(range(len(real.has))):
        rows = plan(real.state(order), units(group), strategy)
        ours.append(placed(rows and [order[row] for row in rows]))
    real.occupy()
    given = placement_group([by_key(row) for row in group], strategy)
    there = given.wait(30 if None not in ours else 2 * SETTLE)
    seen = placement_group_table(given)["bundles_to_node_id"]
    remove_placement_group(given)
    return placed([real.ids.index(seen[at]) for at in range(len(group))] if there else None), ours


@pytest.mark.long
@pytest.mark.parametrize("name", CLUSTERS)
def test_ray_goes_where_ours_allow(name: str, no_ray: None) -> None:
    real = RealRay(CLUSTERS[name])
    try:
        for policy in (hybrid, spread, affinity, label, bundles):
            for seed in range(CASES):
                did, ours = policy(real, np.random.default_rng(seed))
                assert did in ours, (policy.__name__, seed, real.taken)
        if name == "two nodes":  # of tasks that block two share a node of 4 cores, four go 2 + 2
            real.taken[:] = 0
            real.occupy()
            tasks = []
            for _ in range(4):
                tasks.append(where.remote(6.0))
                time.sleep(4 * SETTLE)
            assert [real.ids.index(node) for node in ray.get(tasks)] == [0, 0, 1, 1]
    finally:
        ray.shutdown()
        real.cluster.shutdown()
