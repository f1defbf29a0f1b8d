"""The window of the workflow, worked out by hand on a small DAG."""

import numpy as np
import pytest

from env.base.schema import validated
from env.learn.agent import Observation
from env.learn.decisions import Decisions
from env.learn.layouts import AgentsConfig, Layout
from env.learn.workflow_window import FUNCTION_FEATURES
from env.score.reward import Objective
from env.sim.declared.hardware import cluster_from_config
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.view.raw_env import RawEnv
from tests.env.worlds import TINY, world

# 0 and 1 feed 2, which feeds 3 and 4; 1 feeds 5, and 4 waits for 5 as well. Full-speed seconds:
SECONDS = np.array([30, 20, 30, 5, 40, 7])
THREADS = np.array([1, 2, 4, 1, 1, 1])
# ... and with the longest chain behind each: 4 takes 40, 2 70, 0 100, which is the critical path.
RANKS = np.array([100, 90, 70, 5, 40, 47])
MEMORY = np.array([1024, 2048, 4096, 512, 512, 512])
EDGES = np.array([[0, 2], [1, 2], [1, 5], [2, 3], [2, 4], [5, 4]])
# Of the tiny cluster: operations and bytes per second, cores and MB of its largest NUMA node.
SPEED, NETWORK, CORES, LARGEST = 1_000_000, 1_250_000_000, 4, 8192
DATA_SECONDS = np.array([1, 2, 0, 0, 1, 3])  # of each edge, over the network
INPUT_SECONDS = np.array([0, 0, 3, 0, 4, 0])


def look(window: int) -> tuple[RawEnv, Decisions]:
    """One such workflow on the tiny cluster, and what its placer sees."""
    template = WorkflowTemplate(
        name="by_hand",
        computation=SECONDS * THREADS * SPEED,
        memory_req=MEMORY,
        parallelism=THREADS,
        edges=EDGES,
        data_bytes=DATA_SECONDS * NETWORK,
    )
    config = world(*TINY, "agents=placer", f"agents.workflow_window={window}")
    cluster = cluster_from_config(config["cluster"], "cluster")
    layout = Layout(
        validated(AgentsConfig, config["agents"], "agents"),
        validated(Objective, config["objective"], "objective"),
        cluster,
        see_future=False,
    )
    env = RawEnv([0.0], [template], cluster)
    return env, Decisions.of(layout, env.state)


def seen_now(env: RawEnv, decisions: Decisions) -> tuple[np.ndarray, np.ndarray]:
    """Functions and edges of the present decision."""
    seen: list[Observation] = []

    def act(name: str, observation: Observation) -> int:
        seen.append(observation)
        return 0

    decisions.ask(env.state, decisions.layout.kinds[0], act)
    return seen[0]["functions"], seen[0]["edges"]


def expected(
    order: list[int], waits_for: list[int], states: dict[int, tuple[int, int]], window: int
) -> tuple[np.ndarray, np.ndarray]:
    """Functions in that order; `states`: submitted or running, all others are neither."""
    functions = np.zeros((window, len(FUNCTION_FEATURES)))
    edges = np.zeros((window, window))
    for row, fn in enumerate(order):
        functions[row, :8] = [
            np.log1p(SECONDS[fn]) / 8,
            THREADS[fn] / CORES,
            MEMORY[fn] / LARGEST,
            RANKS[fn] / 100,
            np.log1p(INPUT_SECONDS[fn]) / 8,
            np.log1p(waits_for[row]),
            *states.get(fn, (0, 0)),
        ]
    for source, target in EDGES.tolist():
        if source in order and target in order:
            edges[order.index(source), order.index(target)] = 1
    return functions, edges


def check(env: RawEnv, decisions: Decisions, known: tuple[np.ndarray, np.ndarray]) -> None:
    """The placer sees these functions and edges now."""
    functions, edges = seen_now(env, decisions)
    np.testing.assert_allclose(functions, known[0], rtol=1e-6)
    np.testing.assert_array_equal(edges, known[1])


def test_a_window_worked_out_by_hand() -> None:
    env, decisions = look(window=8)
    submitted, running = (1, 0), (0, 1)

    # Function 0: what waits for it, what waits for that, then what those wait for besides.
    states = {0: submitted, 1: submitted}
    known = expected([0, 2, 3, 4, 1, 5], [0, 2, 1, 2, 0, 1], states, 8)
    check(env, decisions, known)
    links = [(0, 1), (1, 2), (1, 3), (4, 1), (4, 5), (5, 3)]
    assert [tuple(pair) for pair in np.argwhere(known[1])] == links

    # It starts cold on its own server, at 25 s. Function 1 is next, still at 0 s.
    env.step("small", 0, 0, 1024)
    states = {1: submitted, 0: running}
    check(env, decisions, expected([1, 2, 5, 3, 4, 0], [0, 2, 1, 1, 2, 0], states, 8))

    # Function 1 ends at 25 + 20 s and is out of sight, function 5 is ready, and 0 has run for 20 s.
    env.step("small", 1, 0, 2048)
    assert env.time == pytest.approx(45)
    states = {5: submitted, 0: running}
    known = expected([5, 4, 2, 3, 0], [0, 2, 1, 1, 0], states, 8)
    known[0][4, 8] = np.log1p(20) / 8
    check(env, decisions, known)


def test_a_full_window_holds_the_nearest() -> None:
    check(*look(window=3), expected([0, 2, 3], [0, 2, 1], {0: (1, 0)}, 3))
