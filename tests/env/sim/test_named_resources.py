"""Named resources: two functions that need the only gpu run one after the other, wherever."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from agents.order.fcfs import Fcfs
from env.base.errors import InputError
from env.sim.declared.hardware import ClusterConfig, ServerType, cluster_from_config
from env.sim.declared.images import Images
from env.sim.declared.rules import Rules
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.forecast.candidates import forecast_placements
from env.sim.view.raw_env import RawEnv
from tests.documents import put, refused_in_a_line
from tests.env import small
from tests.env.worlds import TINY, world
from tests.episodes import checked, objections

PLAIN = ServerType("plain", 1, 0.6, 10.0, numa_nodes=1, cpu=4, memory=4096)
GPU = replace(PLAIN, name="gpu", memory=2048, resources={"gpu": 1})
CLUSTER = ClusterConfig(1_000, 8e8, 1e8, 5e7, (PLAIN, GPU))
QUEUED = Rules(order=Fcfs(), placement="asked")


def functions(seconds: Sequence[int], gpu: Sequence[int], memory: int = 512) -> WorkflowTemplate:
    """Functions of one core that wait for nobody."""
    work = [1_000 * own for own in seconds]
    return small.functions(*work, memory=memory, name="w", resources={"gpu": gpu})


def started(env: RawEnv, *nodes: int) -> list[tuple[float | None, float | None]]:
    """Start and end of the functions of the first workflow, placed on these nodes in turn."""
    for node in nodes:
        env.step(*env.place_of(node), 512)
    assert env.done
    return [(own.start_time, own.completion_time) for own in env.workload.workflows[0].functions]


@pytest.mark.parametrize("rules", [Rules(), QUEUED])
def test_one_after_the_other(rules: Rules) -> None:
    """Who needs none starts beside them; the server takes 10 s to start."""
    template = functions([2, 3, 4], gpu=[1, 1, 0])
    images = Images.by_name([template], 0.0)
    env = RawEnv([0.0], [template], CLUSTER, record=True, rules=rules, images=images)
    ends = started(env, 1, 1, 1)
    assert ends[:2] == [(10.0, 12.0), (12.0, 15.0)]
    # The queue is left in order, so there the third one waits behind the second.
    assert ends[2] == ((10.0, 14.0) if rules.order is None else (12.0, 16.0))
    needs = put("workflows", 0, "functions", 2, "resources", to={"gpu": 1})
    broken = objections(checked(env), needs)
    assert any("2 gpu are in use" in line for line in broken)


def test_held_from_admission() -> None:
    """The first container takes 5 s more to start; the second does not slip in before it."""
    template = replace(functions([2, 3], gpu=[1, 1]), function_names=("slow", "fast"))
    images = Images.by_name([template], np.array([5.0, 0.0]))
    env = RawEnv([0.0], [template], CLUSTER, images=images)
    assert started(env, 1, 1) == [(15.0, 17.0), (17.0, 20.0)]


def test_a_node_without_it_is_refused() -> None:
    env = RawEnv([0.0], [functions([2], gpu=[1])], CLUSTER)
    assert forecast_placements(env.state, 512)["feasible"].tolist() == [0, 1]
    told = r"^function \(0, 0\) needs 1 gpu, NUMA node 0 of server plain 0 has 0$"
    with pytest.raises(InputError, match=told):
        env.step("plain", 0, 0, 512)
    env.step("gpu", 0, 0, 512)
    assert env.done


def test_from_the_queue_a_node_that_has_none_left_is_refused() -> None:
    both = replace(GPU, name="other", resources={"gpu": 2})
    cluster = replace(CLUSTER, server_types=(GPU, both))
    template = functions([2, 3], gpu=[1, 1])
    images = Images.by_name([template], 0.0)
    env = RawEnv([0.0], [template], cluster, rules=QUEUED, images=images)
    env.step("gpu", 0, 0, 512)
    told = r"^function \(0, 1\) needs 1 gpu, NUMA node 0 of server gpu 0 now has 0$"
    with pytest.raises(InputError, match=told):
        env.step("gpu", 0, 0, 512)
    env.step("other", 0, 0, 512)
    assert env.done


@pytest.mark.parametrize(
    ("template", "told"),
    [
        (functions([2, 3], gpu=[1, 2]), "1 needs 2 gpu, the largest NUMA node has 1"),
        (functions([2], [1], 4096), "0 needs 4096 MB, 1 gpu, no NUMA node has all of it"),
    ],
)
def test_what_no_node_has_is_refused(template: WorkflowTemplate, told: str) -> None:
    with pytest.raises(InputError, match=f"^workflow 'w': function {told}$"):
        RawEnv([0.0], [template], CLUSTER)


def test_in_the_queue_the_memory_of_the_image_counts() -> None:
    """Both functions are of one image, so the one that needs the gpu gets the other's memory."""
    template = replace(functions([2, 3], gpu=[1, 0]), memory_req=[512, 4096])
    images = Images(np.zeros(1), {template: np.zeros(2, int)})
    RawEnv([0.0], [template], CLUSTER, images=images)
    with pytest.raises(InputError, match="function 0 needs 4096 MB, 1 gpu, no NUMA node has all"):
        RawEnv([0.0], [template], CLUSTER, rules=QUEUED, images=images)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"a gpu": 1}, "found 'a gpu'"),
        ({"memory": 1}, "'memory' has a key of its own, another name is needed"),
    ],
)
def test_files_are_checked(given: Mapping[str, Any], told: str) -> None:
    config = world(*TINY)
    (name, kind), *_ = config["cluster"]["server_types"].items()
    kinds = {name: kind | {"resources_per_numa_node": given}}
    with refused_in_a_line(f"cluster: server_types.{name}.resources_per", told):
        cluster_from_config(config["cluster"] | {"server_types": kinds}, "cluster")


