"""Where a real Ray of two and of four nodes on this machine places tasks, and where ours would."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import ray
from ray.cluster_utils import Cluster
from ray.exceptions import TaskUnschedulableError
from ray.util import scheduling_strategies as strategies
from ray.util.placement_group import placement_group, placement_group_table, remove_placement_group

from agents.placement.ray_bundles import plan
from agents.placement.ray_node_affinity import Affinity, affine
from agents.placement.ray_node_label import Expression, LabelSelector, labelled
from agents.placement.ray_spread import next_in_turn
from tests.agents.test_ray_policies import HYBRID, asks, nodes

pytestmark = pytest.mark.long

CASES = 22
"""Of each policy on each cluster: 220 in all, and more."""
MEMORY = 1000
"""Bytes that each node says it has."""
CLUSTERS = {
    "two nodes": [{"CPU": 4}, {"CPU": 4}],
    "four nodes": [{"CPU": 8}, {"CPU": 8}, {"CPU": 4}, {"CPU": 8, "GPU": 2}],
}
LABELS = [{"zone": "a"}, {"zone": "b", "ssd": "1"}, {"zone": "a", "ssd": "2"}, {"zone": "b"}]
SETTLE = 0.25
"""Seconds after which schedulers know of each other's nodes; they report every 0.1 s."""
Amounts = dict[str, float]


@ray.remote(num_cpus=0, max_retries=0, max_calls=0)
def where() -> str:
    return str(ray.get_runtime_context().get_node_id())


@ray.remote(num_cpus=1, max_retries=0)
def hold(file: Path) -> None:
    """Writes its node to a file, and keeps its core until that is gone."""
    file.write_text(where._function())
    while file.exists():
        time.sleep(0.02)


class RealRay:
    """A cluster whose nodes are called by their place in `has`; the first is the driver's."""

    def __init__(self, has: Sequence[Amounts]) -> None:
        self.has = [{**each, "memory": MEMORY} for each in has]
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        head, *others = (
            {
                "num_cpus": each["CPU"],
                "num_gpus": each.get("GPU", 0),
                "memory": MEMORY,
                "object_store_memory": 80_000_000,
                "resources": {f"node_{at}": 1000},
                "labels": LABELS[at],
                "include_dashboard": False,
            }
            for at, each in enumerate(has)
        )
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        for each in others:
            self.cluster.add_node(**each)
        ray.init(address=self.cluster.address, log_to_driver=False)
        ids = {key: each["NodeID"] for each in ray.nodes() for key in each["Resources"]}
        self.ids = [ids[f"node_{at}"] for at in range(len(has))]
        self.groups: list = []
        self.taken: list[Amounts] = [{} for _ in has]
        self.order = self._order()
        self.first = 0

    def _order(self) -> list[int]:
        """The nodes as Ray sorts them: in the turns of SPREAD, as hybrid begins behind the head."""
        for at in range(len(self.has)):  # each starts a worker, which later tasks use, too
            ray.get(where.options(resources={f"node_{at}": 1}).remote())
        turns = []
        for _ in self.has:
            time.sleep(SETTLE)
            turns.append(self.chosen({"CPU": 1}, "SPREAD"))
        self.occupy([{"CPU": self.has[0]["CPU"]}])
        begin = turns.index(self.chosen({"CPU": 1}, "DEFAULT"))
        self.last_turn = turns[-1]
        return turns[begin:] + turns[:begin]

    def occupy(self, taken: Sequence[Amounts] = ()) -> None:
        """Holds amounts of each node, as tasks that run there would, and of nothing else."""
        for group in self.groups:
            remove_placement_group(group)
        self.taken = [{}] * len(self.has)
        self._wait_until_known()
        self.taken = [*taken, *[{}] * (len(self.has) - len(taken))]
        held = [(at, each) for at, each in enumerate(self.taken) if each]
        self.groups = [placement_group([{**each, f"node_{at}": 1}]) for at, each in held]
        self._wait_until_known()
        time.sleep(SETTLE)

    def _wait_until_known(self) -> None:
        """Waits until Ray says that what is not taken is available."""
        deadline = time.monotonic() + 30
        seen: list[Amounts] = []
        while seen != [
            {key: has[key] - taken.get(key, 0) for key in has}
            for has, taken in zip(self.has, self.taken, strict=True)
        ]:
            assert time.monotonic() < deadline, seen
            time.sleep(0.01)
            known = ray._private.state.available_resources_per_node()
            seen = [
                {key: known[node].get(key, 0) for key in has}
                for node, has in zip(self.ids, self.has, strict=True)
            ]

    def submit(self, demand: Amounts, strategy: object) -> ray.ObjectRef:
        return where.options(
            num_cpus=demand.get("CPU", 0),
            num_gpus=demand.get("GPU", 0),
            memory=demand.get("memory", 0),
            scheduling_strategy=strategy,
        ).remote()

    def chosen(self, demand: Amounts, strategy: object) -> int | None:
        """The node that a task goes to; None if Ray says that it can go nowhere."""
        try:
            return self.ids.index(ray.get(self.submit(demand, strategy), timeout=30))
        except TaskUnschedulableError:
            return None

    def state(self, order: Sequence[int]):
        """The nodes as ours see them, in an order."""
        return nodes(
            *(
                {key: (has[key] - self.taken[at].get(key, 0), has[key]) for key in has}
                for at, has in ((at, self.has[at]) for at in order)
            )
        )


