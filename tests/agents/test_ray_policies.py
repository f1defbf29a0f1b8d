"""Ray's placement policies, on the states of Ray's own tests and on some worked out by hand."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from agents.baseline import ComposedScheduler, _config
from agents.placement.ray_bundles import largest_first, plan
from agents.placement.ray_node_affinity import Affinity, affine
from agents.placement.ray_node_label import LabelWish, labelled
from agents.placement.ray_random import fitting, spill_over
from agents.placement.ray_spread import next_in_turn
from agents.ray_nodes import Nodes
from agents.scheduler import play
from env.base.errors import InputError
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.view.raw_env import RawEnv
from tests.agents.moments import BALANCED, LONG, Fn, workflow


def rule(name: str, **settings: Any) -> Any:
    """A placement as its file declares it, but for some settings."""
    declared = _config(name).placement
    return type(declared).model_validate(declared.model_dump() | settings)


UNIT = 10_000
LABELS = ("CPU", "memory", "GPU", "object_store_memory", "fpga")
HYBRID = rule("ray_hybrid")
Has = Mapping[str, tuple[float, float] | float]
"""Of a node by label: available and total, or one number where all is available."""


def asks(**amounts: float) -> np.ndarray:
    """(L,) of labels by name."""
    return np.array([round(amounts.get(label, 0) * UNIT) for label in LABELS])


def nodes(*has: Has) -> Nodes:
    available, total = (
        [
            asks(**{k: each[at] if isinstance(each, tuple) else each for k, each in node.items()})
            for node in has
        ]
        for at in (0, 1)
    )
    return Nodes(LABELS, np.array(total), np.array(available))


def test_random_draws_among_nodes_with_room_then_among_those_large_enough() -> None:
    state = nodes({"CPU": (1, 8)}, {"CPU": (3, 8)}, {"CPU": (2, 4)})
    found = {cpu: fitting(state, asks(CPU=cpu)).tolist() for cpu in (1, 2, 4, 5, 9)}
    assert found == {1: [0, 1, 2], 2: [1, 2], 4: [0, 1, 2], 5: [0, 1], 9: []}


def test_spill_over_takes_all_that_fitted_nowhere_and_one_that_is_ready() -> None:
    infeasible = np.array([asks(GPU=1), asks(GPU=3), asks(CPU=4, GPU=2)])
    ready = np.array([asks(CPU=9), asks(CPU=4), asks(CPU=1)])
    moved, also = spill_over(asks(CPU=4, GPU=2), infeasible, ready)
    assert (moved.tolist(), also.tolist()) == ([0, 2], [1])
    moved, also = spill_over(asks(CPU=1), infeasible, ready[:2])
    assert (moved.tolist(), also.tolist()) == ([], [])


def test_utilisation_is_that_of_the_busiest_label_but_gpu() -> None:
    busy = {"CPU": (1, 2), "memory": (0.25, 1), "GPU": (0, 2), "object_store_memory": (50, 100)}
    state = nodes(busy, {"CPU": (1, 2), "fpga": (0, 1)}, {"CPU": (0.9, 1)}, {})
    assert state.utilisation.tolist() == [0.75, 0.5, np.float32(0.1), 0.0]


def test_hybrid_draws_one_of_the_best_k() -> None:
    # Utilisations 0.2, 0.4, 0.6 and 0.7; below 0.5 both count as 0.
    state = nodes(*[{"CPU": (free, 10)} for free in (8, 6, 4, 3)])
    assert HYBRID.best(state, asks(CPU=1)).tolist() == [0]
    best = rule("ray_hybrid", scheduler_top_k_absolute=3).best(state, asks(CPU=1))
    assert [best[draw] for draw in (1, 2, 0)] == [1, 2, 0]
    # A fifth of 12 nodes is 2.4, and all nodes count, also those without room.
    many = nodes(*[{"CPU": (0, 1)}] * 9, *[{"CPU": 1}] * 3)
    assert HYBRID.best(many, asks(CPU=1)).tolist() == [9, 10]


GPU_NODE, FULL_GPU = {"CPU": 10, "GPU": 1}, {"CPU": 10, "GPU": (0, 1)}
HYBRID_CASES: dict[str, tuple[list[Has], dict[str, float], list[int]]] = {
    # The first node is preferred.
    "both count as empty": ([{"CPU": (6, 10)}, {"CPU": 10}], {"CPU": 1}, [0]),
    "less used": ([{"CPU": (1, 2)}, {"CPU": (1.5, 2)}], {"CPU": 1}, [1]),
    "room first": ([FULL_GPU, {"CPU": (1, 10), "GPU": 1}], {"CPU": 1, "GPU": 1}, [1]),
    "infeasible": ([{"CPU": 10}, {"CPU": (1, 10)}], {"CPU": 1, "GPU": 1}, []),
    "only a full node is large enough": ([{"CPU": (0, 1), "GPU": (0, 1)}], {"CPU": 1}, [0]),
    "none has room": ([{"CPU": (0, 4)}, {"CPU": (1, 4)}], {"CPU": 2}, [1]),
    "no GPU, no GPU node": ([GPU_NODE, {"CPU": (1, 2)}], {"CPU": 1}, [1]),
    "a GPU": ([GPU_NODE, {"CPU": (1, 2)}], {"GPU": 1}, [0]),
    "the GPU node if it must": ([{"CPU": (0, 10)}, {"CPU": 1, "GPU": 1}], {"CPU": 1}, [1]),
    "the first of equals": ([GPU_NODE, {"CPU": 2}, {"CPU": 3}], {"CPU": 1}, [1]),
}


@pytest.mark.parametrize("case", HYBRID_CASES)
def test_hybrid_on_states_of_rays_own_tests(case: str) -> None:
    has, demand, expected = HYBRID_CASES[case]
    assert HYBRID.best(nodes(*has), asks(**demand), preferred=0).tolist() == expected


def test_spread_takes_turns() -> None:
    gpu = {"GPU": (0, 1)}
    state = nodes({"CPU": 20} | gpu, {"CPU": (0, 20)} | gpu, {"CPU": 0}, {"CPU": 20})
    cpu = [next_in_turn(state, asks(CPU=1), first).tolist() for first in (0, 1, 4)]
    assert cpu == [[0], [3], [0]]
    # None has a GPU free, two have one.
    assert [next_in_turn(state, asks(GPU=1), first).tolist() for first in (4, 1)] == [[0], [1]]
    assert next_in_turn(state, asks(GPU=1), 2, only_free=True).tolist() == []


def test_affinity() -> None:
    """Node 0 has room, 1 is busy, 2 is too small; None is no node, and says: elsewhere."""
    state = nodes({"CPU": 20}, {"CPU": (0, 20)}, {"CPU": 0})

    def goes(*targets: int | None, **settings: bool) -> list[list[int] | None]:
        wish = Affinity(node=("s", 0, 0), **settings)
        return [affine(state, asks(CPU=1), wish, target) for target in targets]

    assert goes(0, 1, 2, None) == [[0], [1], [], []]
    assert goes(0, 1, 2, None, soft=True) == [[0], [1], None, None]
    assert goes(0, 1, soft=True, spill_on_unavailable=True) == [[0], None]
    assert goes(0, 1, fail_on_unavailable=True) == [[0], []]


def test_room_comes_before_soft_labels() -> None:
    """Nodes 0 to 2 are in zones a, b, a, of which 1 and 2 have an SSD; 3 is nowhere."""
    ssd = {"disk": "ssd"}
    labels = [{"zone": "a"}, {"zone": "b"} | ssd, {"zone": "a"} | ssd, ssd]

    def found(*free: float, disk: str = "ssd", cpu: float = 1) -> list[int]:
        state = nodes(*[{"CPU": (each, 1)} for each in free])
        wish = LabelWish(hard={"zone": ("a", "b")}, soft={"disk": (disk,)})
        return labelled(state, asks(CPU=cpu), labels, wish).tolist()

    assert found(1, 1, 1, 1) == [1, 2]
    assert found(1, 0, 1, 1) == [2]
    assert found(1, 0, 0, 1) == [0]
    assert found(0, 0, 0, 1) == [1, 2]
    assert found(0, 0, 0, 1, disk="tape") == [0, 1, 2]
    assert found(1, 1, 1, 1, cpu=2) == []


def test_bundles_are_sorted_largest_first() -> None:
    demands = [
        *(asks(CPU=9), asks(memory=2), asks(fpga=1), asks(object_store_memory=5), asks(GPU=1)),
        *(asks(GPU=1, CPU=1), asks(memory=2, CPU=1), asks(CPU=1)),
    ]
    assert largest_first(LABELS, np.array(demands)) == [5, 4, 2, 3, 6, 1, 0, 7]


@pytest.mark.parametrize(
    ("strategy", "free", "bundles", "expected"),
    [
        # Free CPU of the nodes, CPU of the bundles, and their nodes.
        ("STRICT_SPREAD", [9, 9], [1, 1, 1], None),
        ("STRICT_SPREAD", [4, 9], [3, 4], [0, 1]),
        # The largest, 4, goes to where most stays: 4.5 of 8.5, not 1 of 5. Two of 2 fit beside it.
        ("PACK", [5, 8.5], [2, 4, 2, 2], [1, 1, 1, 0]),
        ("PACK", [10, 10], [50], None),
        ("PACK", [6], [1, 2, 3], [0, 0, 0]),
        ("PACK", [6], [1, 2, 3, 5], None),
        # Fresh ones first: 3 to the node of 6, 2 to that of 4. Then none is fresh: of 1, 2 of 3
        # stay on the first node, 1 of 2 on the other.
        ("SPREAD", [6, 4], [1, 2, 3], [0, 1, 0]),
        ("SPREAD", [1, 1], [1, 1, 1], None),
    ],
)
def test_bundles_are_placed_all_or_none(
    strategy: Any, free: list[float], bundles: list[float], expected: list[int] | None
) -> None:
    state = nodes(*[{"CPU": each} for each in free])
    assert plan(state, np.array([asks(CPU=each) for each in bundles]), strategy) == expected
    assert state.available[:, 0].tolist() == [each * UNIT for each in free]


@pytest.mark.parametrize(("target", "node"), [(2, 2), (1, 0), (888, 0), (None, 0)])
def test_strict_pack_prefers_a_node_with_room(target: int | None, node: int) -> None:
    state = nodes({"CPU": 8}, {"CPU": 2}, {"CPU": 4})
    assert plan(state, np.array([asks(CPU=2)] * 2), "STRICT_PACK", target) == [node, node]


FOUR_CORES = ServerType("s", 2, 0.36, 0.0, numa_nodes=1, cpu=4, memory=4000)
TWO_NODES = ClusterConfig(1000, 1e6, 1e5, 1e4, (FOUR_CORES,))
ONE, TWO = workflow(Fn(LONG)), workflow(Fn(LONG, parallelism=2))


def placed(
    placing: Any, *templates: WorkflowTemplate, cluster: ClusterConfig = TWO_NODES, seed: int = 0
) -> list[int]:
    """Nodes in the order of placement, of workflows that all come at time 0, the second time."""
    config = _config("ray_hybrid").model_copy(update={"placement": placing})
    env = RawEnv([0.0] * len(templates), templates, cluster, record=True)
    scheduler = ComposedScheduler("", config)
    for _ in range(2):
        env.reset()
        play(env, scheduler, BALANCED, np.random.SeedSequence(seed))
    return [cluster.node_index(*log[2:5]) for log in env.logs]


def test_hybrid_packs_two_and_spreads_four() -> None:
    """Two nodes of 4 cores: 1 of 4 used counts as none, 2 of 4 as a half."""
    assert placed(HYBRID, ONE, ONE) == [0, 0]
    assert placed(HYBRID, ONE, ONE, ONE, ONE) == [0, 0, 1, 1]
    # 9 threads ask for all cores of a node.
    assert placed(HYBRID, ONE, workflow(Fn(LONG, parallelism=9)), ONE) == [0, 1, 0]


def test_hybrid_prefers_the_node_of_the_data() -> None:
    """Half of node 0 is in use, so the chain begins on node 1, and stays there."""
    chain = workflow(Fn(), Fn(), edges={(0, 1): 1000})
    assert placed(HYBRID, TWO, chain) == [0, 1, 1]
    assert placed(rule("ray_spread"), TWO, chain) == [0, 1, 0]


def test_random_finds_the_room_that_the_load_leaves() -> None:
    """Each of two functions needs more than half of a node: they never meet, the third does."""
    large = workflow(Fn(LONG, memory=2500))
    draws = [placed(rule("ray_random"), large, large, large, seed=seed) for seed in range(12)]
    assert {(first, second) for first, second, _ in draws} == {(0, 1), (1, 0)}
    assert {third for _, _, third in draws} == {0, 1}


def test_functions_go_to_the_nodes_that_they_want() -> None:
    wishes: dict[str, Any] = {"far*": {"node": ("s", 1, 0)}, "lost": {"node": ("s", 7, 0)}}
    group = replace(workflow(*[Fn(LONG)] * 4), function_names=("near", "far_1", "far_2", "lost"))
    with pytest.raises(InputError, match=r"^function 'lost': no node that its placement rule "):
        placed(rule("ray_node_affinity", functions=wishes), group)
    wishes["lost"]["soft"] = True
    assert placed(rule("ray_node_affinity", functions=wishes), group) == [0, 1, 1, 0]


def test_functions_go_to_server_types_with_the_labels_that_they_want() -> None:
    kinds = [replace(FOUR_CORES, count=1, name=zone, labels={"zone": zone}) for zone in "ab"]
    cluster = replace(TWO_NODES, server_types=tuple(kinds))
    group = replace(workflow(*[Fn(LONG)] * 3), function_names=("in_b", "other", "in_b_too"))
    labels = rule("ray_node_label", functions={"in_b*": {"hard": {"zone": ("b",)}}})
    assert placed(labels, group, cluster=cluster) == [1, 0, 1]


@pytest.mark.parametrize(
    ("strategy", "memory", "expected"),
    [
        # Two nodes of 4,000 MB; each function also needs one of four cores.
        ("STRICT_PACK", [1000, 1000, 1000], [0, 0, 0]),
        ("SPREAD", [1000, 2000, 1000], [1, 0, 1]),
        ("PACK", [3000, 2000, 1500], [0, 1, 1]),
        # Never together: the first is by itself, on the first of equal nodes.
        ("STRICT_PACK", [3000, 2000], [0, 1]),
        ("STRICT_SPREAD", [1000, 1000, 1000], [0, 1, 0]),
    ],
)
def test_functions_of_a_workflow_are_placed_as_one_group(
    strategy: str, memory: Sequence[int], expected: list[int]
) -> None:
    group = workflow(*(Fn(LONG, each) for each in memory))
    assert placed(rule("ray_bundles", strategy=strategy), group) == expected


def test_a_group_that_does_not_fit_now_waits_on_the_nodes_that_hold_it() -> None:
    """2,500 MB of a node are taken; groups of 4,000 MB fit the other one, then an empty one."""
    large, group = workflow(Fn(LONG, 2500)), workflow(*[Fn(LONG, 2000)] * 2)
    together = rule("ray_bundles", strategy="STRICT_PACK")
    assert placed(together, large, group, group) == [0, 1, 1, 0, 0]