def test_python_is_checked() -> None:
    with pytest.raises(InputError, match=r"resources.gpu: found '-1', a number from 0 to"):
        replace(PLAIN, resources={"gpu": -1})
    with pytest.raises(InputError, match=r"'w': resources\['gpu'\]: found '-1', a number from 0"):
        functions([2, 3], gpu=[0, -1])
    with pytest.raises(InputError, match=r"'w': resources\['gpu'\] has 1 entries, computation"):
        functions([2, 3], gpu=[0])


CARDS = replace(PLAIN, resources={"GPU": 2, "license": 1.5})


def sharing(**resources: Sequence[float]) -> WorkflowTemplate:
    """Functions of 2, 3, 4, ... s and one core that wait for nobody."""
    count = len(next(iter(resources.values())))
    work = [1_000 * (2 + own) for own in range(count)]
    return small.functions(*work, name="w", resources=resources)


@pytest.mark.parametrize("rules", [Rules(), QUEUED])
def test_fractions_share_a_unit_and_are_not_put_together(rules: Rules) -> None:
    """0.7 and 0.5 split both units, 0.3 fills the first; 0.4 fits the second, then 1 waits."""
    template = sharing(GPU=[0.7, 0.5, 0.3, 0.4, 1])
    images = Images.by_name([template], 0.0)
    cluster = small.cluster_of(CARDS)
    env = RawEnv([0.0], [template], cluster, record=True, rules=rules, images=images)
    for expected in ([10_000, 10_000], [3_000, 10_000], [3_000, 5_000], [0, 5_000], None):
        left = env.resources.left["GPU"].tolist()
        assert expected is None or left == [expected]
        env.step("plain", 0, 0, 512)
    ends = [own.completion_time for own in env.workload.workflows[0].functions]
    # The unit of 0.7 and 0.3 is whole again at 14 s: 10 s for the server, then 2 and 4 s.
    assert env.done and ends == [12.0, 13.0, 14.0, 15.0, 20.0]
    recorded = checked(env)
    document = recorded.model_dump(exclude_none=True, by_alias=True)
    (offers,) = (kind["resources_per_numa_node"] for kind in document["cluster"]["server_types"])
    assert offers == {"GPU": 2, "license": 1.5}
    assert document["workflows"][0]["functions"][0]["resources"] == {"GPU": 0.7}
    needs = put("workflows", 0, "functions", 3, "resources", to={"GPU": 0.6})
    broken = objections(recorded, needs)
    assert any("2.1 GPU are in use" in line for line in broken)


def test_from_the_queue_parts_of_two_units_do_not_serve_one() -> None:
    template = sharing(GPU=[0.5, 0.75, 0.5, 0.75])
    images = Images.by_name([template], 0.0)
    env = RawEnv([0.0], [template], small.cluster_of(CARDS), rules=QUEUED, images=images)
    for _ in range(3):
        env.step("plain", 0, 0, 512)
    # At 12 s the first ends, and 0.5 and 0.25 are left; at 13 s the second.
    assert env.time == 13.0 and env.resources.left["GPU"].tolist() == [[5_000, 10_000]]