def random_taken(real: RealRay, rng: np.random.Generator) -> list[Amounts]:
    """Of each node nothing, some or all; halves of CPU, and whole GPUs and bytes."""
    taken = []
    for has in real.has:
        share = rng.choice([0.0, 0.3, 0.6, 1.0], size=3)
        cpu, memory = round(2 * has["CPU"] * share[0]) / 2, int(MEMORY * share[1])
        taken.append({"CPU": cpu, "memory": memory, "GPU": int(has.get("GPU", 0) * share[2])})
    return [{key: each for key, each in one.items() if each} for one in taken]


def random_demand(rng: np.random.Generator) -> Amounts:
    demand = {"CPU": rng.choice([0.5, 1, 2, 3.5, 6]), "memory": rng.choice([0, 0, 100, 500])}
    demand["GPU"] = rng.choice([0, 0, 0, 1])
    return {key: float(each) for key, each in demand.items() if each}


def with_room(real: RealRay, rng: np.random.Generator) -> Amounts:
    """Takes at random until a demand drawn at random has room somewhere, which it returns."""
    while True:
        real.taken, demand = random_taken(real, rng), random_demand(rng)
        if real.state(real.order).free_for(asks(**demand)).any():
            real.occupy(real.taken)
            return demand


Answers = Iterator[tuple[object, object]]
"""What Ray did, and a collection of what ours allow."""


def named(real: RealRay, rows: np.ndarray) -> list[int | None]:
    return [real.order[row] for row in rows] or [None]


def hybrid(real: RealRay, rng: np.random.Generator) -> Answers:
    demand = with_room(real, rng)
    best = HYBRID.best(real.state(real.order), asks(**demand), real.order.index(0))
    yield real.chosen(demand, "DEFAULT"), named(real, best)


def spread(real: RealRay, rng: np.random.Generator) -> Answers:
    demand = with_room(real, rng)
    first = real.order.index(real.last_turn) + 1
    turn = named(real, next_in_turn(real.state(real.order), asks(**demand), first))
    real.last_turn = real.chosen(demand, "SPREAD")
    yield real.last_turn, turn


def affinity(real: RealRay, rng: np.random.Generator) -> Answers:
    demand = with_room(real, rng)
    target = int(rng.integers(-1, len(real.has)))
    soft, whether = rng.integers(2, size=2).astype(bool).tolist()
    wish = Affinity(
        node=("", 0, 0),
        soft=soft,
        spill_on_unavailable=soft and whether,
        fail_on_unavailable=not soft and whether,
    )
    strategy = strategies.NodeAffinitySchedulingStrategy(
        real.ids[target] if target >= 0 else "1" * 56,
        soft,
        _spill_on_unavailable=wish.spill_on_unavailable,
        _fail_on_unavailable=wish.fail_on_unavailable,
    )
    state, row = real.state(real.order), real.order.index(target) if target >= 0 else None
    allowed = named(real, affine(state, asks(**demand), wish, row, HYBRID, real.order.index(0)))
    if allowed == [target] and not state.free_for(asks(**demand))[row]:
        task = real.submit(demand, strategy)  # it waits for its node
        yield ray.wait([task], timeout=0.2)[0], [[]]
        real.occupy()
        yield real.ids.index(ray.get(task, timeout=30)), allowed
    else:
        yield real.chosen(demand, strategy), allowed


