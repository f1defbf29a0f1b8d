"""Placement by fragments of GPUs, worked out by hand (Weng et al., USENIX ATC 2023)."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from agents.placement.fgd import Fgd, fragments
from agents.scheduler import Decision
from env.resources.quantity import UNIT
from env.sim.declared.hardware import ServerType
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.view.raw_env import RawEnv
from tests.agents.moments import BALANCED
from tests.env import small

CARDS = ServerType("cards", 2, 1.0, 0.0, 1, cpu=4, memory=1000, resources={"GPU": 2})
PLAIN = replace(CARDS, name="plain", count=1, memory=4000, resources={})


def function(cpu: float, gpu: float) -> WorkflowTemplate:
    resources: dict[str, Sequence[float]] = {"CPU": [cpu], "GPU": [gpu]}
    return small.functions(1_000_000, memory=10, resources=resources)


def chosen(*placed: tuple[int, float, float], ask: tuple[float, float]) -> int:
    """The node that is taken, after functions of so much CPU and GPU were put on others."""
    templates = [function(cpu, gpu) for _, cpu, gpu in placed] + [function(*ask)]
    env = RawEnv([0.0] * len(templates), templates, small.cluster_of(CARDS, PLAIN))
    for node, _, _ in placed:
        env.step(*env.place_of(node), 10)
    return Fgd().choose(Decision(env, BALANCED))


def test_fragments_by_hand() -> None:
    """Columns are CPU and GPU; the second node has no CPU left, so all of its GPU is a fragment.

    Functions need 0.5 GPU, 1 GPU and none. Node 0 has 0.5 and 1 left: nothing, 0.5 and all 1.5 are
    fragments; node 1 has 1.5 and so 1.5 three times; node 2 has 0.25 and 0.25, of use to nobody.
    """
    left = np.array([[5_000, 10_000], [5_000, 10_000], [2_500, 2_500]])
    available = np.array([[4, 1.5], [0, 1.5], [4, 0.5]]) * UNIT
    demands = np.array([[1, 0.5], [1, 1], [1, 0]]) * UNIT
    wasted = fragments(left, available, demands, 1)
    assert wasted.tolist() == [0 + 5_000 + 15_000, 3 * 15_000, 3 * 5_000]


def test_a_part_goes_where_a_unit_is_split() -> None:
    """Node 1 has a half left, which a second half uses up; on node 0 it would split a unit."""
    assert chosen((0, 1, 1), (1, 1, 0.5), ask=(1, 0.5)) == 1


def test_who_needs_no_gpu_leaves_the_cores_beside_gpus() -> None:
    """All cores of node 0 or 1 would make its two GPUs fragments for the first function."""
    assert chosen((0, 1, 0.5), ask=(4, 0)) == 2


def test_a_node_with_room_comes_first() -> None:
    """0.75 on node 1, whose units have 0.5 left each, would have to wait."""
    assert chosen((1, 1, 0.5), (1, 1, 1), (1, 0, 0.5), (0, 1, 1), ask=(1, 0.75)) == 0
