"""Ray's placement policies, on the states of Ray's own tests and on some worked out by hand."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from agents import placement
from agents.order.fcfs import Fcfs
from agents.placement.ray_bundles import Strategy, largest_first, plan
from agents.placement.ray_hybrid import HybridSettings
from agents.placement.ray_node_affinity import Affinity, affine
from agents.placement.ray_node_label import Expression, LabelSelector, labelled
from agents.placement.ray_random import schedule, spill_over
from agents.placement.ray_spread import next_in_turn
from agents.ray_nodes import Nodes
from agents.rule_kinds import PlacementRule, in_folder
from agents.scheduler import Decision, Scheduler, play
from env.base.errors import InputError
from env.sim.assembly.new_state import reset
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.rules import Lease, Rules
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.events.endings import bring_back, take_down
from env.sim.events.engine import play as play_events
from env.sim.view.raw_env import RawEnv
from tests.agents.moments import BALANCED, LONG, Fn, workflow

UNIT = 10_000
LABELS = ("CPU", "memory", "GPU", "object_store_memory", "fpga")
SETTINGS = {
    "scheduler_spread_threshold": 0.5,
    "scheduler_top_k_fraction": 0.2,
    "scheduler_top_k_absolute": 1,
    "scheduler_avoid_gpu_nodes": True,
}
HYBRID = HybridSettings(**SETTINGS)


def asks(**amounts: float) -> np.ndarray:
    """(L,) of labels by name."""
    return np.array([round(amounts.get(label, 0) * UNIT) for label in LABELS])


def nodes(*has: Mapping[str, tuple[float, float] | float], load: float = 0) -> Nodes:
    """Nodes of (available, total) by label, or of one number where all is available.

    Args:
        has: of each node.
        load: CPU that wait on each.
    """
    pairs = [
        {key: each if isinstance(each, tuple) else (each, each) for key, each in node.items()}
        for node in has
    ]
    available, total = (
        np.array([asks(**{key: pair[at] for key, pair in node.items()}) for node in pairs])
        for at in (0, 1)
    )
    return Nodes(LABELS, total, available, np.array([asks(CPU=load)] * len(has)))


def test_random_draws_among_nodes_with_room_then_among_those_large_enough() -> None:
    # Of 8 CPU each node has 4 available; on the first two 3 of these are waited for.
    state = nodes(*[{"CPU": (4, 8)}] * 3)
    state.load[:2, 0] = 3 * UNIT
    rng = np.random.default_rng(0)
    assert schedule(state, [asks(CPU=2)], rng) == [2]
    assert {schedule(state, [asks(CPU=1)], rng)[0] for _ in range(60)} == {0, 1, 2}
    assert {schedule(state, [asks(CPU=8)], rng)[0] for _ in range(60)} == {0, 1, 2}
    assert schedule(state, [asks(CPU=9)], rng) == [None]


def test_random_raises_the_load_of_a_node_at_once() -> None:
    # Each node has room for one, so two never meet; the third finds no room and goes anywhere.
    state = nodes(*[{"CPU": 1}] * 2)
    draws = [schedule(state, [asks(CPU=1)] * 3, np.random.default_rng(s)) for s in range(60)]
    assert {tuple(sorted(each[:2])) for each in draws} == {(0, 1)}
    assert {each[2] for each in draws} == {0, 1}
    assert not state.load.any()


def test_spill_over_takes_all_that_fitted_nowhere_and_one_that_is_ready() -> None:
    infeasible = np.array([asks(GPU=1), asks(GPU=3), asks(CPU=4, GPU=2)])
    ready = np.array([asks(CPU=9), asks(CPU=4), asks(CPU=1)])
    moved, also = spill_over(asks(CPU=4, GPU=2), infeasible, ready)
    assert (moved.tolist(), also.tolist()) == ([0, 2], [1])
    moved, also = spill_over(asks(CPU=1), infeasible, ready[:2])
    assert (moved.tolist(), also.tolist()) == ([], [])


def test_utilisation_is_that_of_the_busiest_label_but_gpu() -> None:
    state = nodes(
        {"CPU": (1, 2), "memory": (0.25, 1), "GPU": (0, 2), "object_store_memory": (50, 100)},
        {"CPU": (1, 2), "fpga": (0, 1)},
        {"CPU": (0.9, 1)},
        {},
    )
    assert state.utilisation.tolist() == [0.75, 0.5, np.float32(0.1), 0.0]


def test_hybrid_draws_one_of_the_best_k() -> None:
    # Utilisations 0.2, 0.4, 0.6 and 0.7; below 0.5 both count as 0.
    state = nodes(*[{"CPU": (free, 10)} for free in (8, 6, 4, 3)])
    assert HYBRID.best(state, asks(CPU=1)).tolist() == [0]
    three = HybridSettings(**SETTINGS | {"scheduler_top_k_absolute": 3})
    best = three.best(state, asks(CPU=1))
    assert [best[draw] for draw in (1, 2, 0)] == [1, 2, 0]
    # A fifth of 12 nodes is 2.4, and all nodes count, also those without room.
    many = nodes(*[{"CPU": (0, 1)}] * 9, *[{"CPU": 1}] * 3)
    assert HYBRID.best(many, asks(CPU=1)).tolist() == [9, 10]


CPU_2 = {"CPU": 2.0}
HYBRID_CASES: dict[str, tuple[list[dict[str, tuple[float, float] | float]], dict, list[int]]] = {
    # The first node is preferred: where its score is no larger than that of the best.
    "less used": ([{"CPU": (1, 2)}, {"CPU": (1.5, 2)}], {"CPU": 1}, [1]),
    "room comes first": (
        [{"CPU": 10, "GPU": (0, 1)}, {"CPU": (1, 10), "GPU": 1}],
        {"CPU": 1, "GPU": 1},
        [1],
    ),
    "infeasible": ([{"CPU": 10}, {"CPU": (1, 10)}], {"CPU": 1, "GPU": 1}, []),
    "only a full node is large enough": ([{"CPU": (0, 1), "GPU": (0, 1)}], {"CPU": 1}, [0]),
    "none has room": ([{"CPU": (0, 4)}, {"CPU": (1, 4)}], {"CPU": 2}, [1]),
    "no GPU, no GPU node": ([{"CPU": 10, "GPU": 1}, {"CPU": (1, 2)}], {"CPU": 1}, [1]),
    "a GPU": ([{"CPU": 10, "GPU": 1}, {"CPU": (1, 2)}], {"GPU": 1}, [0]),
    "the GPU node if it must": ([{"CPU": (0, 10)}, {"CPU": 1, "GPU": 1}], {"CPU": 1}, [1]),
    # Without GPU nodes the preferred one is out, and the first of the equal others is taken.
    "the first of equals": ([{"CPU": 2, "GPU": 1}, CPU_2, {"CPU": 3}], {"CPU": 1}, [1]),
    "the only one with room": ([{"CPU": 2, "GPU": 1}, CPU_2, {"CPU": 3}], {"CPU": 3}, [2]),
}


@pytest.mark.parametrize("case", HYBRID_CASES)
def test_hybrid_on_states_of_rays_own_tests(case: str) -> None:
    has, demand, expected = HYBRID_CASES[case]
    assert HYBRID.best(nodes(*has), asks(**demand), preferred=0).tolist() == expected


def test_hybrid_prefers_a_node_that_is_no_worse_than_the_best() -> None:
    state = nodes(*[{"CPU": (free, 10)} for free in (9, 6, 4)])
    expected = {None: 0, 0: 0, 1: 1, 2: 0}  # 0.1 and 0.4 count as 0, 0.6 as itself
    got = {each: HYBRID.best(state, asks(CPU=1), each).item() for each in expected}
    assert got == expected


def test_spread_takes_turns() -> None:
    state = nodes(
        {"CPU": 20, "GPU": (0, 1)}, {"CPU": (0, 20), "GPU": (0, 1)}, {"CPU": (0, 0)}, {"CPU": 20}
    )
    assert next_in_turn(state, asks(CPU=1), 0).tolist() == [0]
    assert next_in_turn(state, asks(CPU=1), 1).tolist() == [3]
    # Behind the last comes the first; none has a GPU free, two have one.
    assert next_in_turn(state, asks(GPU=1), 4).tolist() == [0]
    assert next_in_turn(state, asks(GPU=1), 1).tolist() == [1]
    assert next_in_turn(state, asks(GPU=1), 2, only_free=True).tolist() == []


@pytest.mark.parametrize(
    ("target", "wish", "expected"),
    [
        # Node 0 has room, 1 is busy, 2 is too small, None is unknown.
        (0, {}, [0]),
        (1, {}, [1]),
        (1, {"soft": True}, [1]),
        (1, {"fail_on_unavailable": True}, []),
        (0, {"fail_on_unavailable": True}, [0]),
        (1, {"soft": True, "spill_on_unavailable": True}, [0]),
        (2, {}, []),
        (2, {"soft": True}, [0]),
        (None, {}, []),
        (None, {"soft": True}, [0]),
    ],
)
def test_affinity(target: int | None, wish: dict[str, bool], expected: list[int]) -> None:
    state = nodes({"CPU": 20}, {"CPU": (0, 20)}, {"CPU": 0})
    affinity = Affinity(node=("s", 0, 0), **wish)
    assert affine(state, asks(CPU=1), affinity, target, HYBRID).tolist() == expected


A_OR_B = Expression(key="zone", operator="in", values=("a", "b"))


@pytest.mark.parametrize(
    ("free", "expected"),
    [
        # Nodes 0 to 2 are in zones a, b, a, of which 1 and 2 have an SSD, and 3 is nowhere.
        ((1, 1, 1, 1), [1, 2]),
        ((1, 0, 1, 1), [2]),
        ((1, 0, 0, 1), [0]),
        ((0, 0, 0, 1), [1, 2]),
    ],
)
def test_labels_room_comes_before_what_is_soft(free: Sequence[float], expected: list[int]) -> None:
    labels = [{"zone": "a"}, {"zone": "b", "ssd": "1"}, {"zone": "a", "ssd": "2"}, {"ssd": "1"}]
    state = nodes(*[{"CPU": (each, 1)} for each in free])
    wish = LabelSelector(hard=(A_OR_B,), soft=(Expression(key="ssd", operator="exists"),))
    assert labelled(state, asks(CPU=1), labels, wish).tolist() == expected


def test_labels_that_are_hard_and_nothing_soft() -> None:
    labels: list[dict[str, str]] = [{"zone": "a"}, {"zone": "c"}, {}]
    state = nodes({"CPU": (0, 1)}, {"CPU": 1}, {"CPU": 1})

    def found(operator: str, *values: str, cpu: float = 1, soft: bool = False) -> list[int]:
        expression = Expression.model_validate(
            {"key": "zone", "operator": operator, "values": values}
        )
        wish = LabelSelector(**{"soft" if soft else "hard": (expression,)})
        return labelled(state, asks(CPU=cpu), labels, wish).tolist()

    assert found("in", "a") == [0]  # it is busy, and waited for
    assert found("not_in", "a") == [1, 2]
    assert found("exists") == [1]
    assert found("does_not_exist") == [2]
    assert found("in", "z") == found("in", "a", cpu=2) == []
    assert found("in", "a", soft=True) == [1, 2]


def test_bundles_are_sorted_largest_first() -> None:
    demands = [
        asks(CPU=9),
        asks(memory=2),
        asks(fpga=1),
        asks(object_store_memory=5),
        asks(GPU=1),
        asks(GPU=1, CPU=1),
        asks(memory=2, CPU=1),
        asks(CPU=1),
    ]
    assert largest_first(LABELS, np.array(demands)) == [5, 4, 2, 3, 6, 1, 0, 7]


BUNDLE_CASES: dict[str, tuple[Strategy, list[float], list[float], list[int] | None]] = {
    # Free CPU of the nodes, CPU of the bundles, and their nodes.
    "strict pack": ("STRICT_PACK", [8, 2, 4], [2, 2], [0, 0]),
    "strict spread on too few": ("STRICT_SPREAD", [9, 9], [1, 1, 1], None),
    "strict spread": ("STRICT_SPREAD", [4, 9], [3, 4], [0, 1]),
    # The largest, 4, goes to where most stays: 4.5 of 8.5, not 1 of 5. Two of 2 fit beside it, the
    # third takes the other node.
    "pack fills a node": ("PACK", [5, 8.5], [2, 4, 2, 2], [1, 1, 1, 0]),
    "pack, too large": ("PACK", [10, 10], [50], None),
    "pack fits exactly": ("PACK", [6], [1, 2, 3], [0, 0, 0]),
    "pack, all or none": ("PACK", [6], [1, 2, 3, 5], None),
    # Fresh ones first: 3 to the node of 6, 2 to that of 4. Then none is fresh: of 1, 2 of 3 stay on
    # the first node, 1 of 2 on the other.
    "spread": ("SPREAD", [6, 4], [1, 2, 3], [0, 1, 0]),
    "spread, too many": ("SPREAD", [1, 1], [1, 1, 1], None),
}


@pytest.mark.parametrize("case", BUNDLE_CASES)
def test_bundles_are_placed_all_or_none(case: str) -> None:
    strategy, free, bundles, expected = BUNDLE_CASES[case]
    state = nodes(*[{"CPU": each} for each in free])
    demands = np.array([asks(CPU=each) for each in bundles])
    assert plan(state, demands, strategy) == expected
    assert state.available[:, 0].tolist() == [each * UNIT for each in free]


@pytest.mark.parametrize(("target", "node"), [(2, 2), (1, 0), (888, 0), (None, 0)])
def test_strict_pack_prefers_a_node_with_room(target: int | None, node: int) -> None:
    state = nodes({"CPU": 8}, CPU_2, {"CPU": 4})
    assert plan(state, np.array([asks(CPU=2)] * 2), "STRICT_PACK", target) == [node, node]


def rule(name: str, **settings: Any) -> PlacementRule:
    """A rule of agents/placement."""
    kind = TypeAdapter(Annotated[PlacementRule, in_folder(placement, PlacementRule)])
    return kind.validate_python({"name": name, **settings})


class Places(Scheduler):
    """Places by a rule."""

    name = "places"

    def __init__(self, placing: PlacementRule) -> None:
        self.rule = placing

    def reset(self, *_: object) -> None:
        self.rule.reset()

    def choose(self, decision: Decision) -> int:
        return self.rule.choose(decision)


FOUR_CORES = ServerType("s", 2, 0.36, 0.0, numa_nodes=1, cpu=4, memory=4000)
TWO_NODES = ClusterConfig(1000, 1e6, 1e5, 1e4, (FOUR_CORES,))


def played(
    placing: PlacementRule,
    *templates: WorkflowTemplate,
    cluster: ClusterConfig = TWO_NODES,
    times: int = 1,
) -> list[int]:
    """Nodes in the order of placement, of workflows that all come at time 0."""
    env = RawEnv([0.0] * len(templates), templates, cluster, record=True)
    for _ in range(times):
        env.reset()
        play(env, Places(placing), BALANCED, np.random.SeedSequence(0))
    return [
        cluster.node_index(log.server_name, log.server_id, log.numa_node_id) for log in env.logs
    ]


ONE = workflow(Fn(LONG))


def test_hybrid_packs_two_and_spreads_four() -> None:
    """Two nodes of 4 cores: 1 of 4 used counts as none, 2 of 4 as a half."""
    hybrid = rule("ray_hybrid", **SETTINGS)
    assert played(hybrid, ONE, ONE) == [0, 0]
    assert played(hybrid, ONE, ONE, ONE, ONE) == [0, 0, 1, 1]
    # 9 threads ask for the 4 cores of a node: an empty one, else none has room and 0 is preferred.
    assert played(hybrid, ONE, workflow(Fn(LONG, parallelism=9)), ONE, ONE) == [0, 1, 0, 0]


def test_hybrid_prefers_the_node_of_the_data() -> None:
    chain = workflow(Fn(), Fn(), edges={(0, 1): 1000})
    spread = played(rule("ray_spread"), ONE, chain)
    assert spread == [0, 1, 0]
    # Half of node 0 is in use, so the chain begins on node 1, and stays there.
    two = workflow(Fn(LONG, parallelism=2))
    assert played(rule("ray_hybrid", **SETTINGS), two, chain) == [0, 1, 1]


def test_random_finds_the_room_that_the_load_leaves() -> None:
    """Each of two functions needs more than half of a node: they never meet."""
    large = workflow(Fn(LONG, memory=2500))
    for seed in range(5):
        env = RawEnv([0.0, 0.0], [large, large], TWO_NODES)
        play(env, Places(rule("ray_random")), BALANCED, np.random.SeedSequence(seed))
        assert {f.place[1] for each in env.workload.workflows for f in each.functions} == {0, 1}


def test_spread_begins_again_with_an_episode() -> None:
    assert played(rule("ray_spread"), ONE, ONE, ONE, times=2) == [0, 1, 0]


def named(*names: str) -> WorkflowTemplate:
    return replace(workflow(*[Fn(LONG)] * len(names)), function_names=names)


def test_functions_go_to_the_nodes_that_they_want() -> None:
    wishes = {"far*": {"node": ["s", 1, 0]}, "lost": {"node": ["s", 7, 0], "soft": True}}
    placing = rule("ray_node_affinity", **SETTINGS, functions=wishes)
    assert played(placing, named("near", "far_1", "far_2", "lost")) == [0, 1, 1, 0]
    wishes = {"far": {"node": ["s", 7, 0]}}
    placing = rule("ray_node_affinity", **SETTINGS, functions=wishes)
    with pytest.raises(InputError, match=r"^function 'far': no node that its placement rule "):
        played(placing, named("far"))


def test_functions_go_to_server_types_with_the_labels_that_they_want() -> None:
    kinds = [replace(FOUR_CORES, count=1, name=zone, labels={"zone": zone}) for zone in "ab"]
    cluster = replace(TWO_NODES, server_types=tuple(kinds))
    wish = {"hard": [{"key": "zone", "operator": "in", "values": ["b"]}]}
    placing = rule("ray_node_label", **SETTINGS, functions={"in_b": wish})
    assert played(placing, named("in_b", "other", "in_b"), cluster=cluster) == [1, 0, 1]


@pytest.mark.parametrize(
    ("strategy", "memory", "expected"),
    [
        # Two nodes of 4,000 MB. Together on one; in turns, for each other has more left.
        ("STRICT_PACK", [1000, 1000, 1000], [0, 0, 0]),
        ("STRICT_SPREAD", [1000, 1000], [0, 1]),
        ("SPREAD", [1000, 2000, 1000], [1, 0, 1]),
        # All three do not fit now, but fit the nodes in total: first the largest.
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
    placing = rule("ray_bundles", strategy=strategy)
    assert played(placing, group, times=2) == expected


def test_a_group_that_does_not_fit_now_waits_on_the_nodes_that_hold_it() -> None:
    """The first takes 2,500 MB of a node; 4,000 MB together then fit the other, and once more."""
    large, group = workflow(Fn(LONG, 2500)), workflow(*[Fn(LONG, 2000)] * 2)
    placing = rule("ray_bundles", strategy="STRICT_PACK")
    assert played(placing, large, group, group) == [0, 1, 1, 0, 0]


def test_functions_that_no_server_holds_wait_by_shape_and_return_together() -> None:
    """As Ray's queue of infeasible tasks for each shape: the first is tried, all of them return."""
    small = ServerType("small", 1, 0.36, 0.0, 1, 4, 1000)
    cluster = replace(TWO_NODES, server_types=(small, replace(FOUR_CORES, count=1)))
    large, little = workflow(Fn(memory=2000)), workflow(Fn())
    env = RawEnv(
        [0.0, 0.0, 0.0, 5.0],
        [large, large, large, little],
        cluster,
        rules=Rules(order=Fcfs(), placement="asked", lease=Lease(kind="always", charged=False)),
    )
    reset(env.state)
    take_down(env.state, 1)
    env._play_on(play_events(env.state))
    assert env.current_function.wf_id == 3  # nobody waits behind those that fit nowhere
    assert env.state.requests["aside"].sum() == 3
    bring_back(env.state, 1)
    env._play_on(play_events(env.state))
    placed = []
    while not env.done:
        function = env.current_function
        placed.append((env.time, function.wf_id))
        env.step("s", 0, 0, function.memory_req)
    # They have the places that they had, and a second each; two fit at once.
    assert placed == [(5.0, 0), (5.0, 1), (6.0, 2), (6.0, 3)]