OPERATORS = {
    "in": strategies.In,
    "not_in": strategies.NotIn,
    "exists": strategies.Exists,
    "does_not_exist": strategies.DoesNotExist,
}


def label(real: RealRay, rng: np.random.Generator) -> Answers:
    labels = [LABELS[at] for at in real.order]
    rows = free = np.array([], np.int64)
    while len(rows) == 0 or not free[rows].all():  # Ray says nothing of tasks that wait
        real.taken, demand = random_taken(real, rng), random_demand(rng)
        wishes, given = {}, {}
        for which in ("hard", "soft"):
            key, operator = str(rng.choice(["zone", "ssd"])), str(rng.choice(list(OPERATORS)))
            values = ("a", "1") if operator.endswith("in") else ()
            wishes[which] = (Expression(key=key, operator=operator, values=values),)
            given[which] = {key: OPERATORS[operator](*values)}
        state = real.state(real.order)
        free = state.free_for(asks(**demand))
        rows = labelled(state, asks(**demand), labels, LabelSelector(**wishes))
    real.occupy(real.taken)
    yield real.chosen(demand, strategies.NodeLabelSchedulingStrategy(**given)), named(real, rows)


def bundles(real: RealRay, rng: np.random.Generator) -> Answers:
    real.occupy(random_taken(real, rng))
    demands = [random_demand(rng) for _ in range(rng.integers(1, 5))]
    strategy = str(rng.choice(["PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"]))
    # Ray goes through nodes of equal scores, and through equal bundles, in an order of its own.
    allowed = set()
    for order in permutations(range(len(real.has))):
        rows = plan(real.state(order), np.array([asks(**each) for each in demands]), strategy)
        allowed.add(_placed(demands, rows and [order[row] for row in rows]))
    group = placement_group(demands, strategy)
    placed = group.wait(30 if None not in allowed else 0.3)
    seen = placement_group_table(group)["bundles_to_node_id"]
    where = [real.ids.index(seen[at]) for at in range(len(demands))] if placed else None
    remove_placement_group(group)
    yield _placed(demands, where), allowed


def _placed(demands: Sequence[Amounts], where: Sequence[int] | None) -> object:
    pairs = zip(demands, where or [], strict=False)
    return where and tuple(sorted((str(sorted(each.items())), node) for each, node in pairs))


POLICIES: tuple[Callable[[RealRay, np.random.Generator], Answers], ...] = (
    hybrid,
    spread,
    affinity,
    label,
    bundles,
)


@pytest.fixture
def real(request: pytest.FixtureRequest) -> Iterator[RealRay]:
    """A cluster of the `CLUSTERS`, by name."""
    started = RealRay(CLUSTERS[request.param])
    try:
        yield started
    finally:
        ray.shutdown()
        started.cluster.shutdown()


@pytest.mark.parametrize("real", CLUSTERS, indirect=True)
def test_ray_goes_where_ours_allow(real: RealRay, tmp_path: Path) -> None:
    count, others = 0, []
    for policy in POLICIES:
        for seed in range(CASES):
            for did, allowed in policy(real, np.random.default_rng(seed)):
                count += 1
                if did not in allowed:
                    others.append((policy.__name__, seed, real.taken, did, allowed))
        real.occupy()
    assert not others, (len(others), count, others)
    assert count >= len(POLICIES) * CASES
    if real.has[0]["CPU"] == 4:  # two tasks that block share a node, the next two go to the other
        files = [tmp_path / str(number) for number in range(4)]
        for file in files:
            hold.remote(file)
            while not file.exists() or not file.read_text():
                time.sleep(0.02)
            time.sleep(SETTLE)
        assert [real.ids.index(file.read_text()) for file in files] == [0, 0, 1, 1]
        for file in files:
            file.unlink()