def test_all_that_a_function_needs_is_taken_or_nothing() -> None:
    """Conformance case 4: CPU 1 and more GPUs than are left get no CPU either."""
    env = RawEnv([0.0], [sharing(CPU=[1, 1, 1], GPU=[1, 2, 0])], small.cluster_of(CARDS))
    for _ in range(2):
        env.step("plain", 0, 0, 512)
    seen = env.resources
    assert seen.available[0].tolist() == [30_000, 35_840_000, 10_000]
    assert seen.load[0].tolist() == [10_000, 5_120_000, 20_000]


def test_cores_are_reserved_by_those_who_declare_them() -> None:
    """Four cores: 2 and 1.5 CPU run, another 1 waits; with four threads of their own each."""
    template = sharing(CPU=[2, 1.5, 1])
    env = RawEnv([0.0], [template], small.cluster_of(PLAIN))
    assert started(env, 0, 0, 0) == [(10.0, 12.0), (10.0, 13.0), (12.0, 16.0)]
    with pytest.raises(InputError, match="function 0 needs 4.5 CPU, the largest NUMA node has 4$"):
        RawEnv([0.0], [sharing(CPU=[4.5])], small.cluster_of(PLAIN))
    more = small.cluster_of(replace(PLAIN, resources={"CPU": 6}))
    assert started(RawEnv([0.0], [sharing(CPU=[4.5, 1.5])], more), 0, 0)[1][0] == 10.0


@pytest.mark.parametrize(
    ("resources", "mode", "told"),
    [
        ({"GPU": [1, 1.5]}, "today", r"function 1: resources\.GPU: 1\.5 is refused, as its units"),
        ({"CPU": [1.5]}, 2019, r"function 0: resources\.CPU: 1\.5 is refused, as its units"),
        ({"gpu": [1]}, "today", r"needs 1 gpu, the largest NUMA node has 0; allowed: CPU, GPU$"),
    ],
)
def test_demands_that_no_node_meets(resources: Any, mode: Any, told: str) -> None:
    cards = replace(PLAIN, name="cards", resources={"GPU": 2})
    cluster = small.cluster_of(PLAIN, cards, resource_mode=mode)
    with pytest.raises(InputError, match=f"^workflow 'w': .*{told}"):
        RawEnv([0.0], [sharing(**resources)], cluster)


def test_a_node_has_no_part_of_a_second_unit() -> None:
    with pytest.raises(InputError, match=r"plain.resources_per_numa_node.GPU: 1.5 is refused"):
        small.cluster_of(replace(PLAIN, resources={"GPU": 1.5}))


def test_threads_use_cores_where_nobody_declares_any() -> None:
    template = replace(sharing(GPU=[0.5, 1]), memory_req=[3_000, 1], parallelism=[3, 2])
    env = RawEnv([0.0], [template], small.cluster_of(CARDS, replace(PLAIN, name="none")))
    function = env.current_function
    assert function is not None and env.demand(function).tolist() == [30_000, 30_000_000, 5_000]
    env.step("plain", 0, 0, 3_000)
    seen = env.resources
    assert seen.labels == ("CPU", "memory", "GPU") and not seen.load.any()
    assert seen.total.tolist() == [[40_000, 40_960_000, 20_000], [40_000, 40_960_000, 0]]
    assert seen.available.tolist() == [[10_000, 10_960_000, 15_000], [40_000, 40_960_000, 0]]


def test_what_waits_on_a_node_is_its_load() -> None:
    template = sharing(CPU=[3, 2, 1], GPU=[0.5, 0, 0])
    env = RawEnv([0.0], [template], small.cluster_of(CARDS))
    for _ in range(2):
        env.step("plain", 0, 0, 4_096 if env.decisions else 1)
    assert env.resources.labels == ("CPU", "memory", "GPU")
    assert env.resources.available[0].tolist() == [10_000, 40_950_000, 15_000]
    assert env.resources.load[0].tolist() == [20_000, 40_960_000, 0]
    third = env.current_function
    assert third is not None and env.demand(third).tolist() == [10_000, 10_000, 0]
