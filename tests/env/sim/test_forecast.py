"""Forecasts against what then happens, and against forks in which it has been done."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.events.placing import place
from env.sim.forecast.candidates import forecast_placements, update_finish_bounds
from env.sim.view.raw_env import RawEnv
from tests.episodes import begun
from tests.recorded_worlds import FUNDING
from tests.recount import containers_of

SPEED = 1_000_000
CLUSTER = ClusterConfig(
    SPEED,
    100e9,
    30e9,
    1.25e9,
    (
        ServerType("small", 2, 0.17, 25.0, 1, 4, 8192, resources={"GPU": 1, "license": 3}),
        ServerType("large", 1, 1.09, 45.0, 2, 8, 16384, resources={"GPU": 2, "license": 2.5}),
    ),
)
RATIOS = (0.5, 0.75, 1.0)


def random_workflow(rng: np.random.Generator, count: int, chained: bool = True) -> WorkflowTemplate:
    """Functions of half a second to half an hour; every one but the first has one predecessor."""
    edges = [(int(rng.integers(max(0, i - 8), i)), i) for i in range(1, count) if chained]
    return WorkflowTemplate(
        "random",
        (np.exp(rng.uniform(np.log(0.5), np.log(1800), count)) * SPEED).astype(np.int64),
        rng.integers(512, 4096, count),
        rng.integers(1, 5, count),
        np.array(edges, np.int64).reshape(-1, 2),
        rng.integers(0, 20 * 10**9, len(edges)),
    )


def in_need(rng: np.random.Generator, template: WorkflowTemplate) -> WorkflowTemplate:
    """The same workflow, some of its functions in need of named resources."""
    count = template.function_count
    gpu = rng.choice([0, 0.3, 0.5, 1], count)
    return replace(template, resources={"GPU": gpu, "license": rng.choice([0, 0.75, 2], count)})


def shared(
    rng: np.random.Generator, cluster: ClusterConfig, count: int
) -> tuple[ClusterConfig, dict[str, Any]]:
    """The cluster with its cores shared by tickets, and workflows of three tenants."""
    tenants = rng.choice(list(FUNDING.tenants), count).tolist()
    return replace(cluster, cpu_share="tickets"), {"tenants": tenants, "funding": FUNDING}


def random_env(
    seed: int, named: bool = False, by_tickets: bool = False
) -> tuple[RawEnv, np.random.Generator]:
    """An episode of four workflows, busy enough for queues, and the generator of its decisions."""
    rng = np.random.default_rng(seed)
    templates = [random_workflow(rng, int(rng.integers(5, 25))) for _ in range(4)]
    if named:
        templates = [in_need(rng, template) for template in templates]
    arrivals = np.cumsum(rng.exponential(300, 4)).tolist()
    cluster, owned = shared(rng, CLUSTER, 4) if by_tickets else (CLUSTER, {})
    return begun(arrivals, templates, cluster, **owned), rng


def random_decision(env: RawEnv, rng: np.random.Generator) -> tuple[int, int]:
    """(node, MB) for the current function."""
    function = env.current_function
    assert function is not None
    memory_alloc = math.ceil(function.memory_req * rng.choice(RATIOS))
    nodes = len(env.state.nodes)
    return int(rng.choice([0, rng.integers(nodes)])), memory_alloc  # the first one is crowded


def tolerance(span: float) -> float:
    """Seconds by which a forecast `span` seconds ahead may be early (forecast/play_node.py)."""
    return 1e-3 + 1e-4 * span


@pytest.mark.parametrize(("named", "by_tickets"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("seed", range(10))
def test_a_candidate_finishes_as_forecast(seed: int, named: bool, by_tickets: bool) -> None:
    """Functions come to one node; the forecast of the last one is what comes of it."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 14))
    templates = [random_workflow(rng, 1, chained=False) for _ in range(count)]
    if named:
        templates = [in_need(rng, template) for template in templates]
    arrivals = np.sort(rng.choice([0.0, 1.0, 2.0, 50.0, 400.0], count)).tolist()
    one_node = ClusterConfig(SPEED, 100e9, 30e9, 1.25e9, CLUSTER.server_types[:1])
    cluster, owned = shared(rng, one_node, count) if by_tickets else (one_node, {})
    env = begun(arrivals, templates, cluster, **owned)
    for _ in range(count):
        _, memory_alloc = random_decision(env, rng)
        candidate = forecast_placements(env.state, memory_alloc)[0]
        time = env.time
        env.step("small", 0, 0, memory_alloc)
    assert env.done
    function = env.workload.workflows[count - 1].functions[0]
    end = function.completion_time
    assert end is not None
    assert candidate["feasible"] == 1
    assert candidate["creation_time"] == function.creation_time
    assert candidate["waits"] == (function.start_time != function.creation_time)
    assert candidate["finish_time"] == pytest.approx(end, abs=tolerance(end - time))


