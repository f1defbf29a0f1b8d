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
from typing import NamedTuple

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


class Tasks(NamedTuple):
    """Where each task goes, and what it needs."""

    nodes: np.ndarray  # int64 (T,)
    needs: np.ndarray  # int64 (T, resources)

    @classmethod
    def drawn(cls, count: int) -> Tasks:
        """The same for both sides."""
        rng = np.random.default_rng(count)
        kinds = rng.integers(0, len(DEMANDS), count)
        return cls(rng.integers(0, NODES, count), DEMANDS[kinds].astype(np.int64))


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


def compiled_play(tasks: Tasks) -> Callable[[], np.ndarray]:
    """A call that plays all tasks on empty nodes, and returns what is left: (NODES, places)."""
    places = len(EMPTY)

    def call() -> np.ndarray:
        left = np.tile(EMPTY, NODES)
        taken, holder = np.zeros(RUNNING * places, np.int64), np.full(RUNNING, -1)
        play(left, FIRST, *tasks, taken, holder)
        return left.reshape(NODES, places)

    return call


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


def plain_play(tasks: Tasks) -> Callable[[], np.ndarray]:
    """The same with lists."""
    nodes, needs = tasks.nodes.tolist(), tasks.needs.tolist()
    empty = [EMPTY[begin:end].tolist() for begin, end in pairwise(FIRST)]

    def call() -> np.ndarray:
        left = [[list(units) for units in empty] for _ in range(NODES)]
        held: list[list[tuple[list[int], int, int]]] = [[] for _ in range(RUNNING)]
        for task, (node, demand) in enumerate(zip(nodes, needs, strict=True)):
            slot = task % RUNNING
            for units, place, amount in held[slot]:
                units[place] += amount
            held[slot] = []
            chosen = []
            for units, need in zip(left[node], demand, strict=True):
                places = serving(units, need)
                if places is None:
                    break
                chosen.append((units, places, need))
            else:
                for units, places, need in chosen:
                    amount = need // len(places)
                    for place in places:
                        units[place] -= amount
                        held[slot].append((units, place, amount))
        return np.array([[units for own in node for units in own] for node in left])

    return call


def nanoseconds(call: Callable[[], object], repeats: int) -> float:
    """Of one task: the best of some repeats, after one to warm up."""
    call()
    times = []
    for _ in range(repeats):
        begin = time.thread_time_ns()
        call()
        times.append(time.thread_time_ns() - begin)
    return min(times) / TASKS


def hybrid_placements() -> float:
    """Functions placed in a second by `ray_hybrid`, one every 0.1 s of the simulation."""
    kind = ServerType("s", 3, 0.36, 0.0, numa_nodes=1, cpu=16, memory=64_000)
    work, memory, threads = (np.array([each]) for each in (1_000, 100, 1))
    no_edges = np.zeros((0, 2), np.int64)
    one = WorkflowTemplate("one", work, memory, threads, no_edges, np.zeros(0, np.int64))
    times = [0.1 * number for number in range(PLACED)]
    env = RawEnv(times, [one] * PLACED, ClusterConfig(1_000, 1e9, 1e9, 1e9, (kind,)))
    (scheduler,) = make_baselines(["ray_hybrid"])
    begin = time.perf_counter()
    play_episode(
        env, scheduler, Objective(time_weight=1.0, cost_weight=1.0), np.random.SeedSequence(0)
    )
    return PLACED / (time.perf_counter() - begin)


def ray_tasks() -> float:
    """Empty tasks that Ray does in a second, all submitted at once."""
    import ray  # takes seconds to import

    connect(None, num_cpus=2)
    try:
        empty = ray.remote(lambda: None)
        ray.get([empty.remote() for _ in range(PLACED)])  # starts the workers
        begin = time.perf_counter()
        ray.get([empty.remote() for _ in range(PLACED)])
        return PLACED / (time.perf_counter() - begin)
    finally:
        ray.shutdown()


def measure(repeats: int) -> dict[str, float]:
    """All figures, by the names in `UNITS`."""
    tasks = Tasks.drawn(TASKS)
    ours = nanoseconds(compiled_play(tasks), repeats)
    peers = nanoseconds(plain_play(tasks), repeats)
    figures = ours, peers, peers / ours, hybrid_placements(), ray_tasks()
    return dict(zip(UNITS, figures, strict=True))


@until_reader_leaves()
def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints, as a table or as one JSON object."""
    parser = argparse.ArgumentParser(usage=argparse.SUPPRESS, description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args(arguments)
    print_figures(measure(max(1, options.repeats)), UNITS, options.json)


if __name__ == "__main__":
    main()
