"""Where a real Ray of two and of four nodes on this machine places tasks, and where ours would."""

import time
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
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
from tests.agents.test_ray_policies import HYBRID, asks, nodes

CASES = 22
"""Of each of five policies on each cluster: 220 in all."""
MEMORY = 1000
"""Bytes that each node says it has."""
CLUSTERS = {
    "two nodes": [{"CPU": 4}, {"CPU": 4}],
    "four nodes": [{"CPU": 8}, {"CPU": 8}, {"CPU": 4}, {"CPU": 8, "GPU": 2}],
}
LABELS = [{"zone": "a"}, {"zone": "b", "disk": "c"}, {"zone": "a", "disk": "d"}, {"zone": "b"}]
SETTLE = 0.25
"""Seconds after which schedulers know of each other's nodes; they report every 0.1 s."""
Amounts = dict[str, float]
Answer = tuple[Any, Any]
"""What Ray did, and what ours allow."""


@ray.remote(num_cpus=1, max_retries=0, max_calls=0)
def where(blocks: Path | None = None) -> str:
    """The node; with a file, writes it there first and stays until that is gone."""
    node = str(ray.get_runtime_context().get_node_id())
    if blocks:
        blocks.write_text(node)
        while blocks.exists():
            time.sleep(0.02)
    return node


class RealRay:
    """A cluster whose nodes are called by their place in `has`; the first is the driver's.

    Attributes:
        taken: of each node, when `goes` asks.
        order: nodes as Ray sorts them, by a hash: SPREAD shows in which circle, hybrid who comes
            behind the first.
    """

    def __init__(self, has: Sequence[Amounts]) -> None:
        self.has = [{**each, "memory": MEMORY} for each in has]
        self.taken: list[Amounts] = [{} for _ in has]
        self.groups: list[Any] = []
        self.cluster = Cluster()
        for at, each in enumerate(has):
            self.cluster.add_node(
                num_cpus=each["CPU"],
                num_gpus=each.get("GPU", 0),
                memory=MEMORY,
                object_store_memory=80_000_000,
                resources={f"node_{at}": 1000},
                labels=LABELS[at],
                include_dashboard=False,
            )
        ray.init(address=self.cluster.address, log_to_driver=False)
        ids = {key: each["NodeID"] for each in ray.nodes() for key in each["Resources"]}
        self.ids = [ids[f"node_{at}"] for at in range(len(has))]
        for node in self.ids:  # each starts a worker, which later tasks use, too
            self.goes({"CPU": 1}, NodeAffinitySchedulingStrategy(node, soft=False))
        turns: list[Any] = [self.goes({"CPU": 1}, "SPREAD") for _ in has]
        self.last_turn = turns[-1]
        self.taken[0] = {"CPU": has[0]["CPU"]}
        begin = turns.index(self.goes({"CPU": 1}, "DEFAULT"))
        self.order = turns[begin:] + turns[:begin]

    def occupy(self) -> None:
        """Holds what is taken, as tasks that run would, and waits until all nodes know."""
        for group in self.groups:
            remove_placement_group(group)
        self._wait_for([{} for _ in self.has])
        held = [{key: each for key, each in taken.items() if each} for taken in self.taken]
        bundles = [{**each, f"node_{at}": 1} for at, each in enumerate(held) if each]
        self.groups = [placement_group([bundle]) for bundle in bundles]
        self._wait_for(self.taken)
        time.sleep(SETTLE)

    def _wait_for(self, taken: Sequence[Amounts]) -> None:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            seen = ray._private.state.available_resources_per_node()
            nodes = zip(self.ids, self.has, taken, strict=True)
            if all(
                seen[node].get(key, 0) == has[key] - held.get(key, 0)
                for node, has, held in nodes
                for key in has
            ):
                return
            time.sleep(0.01)
        raise TimeoutError(f"{taken} is not what Ray sees")

    def goes(self, demand: Amounts, strategy: Any, waits: bool = False) -> Any:
        """The node on which a task runs, once that has room if it `waits`; None: on none."""
        self.occupy()
        cpus, gpus, memory = (demand.get(label, 0) for label in ("CPU", "GPU", "memory"))
        options = {"num_cpus": cpus, "num_gpus": gpus, "memory": memory}
        task = where.options(**options, scheduling_strategy=strategy).remote()
        if waits:
            time.sleep(SETTLE)
            self.taken = [{} for _ in self.has]
            self.occupy()
        try:
            return self.ids.index(ray.get(task, timeout=30))
        except TaskUnschedulableError:
            return None

    def state(self, order: Sequence[int]) -> Nodes:
        """The nodes as ours see them, in an order."""
        pairs = [(self.has[at], self.taken[at]) for at in order]
        return nodes(
            *({key: (has[key] - held.get(key, 0), has[key]) for key in has} for has, held in pairs)
        )

    def draw(self, rng: np.random.Generator) -> tuple[Amounts, Nodes, np.ndarray]:
        """Takes any part of each node; what a task asks for, and both as ours see them."""
        amounts = [
            {key: float(rng.integers(most + 1)) for key, most in has.items()} for has in self.has
        ]
        self.taken = [each if rng.random() < 0.7 else {} for each in amounts]
        choices = {"CPU": [0.5, 1, 2, 3.5, 6], "memory": [0, 0, 100, 500], "GPU": [0, 0, 0, 1]}
        demand = {key: float(rng.choice(each)) for key, each in choices.items()}
        return demand, self.state(self.order), asks(**demand)

    def draw_with_room(self, rng: np.random.Generator) -> tuple[Amounts, Nodes, np.ndarray]:
        """As `draw`, so that some node has room."""
        demand, state, asked = self.draw(rng)
        return (demand, state, asked) if state.free_for(asked).any() else self.draw_with_room(rng)

    def allowed(self, rows: Sequence[int] | np.ndarray) -> list[int | None]:
        return [self.order[row] for row in rows] or [None]