def finish_bounds(env: RawEnv) -> np.ndarray:
    """Finish bounds of all workflow slots, -inf where no workflow is active."""
    update_finish_bounds(env.state)
    return env.state.workflows["finish_bound"].copy()


def hours_to_add(end: float, time: float, last: float) -> int:
    """Whole hours by which a lease to `end` grows at `time` to cover `last`."""
    return 0 if last <= end else math.ceil((last - max(time, end)) / 3600.0)


def by_function(env: RawEnv, node: int) -> dict[int, np.void]:
    """The containers that run or wait on a node, by the index of their function."""
    records = env.state.containers[containers_of(env.state, node)]
    return {int(record["function"]): record for record in records}


def later_ends(
    env: RawEnv, fork: RawEnv, node: int, bounds: np.ndarray, critical: np.ndarray
) -> tuple[float, float, float]:
    """How much later the containers of `env` on a node end in `fork`, in which one was placed.

    Growths of their ends / critical paths, each times its share of (slack + growth), a tolerance.
    `bounds` are the finish bounds of the workflow slots before, `critical` their critical paths.
    """
    ends = ends_tight = near = 0.0
    after = by_function(fork, node)
    for function, container in by_function(env, node).items():
        slot = int(container["slot"])
        end = float(container["forecast_completion"])
        later = float(after[function]["forecast_completion"]) - end
        slack = max(0.0, float(bounds[slot] - end - container["chain_after"]))
        ends += max(0.0, later) / critical[slot]  # who overtakes may also bring others forward
        if later > 0:
            ends_tight += later / critical[slot] * later / (later + slack)
        near += tolerance(end + later - env.time) / critical[slot]
    return ends, ends_tight, near


@pytest.mark.parametrize(("named", "by_tickets"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("seed", range(4))
def test_a_candidate_does_what_its_placement_does(seed: int, named: bool, by_tickets: bool) -> None:
    """Delays, finish time and rent are the differences to a fork in which it has been placed."""
    env, rng = random_env(seed, named, by_tickets)
    waited = shared = 0
    while not env.done:
        node, memory_alloc = random_decision(env, rng)
        before = finish_bounds(env)
        function = env.current_function
        assert function is not None
        own = env.function_index(function.wf_id, function.fn_id)
        slot = own // int(env.state.cluster[0]["functions_per_slot"])
        critical = env.state.templates["critical_path"][env.state.workflows["template"]]
        for index, candidate in enumerate(forecast_placements(env.state, memory_alloc)):
            fork = env.fork()
            server, last = int(fork.state.nodes[index]["server"]), fork.state.nodes["forecast_last"]
            lease_end = float(fork.state.servers[server]["expiration_time"])
            idle = fork.state.nodes[index]["running_count"] == 0
            hours = -hours_to_add(lease_end, env.time, env.time if idle else last[index])
            assert place(fork.state, index, memory_alloc) == 0
            after = finish_bounds(fork)
            active = before > -np.inf
            delays = np.zeros(len(before))
            delays[active] = np.maximum(0.0, after[active] - before[active]) / critical[active]
            record = by_function(fork, index)[own]
            span = float(record["forecast_completion"]) - env.time
            close = tolerance(span)
            assert candidate["finish_time"] == pytest.approx(
                float(record["forecast_completion"]), abs=close
            )
            assert candidate["waits"] == np.isnan(record["start_time"])
            slack = close / critical
            assert candidate["delay_own"] == pytest.approx(delays[slot], abs=slack[slot])
            others = np.delete(delays, slot).sum()
            assert candidate["delay_others"] == pytest.approx(others, abs=slack[active].sum())
            ends, ends_tight, near = later_ends(env, fork, index, before, critical)
            assert candidate["later_ends"] == pytest.approx(ends, abs=near)
            assert candidate["later_ends_tight"] == pytest.approx(ends_tight, abs=2 * near)
            hours += hours_to_add(lease_end, env.time, last[index])
            rent = hours * float(fork.state.servers[server]["hourly_rate"])
            assert candidate["rent_increase"] == pytest.approx(rent)
            if not fork.state.nodes[index]["waiting_count"]:
                paid = fork.total_rent - env.total_rent
                assert candidate["rent_increase"] == pytest.approx(paid)
            waited += candidate["waits"]
            shared += others > 0
        env.step(*env.place_of(node), memory_alloc)
    assert waited > 0 and shared > 0
