"""Ray's demand scheduler as pure functions: the cases of Ray's own tests, and call by call with it.

Cases: python/ray/autoscaler/v2/tests/test_scheduler.py of Ray 2.60.0.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from agents.scaling.demand_scheduler import Node, NodeType, Plan, plan, score_of
from env.resources.quantity import UNIT

Amounts = Mapping[str, float]


def units(amounts: Amounts) -> dict[str, int]:
    return {name: round(amount * UNIT) for name, amount in amounts.items()}


def kinds(*totals: Amounts, most: int = 10) -> dict[str, NodeType]:
    return {f"t{place}": NodeType(units(total), most) for place, total in enumerate(totals)}


def node(kind: str, total: Amounts, left: Amounts | None = None, **given: object) -> Node:
    return Node(kind, units(total), units(total if left is None else left), **given)  # type: ignore[arg-type]


def asked(*demands: Amounts) -> list[dict[str, int]]:
    return [units(demand) for demand in demands]


def by_ray(
    types: Mapping[str, NodeType],
    nodes: Sequence[Node],
    demands: Sequence[Mapping[str, int]],
    most: int | None,
    idle_timeout: float | None,
    constraint: Sequence[Mapping[str, int]],
) -> tuple[Counter[str], Counter[int], Counter[tuple[tuple[str, int], ...]], bool]:
    """Launches by type, places of the nodes that end, infeasible demands, constraint met."""
    from ray.autoscaler.v2.instance_manager.config import NodeTypeConfig
    from ray.autoscaler.v2.scheduler import ResourceDemandScheduler, SchedulingRequest
    from ray.autoscaler.v2.schema import AutoscalerInstance
    from ray.autoscaler.v2.utils import ResourceRequestUtil
    from ray.core.generated import autoscaler_pb2 as wire
    from ray.core.generated.instance_manager_pb2 import Instance

    def floats(amounts: Mapping[str, int]) -> dict[str, float]:
        return {name: amount / UNIT for name, amount in amounts.items()}

    def instance(place: int, each: Node) -> AutoscalerInstance:
        status = Instance.RAY_RUNNING if each.running else Instance.REQUESTED
        shown = wire.NodeState(
            ray_node_type_name=each.type,
            total_resources=floats(each.total),
            available_resources=floats(each.available),
            idle_duration_ms=round(each.idle * 1000),
        )
        managed = Instance(
            instance_id=str(place),
            node_id=f"n{place}" if each.running else "",
            status=status,
            instance_type=each.type,
        )
        return AutoscalerInstance(
            cloud_instance_id=f"c{place}",
            ray_node=shown if each.running else None,
            im_instance=managed,
        )

    def counted(resources: Sequence[Mapping[str, int]]) -> list[wire.ResourceRequestByCount]:
        requests = [ResourceRequestUtil.make(floats(amounts)) for amounts in resources]
        return ResourceRequestUtil.group_by_count(requests)

    held = [wire.ClusterResourceConstraint(resource_requests=counted(constraint))]
    reply = ResourceDemandScheduler().schedule(
        SchedulingRequest(
            disable_launch_config_check=True,
            node_type_configs={
                name: NodeTypeConfig(
                    name=name,
                    min_worker_nodes=kind.least,
                    max_worker_nodes=kind.most,
                    resources=floats(kind.total),
                )
                for name, kind in types.items()
            },
            max_num_nodes=most,
            idle_timeout_s=idle_timeout,
            resource_requests=counted(demands),
            cluster_resource_constraints=held if constraint else [],
            current_instances=[instance(*pair) for pair in enumerate(nodes)],
        )
    )
    launches = Counter({each.instance_type: each.count for each in reply.to_launch})
    ends = Counter(int(each.instance_id) for each in reply.to_terminate)
    left = Counter(
        tuple(sorted(units(each.resources_bundle).items()))
        for each in reply.infeasible_resource_requests
    )
    return launches, ends, left, not reply.infeasible_cluster_resource_constraints


def drawn(rng: np.random.Generator) -> tuple[object, ...]:
    """A random state; amounts are multiples of 1/8, which are exact in Ray's doubles.

    Ray assumes that the least nodes of all types are within the limit of all.
    """
    names = ("CPU", "memory", "GPU", "fpga")
    types, nodes = {}, []
    for place in range(rng.integers(1, 5)):
        total = {name: rng.integers(0, 9) for name in names if rng.random() < 0.6} or {"CPU": 4}
        limit = int(rng.integers(1, 6))
        types[f"t{place}"] = NodeType(units(total), limit, int(rng.integers(0, min(3, limit + 1))))
        for _ in range(rng.integers(0, 6)):
            running = rng.random() < 0.7
            share = {name: rng.integers(0, 8 * most + 1) / 8 for name, most in total.items()}
            left = share if running and rng.random() < 0.7 else total
            idle = float(rng.integers(0, 10)) if running and left is total else 0.0
            nodes.append(node(f"t{place}", total, left, idle=idle, running=running))

    def demands(count: int) -> list[dict[str, int]]:
        shapes = [
            {name: rng.integers(1, 40) / 8 for name in names if rng.random() < 0.4} or {"CPU": 1}
            for _ in range(3)
        ]
        return asked(*(shapes[rng.integers(3)] for _ in range(count)))

    missing = sum(
        max(0, kind.least - sum(each.type == name for each in nodes))
        for name, kind in types.items()
    )
    most = None if rng.random() < 0.3 else int(rng.integers(0, 12))
    if most is not None and missing and len(nodes) + missing > most:
        most = len(nodes) + missing
    timeout = None if rng.random() < 0.2 else float(rng.integers(0, 8))
    constraint = demands(int(rng.integers(0, 4))) if rng.random() < 0.3 else []
    return types, nodes, demands(int(rng.integers(0, 12))), most, timeout, constraint


def test_a_thousand_random_states_are_planned_as_the_installed_ray_does() -> None:
    rng = np.random.default_rng(52)
    seen = Counter[str]()
    for number in range(1000):
        state = drawn(rng)
        expected = by_ray(*state)  # type: ignore[arg-type]
        made: Plan = plan(*state)  # type: ignore[arg-type]
        places = {id(each): place for place, each in enumerate(state[1])}  # type: ignore[arg-type]
        got = (
            Counter(made.launches),
            Counter(places[id(each)] for each in made.terminations),
            Counter(tuple(sorted(each.items())) for each in made.infeasible),
            made.constrained,
        )
        assert got == expected, f"state {number}"
        seen.update(launches=bool(got[0]), ends=bool(got[1]), infeasible=bool(got[2]))
        seen["constraints not met"] += not got[3]
    assert min(seen.values()) > 20, seen


def test_the_type_that_is_used_most_is_launched() -> None:
    """Conformance 21."""
    types = kinds({"CPU": 10}, {"CPU": 5}, {"CPU": 2, "GPU": 2})
    assert plan(types, [], asked({"CPU": 1})).launches == ["t1"]
    types = kinds({"CPU": 1, "GPU": 1}, {"CPU": 3})
    demands = asked(*[{"CPU": 1}] * 3, {"CPU": 1, "GPU": 1})
    assert sorted(plan(types, [], demands).launches) == ["t0", "t1"]
    none = plan(kinds({"CPU": 1}), [], asked({"CPU": 4}))
    assert (none.launches, none.infeasible) == ([], asked({"CPU": 4}))


def test_a_pending_node_is_filled_before_another_is_launched() -> None:
    """Conformance 22."""
    types, one = kinds({"CPU": 1}), {"CPU": 1.0}
    used = node("t0", one, {"CPU": 0.9})
    assert plan(types, [used], asked(one)).launches == ["t0"]
    pending = node("t0", one, running=False)
    assert plan(types, [used, pending], asked(one)).launches == []


@pytest.mark.parametrize("most", [3, 2, 1])
def test_above_a_limit_pending_nodes_go_first_then_idle_ones_then_the_least_used(most) -> None:
    """Conformance 23."""
    total = {"CPU": 4.0}
    busy, half = node("t0", total, {"CPU": 0}), node("t0", total, {"CPU": 2})
    idle, pending = node("t0", total, idle=9.0), node("t0", total, running=False)
    first_to_go = [pending, idle, half]
    for types, limit in ((kinds(total), most), (kinds(total, most=most), None)):
        ended = plan(types, [busy, half, idle, pending], [], limit).terminations
        assert ended == first_to_go[: 4 - most]


@pytest.mark.parametrize(
    ("timeout", "ends"), [(1.0, True), (4.9, True), (5.0, False), (9.0, False)]
)
def test_who_is_idle_for_longer_than_the_timeout_ends_unless_a_constraint_needs_it(
    timeout, ends
) -> None:
    """Conformance 24; at 5 s exactly the installed Ray waits for longer."""
    types, total = kinds({"CPU": 1}), {"CPU": 1.0}
    idle = node("t0", total, idle=5.0)
    assert plan(types, [idle], [], None, timeout).terminations == [idle] * ends
    idle = node("t0", total, idle=5.0)
    assert plan(types, [idle], [], None, timeout, asked(total)).terminations == []


def test_the_score_is_compared_in_ray_s_order() -> None:
    """Conformance 25: without labels; GPU idle, kinds of resources, smallest, mean utilisation."""

    def score(total: Amounts, left: Amounts, *taken: Amounts) -> tuple[float, ...]:
        return score_of(units(total), units(left), asked(*taken))

    one = {"CPU": 1.0}
    assert score({"CPU": 4, "GPU": 1}, {"CPU": 3, "GPU": 1}, one) == (False, 1, 0.0, 1 / 32)
    assert score({"CPU": 4}, {"CPU": 2}, one) == (True, 1, 0.5, 0.5)
    both = {"CPU": 1.0, "memory": 2.0}
    assert score({"CPU": 2, "memory": 2}, {"CPU": 1, "memory": 0}, both) == (True, 2, 0.25, 1.125)