def hybrid(real: RealRay, rng: np.random.Generator) -> Answer:
    demand, state, asked = real.draw_with_room(rng)
    ours = HYBRID.best(state, asked, real.order.index(0))
    return real.goes(demand, "DEFAULT"), real.allowed(ours)


def spread(real: RealRay, rng: np.random.Generator) -> Answer:
    demand, state, asked = real.draw_with_room(rng)
    ours = next_in_turn(state, asked, real.order.index(real.last_turn) + 1)
    real.last_turn = real.goes(demand, "SPREAD")
    return real.last_turn, real.allowed(ours)


def affinity(real: RealRay, rng: np.random.Generator) -> Answer:
    demand, state, asked = real.draw_with_room(rng)
    target = int(rng.integers(-1, len(real.has)))  # -1: a node that there is not
    row = real.order.index(target) if target >= 0 else None
    soft, strict = (bool(each) for each in rng.integers(2, size=2))
    more = {"spill_on_unavailable": soft and strict, "fail_on_unavailable": strict > soft}
    ours = affine(state, asked, Affinity(node=("", 0, 0), soft=soft, **more), row)
    best = HYBRID.best(state, asked, real.order.index(0)) if ours is None else ours
    wanted = NodeAffinitySchedulingStrategy(
        "1" * 56 if row is None else real.ids[target],
        soft,
        **{f"_{key}": each for key, each in more.items()},
    )
    waits = bool(ours) and not state.free_for(asked)[row]
    return real.goes(demand, wanted, waits), real.allowed(best)


def label(real: RealRay, rng: np.random.Generator) -> Answer:
    rows = free = np.array([], np.int64)
    while len(rows) == 0 or not free[rows].all():  # Ray says nothing of tasks that wait
        demand, state, asked = real.draw(rng)
        keys = rng.choice(["zone", "disk"], 2).tolist()
        hard, soft = ({key: tuple(rng.choice(list("abcd"), 2).tolist())} for key in keys)
        labels = [LABELS[at] for at in real.order]
        rows = labelled(state, asked, labels, LabelWish(hard=hard, soft=soft))
        free = state.free_for(asked)
    wanted = [{key: In(*values) for key, values in each.items()} for each in (hard, soft)]
    strategy = NodeLabelSchedulingStrategy(hard=wanted[0], soft=wanted[1])
    return real.goes(demand, strategy), real.allowed(rows)


def bundles(real: RealRay, rng: np.random.Generator) -> Answer:
    group = [real.draw(rng)[0] for _ in range(rng.integers(1, 5))]
    demands = np.array([asks(**each) for each in group])
    strategy = str(rng.choice(["PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"]))

    def placed(where: Sequence[int] | None) -> Any:
        """Which bundles are where; of equal ones no matter which."""
        return where and sorted(zip(demands.tolist(), where, strict=True))

    ours = []  # Ray goes through nodes of equal scores in an order of its own
    for order in permutations(range(len(real.has))):
        rows = plan(real.state(order), demands, strategy)
        ours.append(placed(rows and [order[row] for row in rows]))
    real.occupy()
    asked = [{key: each for key, each in bundle.items() if each} for bundle in group]
    given = placement_group(asked, strategy)
    there = given.wait(30 if None not in ours else 2 * SETTLE)
    seen = placement_group_table(given)["bundles_to_node_id"]
    remove_placement_group(given)
    return placed([real.ids.index(seen[at]) for at in range(len(group))] if there else None), ours


@pytest.mark.long
@pytest.mark.parametrize("name", CLUSTERS)
def test_ray_goes_where_ours_allow(name: str, tmp_path: Path) -> None:
    real = RealRay(CLUSTERS[name])
    try:
        for policy in (hybrid, spread, affinity, label, bundles):
            for seed in range(CASES):
                did, ours = policy(real, np.random.default_rng(seed))
                assert did in ours, (policy.__name__, seed, real.taken)
        if name == "two nodes":  # of tasks that block two share a node of 4 cores, four go 2 + 2
            real.taken = [{}, {}]
            real.occupy()
            files = [tmp_path / str(number) for number in range(4)]
            for file in files:
                where.remote(file)
                while not (file.exists() and file.read_text()):
                    time.sleep(0.02)
                time.sleep(SETTLE)
            assert [real.ids.index(file.read_text()) for file in files] == [0, 0, 1, 1]
            for file in files:
                file.unlink()
    finally:
        ray.shutdown()
        real.cluster.shutdown()
