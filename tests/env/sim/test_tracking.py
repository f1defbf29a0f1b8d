"""What is forecast of all active workflows together is the sum over them, whoever waits."""

import numpy as np
import pytest

from agents.order.chosen import Chosen
from agents.order.fcfs import Fcfs
from agents.order.rr import RoundRobin
from agents.order.srtf import Srtf
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.images import Images
from env.sim.declared.ordering import Order
from env.sim.declared.rules import Rules
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.forecast.candidates import update_finish_bounds
from env.sim.node.fit import suits
from env.sim.state.records import NONE, RUNNING, SUBMITTED
from env.sim.view.raw_env import RawEnv
from tests.env.sim.test_forecast import SPEED, random_workflow
from tests.recount import containers_of

CLUSTER = ClusterConfig(SPEED, 1e9, 1e9, 1e9, (ServerType("s", 2, 0.1, 5.0, 1, 4, 8192),))


def container_of(env: RawEnv, index: int) -> np.void:
    """The record of the container that a function is in."""
    records = env.state.containers[containers_of(env.state, env.state.functions[index]["node"])]
    found: np.void = records[records["function"] == index][0]
    return found


def flow_time(env: RawEnv, slot: int) -> float:
    """Seconds that a workflow takes at least, function by function."""
    state, time = env.state, env.time
    workflow = state.workflows[slot]
    template = state.templates[workflow["template"]]
    bounds = []
    for fn_id in range(int(template["function_count"])):
        index = slot * int(state.cluster[0]["functions_per_slot"]) + fn_id
        known = state.template_functions[int(template["first_function"]) + fn_id]
        function = state.functions[index]
        if function["state"] == SUBMITTED:
            bounds.append(time + known["upward_rank"])
        elif function["state"] == RUNNING:
            own = container_of(env, index)
            bounds.append(own["forecast_completion"] + own["chain_after"])
    return float(max(bounds) - workflow["arrival_time"])


@pytest.mark.parametrize(
    "order", [Fcfs(), RoundRobin(time_slice=7.0), Srtf(check_interval=7.0), Chosen()]
)
@pytest.mark.parametrize("seed", range(3))
def test_sums_over_active_workflows(order: Order, seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = [random_workflow(rng, count) for count in (1, 1, 1, 6)]
    templates: list[WorkflowTemplate] = [kinds[each] for each in rng.integers(0, 4, 30)]
    arrivals = np.sort(rng.uniform(0, 600, 30)).tolist()
    images = Images.by_name(kinds, 2.0)
    env = RawEnv(arrivals, templates, CLUSTER, rules=Rules(order, "asked"), images=images)
    most = 0
    while not env.done:
        update_finish_bounds(env.state)
        workflows = env.state.workflows
        active = np.flatnonzero(
            (workflows["wf_id"] != NONE) & np.isnan(workflows["completion_time"])
        )
        times = np.array([flow_time(env, slot) for slot in active])
        paths = env.state.templates["critical_path"][workflows["template"][active]]
        cluster = env.state.cluster[0]
        assert cluster["active_flow_time"] == pytest.approx(times.sum())
        assert cluster["active_slowdown"] == pytest.approx((times / paths).sum())
        most = max(most, len(active))
        if env.choosing:
            env.choose(int(rng.choice(env.waiting)) if rng.random() < 0.8 else None)
            continue
        function = env.current_function
        assert function is not None
        nodes = [node for node in range(2) if suits(env.state, node, function.memory_req)]
        env.step(*env.place_of(int(rng.choice(nodes))), function.memory_req)
    assert most > 6
    assert int(env.state.cluster[0]["tracked_count"]) == 0
