"""What resources of nodes cost: `python -m benchmarks.resources [--json]`.

Tasks come one after the other to 1,000 nodes of 16 CPU, 8 GPUs with ids and 4 others: each acquires
all that it needs, or nothing, and a task of long before releases what it holds. Compiled it is one
call for all of them, beside the same in plain Python with lists. Times are those of one thread's
processor, best of some repeats, so other work on the machine blurs them less.

Then `ray_hybrid` places tasks in the simulator, beside a Ray of this machine that runs such tasks.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from agents.baseline import make_baselines
from agents.scheduler import play as play_episode
from benchmarks.figures import print_figures
from env.base.jit import compiled_apart
from env.base.pipes import until_reader_leaves
from env.resources.instances import acquire, holds, release
from env.resources.quantity import UNIT
from env.score.reward import Objective
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.view.raw_env import RawEnv
from run.ray_session import connect

NODES = 1_000
TASKS = 20_000
PLACED = 1_000
RUNNING = 8_000
"""Tasks that come before one of them releases what it holds."""
FIRST = np.array([0, 1, 9, 10])
"""Where the places of each resource begin: one of CPU, eight of GPU, one of the last."""
EMPTY = np.array([16, *[1] * 8, 4]) * UNIT
DEMANDS = np.array([[1, 0, 0], [2, 0.5, 0], [0.5, 0.25, 1], [4, 1, 0.5], [2, 2, 0]]) * UNIT

UNITS = {
    "acquire_ns": "a task comes and another goes, compiled",
    "acquire_plain_ns": "the same in plain Python",
    "acquire_ratio": "times as fast",
    "hybrid_placements_per_s": "functions placed by ray_hybrid on 3 servers, by the clock",
    "ray_tasks_per_s": "empty tasks submitted to a Ray of 2 cores and done, by the clock",
}


def drawn_tasks() -> tuple[np.ndarray, np.ndarray]:
    """Where each task goes, int64 (TASKS,), and what it needs, (TASKS, resources)."""
    rng = np.random.default_rng(TASKS)
    kinds = rng.integers(0, len(DEMANDS), TASKS)
    return rng.integers(0, NODES, TASKS), DEMANDS[kinds].astype(np.int64)


def compiled_play(nodes: np.ndarray, needs: np.ndarray) -> np.ndarray:
    """Plays all tasks on empty nodes; returns what is left, (NODES, places)."""
    left = np.tile(EMPTY, NODES)
    taken, holder = np.zeros(RUNNING * len(EMPTY), np.int64), np.full(RUNNING, -1)
    play(left, FIRST, nodes, needs, taken, holder)
    return left.reshape(NODES, -1)


@compiled_apart
def play(left, first, nodes, needs, taken, holder):
    """All tasks in their order; `holder` has the node of each place in `taken`, or -1."""
    places, running = first[-1], len(holder)
    for task in range(len(nodes)):
        slot, row = task % running, nodes[task] * places
        if holder[slot] >= 0:
            release(left, holder[slot] * places, places, taken, slot * places)
        holder[slot] = nodes[task]
        for label in range(len(first) - 1):
            begin, count = row + first[label], first[label + 1] - first[label]
            if not holds(left, begin, count, needs[task, label]):
                holder[slot] = -1
        for label in range(len(first) - 1):
            begin, count = row + first[label], first[label + 1] - first[label]
            if holder[slot] >= 0:
                place = slot * places + first[label]
                acquire(left, begin, count, needs[task, label], taken, place)


def plain_play(nodes: np.ndarray, needs: np.ndarray) -> np.ndarray:
    """The same with lists."""
    empty = [EMPTY[begin:end].tolist() for begin, end in pairwise(FIRST)]
    left = [[list(units) for units in empty] for _ in range(NODES)]
    held: list[list[tuple[list[int], int, int]]] = [[] for _ in range(RUNNING)]
    for task, (node, demand) in enumerate(zip(nodes.tolist(), needs.tolist(), strict=True)):
        slot = task % RUNNING
        for units, place, amount in held[slot]:
            units[place] += amount
        held[slot] = []
        for units, need in zip(left[node], demand, strict=True):
            places = serving(units, need)
            if places is None:
                held[slot] = []
                break
            held[slot] += [(units, place, need // len(places)) for place in places]
        for units, place, amount in held[slot]:
            units[place] -= amount
    return np.array([[units for own in node for units in own] for node in left])


def serving(left: list[int], need: int) -> list[int] | None:
    """The ids of a resource that serve a demand: the fullest for a part, the first for whole ones.

    None if they cannot.
    """
    if len(left) == 1 or need < UNIT:
        best = -1
        for place, units in enumerate(left):
            if units >= need and (best < 0 or units < left[best]):
                best = place
        return [best] if best >= 0 else None
    whole = [place for place, units in enumerate(left) if units >= UNIT][: need // UNIT]
    return whole if len(whole) == need // UNIT else None


def nanoseconds(play_all: Callable[[np.ndarray, np.ndarray], object], repeats: int) -> float:
    """Of one task: the best of some repeats, after one to warm up."""
    tasks, times = drawn_tasks(), []
    for _ in range(1 + repeats):
        begin = time.thread_time_ns()
        play_all(*tasks)
        times.append(time.thread_time_ns() - begin)
    return min(times[1:]) / TASKS


def hybrid_placements() -> float:
    """Functions placed in a second by `ray_hybrid`, one every 0.1 s of the simulation."""
    kind = ServerType("s", 3, 0.36, 0.0, numa_nodes=1, cpu=16, memory=64_000)
    work, memory, threads = (np.array([each]) for each in (1_000, 100, 1))
    no_edges = np.zeros((0, 2), np.int64)
    one = WorkflowTemplate("one", work, memory, threads, no_edges, np.zeros(0, np.int64))
    times = [0.1 * number for number in range(PLACED)]
    env = RawEnv(times, [one] * PLACED, ClusterConfig(1_000, 1e9, 1e9, 1e9, (kind,)))
    (scheduler,) = make_baselines(["ray_hybrid"])
    objective = Objective(time_weight=1.0, cost_weight=1.0)
    begin = time.perf_counter()
    play_episode(env, scheduler, objective, np.random.SeedSequence(0))
    return PLACED / (time.perf_counter() - begin)


def ray_tasks() -> float:
    """Empty tasks that Ray does in a second, all submitted at once."""
    import ray  # takes seconds to import

    connect(None, num_cpus=2)
    try:
        empty = ray.remote(lambda: None)
        for _ in range(2):  # the first time starts the workers
            begin = time.perf_counter()
            ray.get([empty.remote() for _ in range(PLACED)])
        return PLACED / (time.perf_counter() - begin)
    finally:
        ray.shutdown()


@until_reader_leaves()
def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints, as a table or as one JSON object."""
    parser = argparse.ArgumentParser(usage=argparse.SUPPRESS, description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args(arguments)
    ours, peers = (nanoseconds(each, options.repeats) for each in (compiled_play, plain_play))
    figures = ours, peers, peers / ours, hybrid_placements(), ray_tasks()
    print_figures(dict(zip(UNITS, figures, strict=True)), UNITS, options.json)


if __name__ == "__main__":
    main()
