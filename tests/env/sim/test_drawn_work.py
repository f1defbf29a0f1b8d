"""Work that is drawn takes its time, and nobody who decides knows of it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from agents.baseline import known_baselines, make_baselines
from agents.scheduler import Decision
from env.base.errors import InputError
from env.score.lower_bound import lower_bound
from env.score.metrics import episode_metrics
from env.score.reward import Objective
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.images import Images
from env.sim.declared.rules import Rules
from env.sim.declared.workflow_template import WorkflowTemplate
from tests.env.small import always_up, chain, cluster_of, functions
from tests.episodes import begun

ALL = Objective(time_weight=1, cost_weight=1, completion_weight=1)
SMALL = ServerType("small", 2, 0.2, 20.0, 1, 2, 1024)
LARGE = ServerType("large", 1, 0.8, 50.0, 2, 8, 4096)
CLUSTER = ClusterConfig(1000, 100e9, 30e9, 1e9, (SMALL, LARGE))
FASTEST = ClusterConfig(2**42, 1e18, 1e18, 1e18, (ServerType("s", 1, 1.0, 0.0, 1, 10**6, 1000),))


def single(work: int = 1000, memory: int = 512, threads: int = 1) -> WorkflowTemplate:
    """A workflow of one function."""
    name = f"{work} {memory} {threads}"
    return functions(work, memory=memory, threads=threads, name=name, function_names=(name,))


def test_a_function_runs_as_long_as_is_drawn() -> None:
    env = begun([0.0, 100.0], [single()] * 2, CLUSTER, work=[3000, 500])
    for _ in range(2):
        env.step("small", 0, 0, 512)
    first, second = (workflow.functions[0] for workflow in env.workload.workflows)
    assert first.completion_time == pytest.approx(20 + 3)
    assert second.completion_time == pytest.approx(100 + 0.5)
    found = episode_metrics(env.state, ALL)
    # Slowdowns are over what a function declares: 1 s.
    assert found["slowdown"] == pytest.approx((23 + 0.5) / 2)
    assert found["utilisation"] == pytest.approx(3.5 / (2 * 3600))
    # 3.5 s of work on the large cores at 0.05 USD an hour, where an hour at 0.2 was paid.
    assert found["cost_ratio"] == pytest.approx(0.2 / (3.5 / 3600 * 0.05))


def test_the_lower_bound_is_of_what_is_drawn() -> None:
    state = begun([0.0, 100.0], [single()] * 2, CLUSTER, work=[3000, 500]).state
    flow_times = np.array([20 + 3, 0.5])
    cost_ratio = 0.2 / (3.5 / 3600 * 0.05)
    assert lower_bound(state, ALL) == pytest.approx(2 * flow_times.mean() + cost_ratio)
    # Much work costs more than an hour.
    state = begun([0.0], [single()], CLUSTER, work=[10**8]).state
    cost = Objective(time_weight=0, cost_weight=1)
    assert lower_bound(state, cost) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("templates", "work", "says"),
    [
        ([single()] * 2, [5], "2 workflow templates but 1 work"),
        ([chain(9, 9)], [5], "chain.*: 2 functions, work is drawn of 1"),
        ([single()] * 2, [1, -3], "workflow 1: work is -3 operations"),
        ([single()], [1.5], "workflow 0: work is 1.5 operations"),
        # 1000 operations a second.
        ([single()], [2 * 10**12], "takes 2e[+]09 s at full speed, at most 1e[+]09 s are possible"),
    ],
)
def test_work_that_cannot_be_played_is_refused(
    templates: list[WorkflowTemplate], work: list[Any], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        begun([0.0] * len(templates), templates, CLUSTER, work=work)


def test_all_work_together_can_be_counted() -> None:
    wide = single(memory=1, threads=10**6)
    begun([0.0], [wide], FASTEST, work=[2**62])
    with pytest.raises(InputError, match="workload: 9.22337e[+]18 operations in all, at most 4.61"):
        begun([0.0] * 2, [wide] * 2, FASTEST, work=[2**62] * 2)


# Three are placed; three more are ready then, and the last arrives later.
TIMES = [0.0, 0.0, 0.0, 25.0, 25.0, 25.0, 60.0]
TEMPLATES = [
    *(single(30_000, 300), single(2_000, 700, 2), single(90_000, 400)),
    *(single(4_000, 600, 2), single(1_000, 200), single(50_000, 900, 4), single()),
]
PLACED = [("small", 0, 0, 300), ("large", 0, 1, 700), ("small", 0, 0, 400)]
DRAWN = [40_000, 5_000, 60_000]


def decided(name: str, later: Sequence[int]) -> tuple[object, ...]:
    """Where a rule places the fourth function, and what is forecast of it."""
    env = begun(TIMES, TEMPLATES, CLUSTER, work=[*DRAWN, *later])
    for place in PLACED:
        env.step(*place)
    (scheduler,) = make_baselines([name])
    scheduler.reset(env, ALL, np.random.SeedSequence(3))
    decision = Decision(env, ALL, scheduler.tiers)
    candidates = decision.candidates(600)
    forecasts = [candidates[field].tolist() for field in candidates.dtype.names or ()]
    waiting = int(env.state.cluster[0]["queue_computation"])
    return scheduler.choose(decision), forecasts, waiting


RULES = [name for name in known_baselines() if make_baselines([name])[0].kind == "baseline"]


@pytest.mark.parametrize("name", RULES)
def test_no_placement_depends_on_what_is_drawn(name: str) -> None:
    """Neither for the function in decision, nor for those that wait behind it or arrive later."""
    declared = decided(name, [int(template.computation[0]) for template in TEMPLATES[3:]])
    assert decided(name, [1, 1, 1, 1]) == declared
    assert decided(name, [900_000, 1, 700_000, 5]) == declared


ORDERS = known_baselines(queued=True)
WAITING = [single(2_000, 600), single(8_000, 900), single(5_000, 700)]


def second_to_go(name: str, drawn: Sequence[int]) -> int:
    """Which workflow is dispatched second, of three that wait while the first runs."""
    one = cluster_of(ServerType("one", 1, 1.0, 0.0, 1, 4, 1000))
    order = make_baselines([name], queued=True)[0].order
    assert order is not None
    first = single(3_000, 1000)
    images = Images.by_name([first, *WAITING], 0.5)
    rules, work = always_up(order, Rules().keep_alive), [3_000, *drawn]
    templates = [first, *WAITING]
    env = begun([0.0, 1.0, 1.0, 1.0], templates, one, rules=rules, images=images, work=work)
    assert env.done
    return int(env.runs["wf_id"][np.argsort(env.runs["dispatched"])[1]])


@pytest.mark.parametrize("name", ORDERS)
def test_no_order_depends_on_what_is_drawn(name: str) -> None:
    declared = second_to_go(name, [2_000, 8_000, 5_000])
    for drawn in ([9_000, 1, 4_000], [5_000, 9_000, 1], [1, 1, 1]):
        assert second_to_go(name, drawn) == declared
    wanted = {"sjf": 1, "srtf": 1, "srf": 1, "funcsched": 1, "heft": 2, "critical_path": 2}
    assert declared == wanted.get(name, 1)
