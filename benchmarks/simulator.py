"""How fast the simulator is and what it costs: `python -m benchmarks.simulator [--json]`.

Episodes of the default world (cluster hetero_numa, workflow study, workload poisson), one thread,
recording off. The peer is the plain Python model of the tests, on the first of the same decisions.
Rates are per second of this thread's processor time, so other work on the machine blurs them less.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig

from benchmarks.figures import print_figures
from env.base.jit import compiled
from env.base.pipes import until_reader_leaves
from env.base.schema import validated
from env.learn.kind import Environments
from env.learn.layouts import AgentsConfig, Layout
from env.learn.observation import observe_nodes, write_context
from env.score.reward import Objective
from env.sim.assembly.new_state import reset
from env.sim.declared.episode import EpisodeWorkload
from env.sim.declared.hardware import ClusterConfig, cluster_from_config
from env.sim.events.engine import play
from env.sim.events.placing import place
from env.sim.forecast.candidates import update_finish_bounds
from env.sim.state.block import State
from env.sim.state.records import PLACE
from env.sim.view.raw_env import RawEnv
from env.workloads.generator import (
    WorkloadConfig,
    WorkloadGenerator,
    training_seed,
)
from env.workloads.templates import WorkflowConfig
from run.composing import plain
from tests.reference_node import Job
from tests.reference_world import ReferenceWorld

ROOT = Path(__file__).parents[1]
REPEATS = 3
FORKS = 1000
REFERENCE_DECISIONS = 30

COMPILE = "from benchmarks.simulator import measure_compilation; measure_compilation()"

UNITS = {
    "bare_decisions_per_s": "compiled loop, random feasible node",
    "observed_decisions_per_s": "the same, all features observed at every decision",
    "observed_greedy_decisions_per_s": "the same, the smallest greedy score chooses",
    "rawenv_steps_per_s": "RawEnv.step from Python",
    "reference_decisions_per_s": "the plain Python model, on the first of these decisions",
    "rawenv_to_reference_ratio": "RawEnv.step on those decisions / the plain Python model",
    "fork_us": "RawEnv.fork on a busy cluster, microseconds",
    "bytes_per_env": "arrays that an environment does not share with its forks",
    "cold_compile_s": "seconds until the first observed decision, empty cache",
    "cached_load_s": "the same with the cache that this left behind",
}


@compiled
def next_number(random):
    """The next number of a linear congruential generator (Knuth's MMIX); its high bits are best."""
    return (random * 6364136223846793005 + 1442695040888963407) & 0x7FFFFFFFFFFFFFFF


@compiled
def draw(state, memory_alloc, random):
    """A random node that has the memory, and the next number of the generator."""
    while True:
        random = next_number(random)
        node = (random >> 33) % len(state.nodes)
        if memory_alloc <= state.nodes[node].memory:
            return node, random


@compiled
def play_bare(state, random):
    """Plays an episode with random placements; returns the number of decisions."""
    reset(state)
    while play(state) == PLACE:
        memory_alloc = state.functions[state.cluster[0].deciding].memory_req
        node, random = draw(state, memory_alloc, random)
        place(state, node, memory_alloc)
    return state.cluster[0].decisions


@compiled
def play_observed(state, random, weights, candidates, scores, nodes, context, greedy):
    """The same with an observation before every decision; `greedy` takes the smallest score."""
    reset(state)
    while play(state) == PLACE:
        memory_alloc = state.functions[state.cluster[0].deciding].memory_req
        update_finish_bounds(state)
        write_context(state, context)
        observe_nodes(state, memory_alloc, weights, candidates, scores, nodes)
        if greedy:
            node = np.argmin(scores)
        else:
            node, random = draw(state, memory_alloc, random)
        place(state, node, memory_alloc)
    return state.cluster[0].decisions


def observed(env: RawEnv, buffers: Environments, random: int, greedy: bool) -> int:
    """`play_observed` with the buffers of a decision."""
    return play_observed(
        env.state,
        random,
        buffers.weights,
        buffers.candidates[0][0],
        buffers.scores[0][0],
        buffers.nodes[0][0],
        buffers.context[0],
        greedy,
    )


def composed() -> DictConfig:
    """The default configuration of training."""
    with initialize_config_dir(str(ROOT / "conf"), version_base=None):
        return compose("train", ["cluster=hetero_numa", "workflow=study", "workload=poisson"])


@dataclass(frozen=True)
class World:
    """What the environments are made of, so that making them can be timed apart."""

    cluster: ClusterConfig
    workloads: list[EpisodeWorkload]
    objective: Objective
    agents: AgentsConfig

    def environments(self) -> tuple[list[RawEnv], Environments]:
        """Environments of all workloads, and what to look at them with."""
        envs = [RawEnv(one.arrival_times, one.templates, self.cluster) for one in self.workloads]
        layout = Layout(self.agents, self.objective, self.cluster, see_future=False)
        return envs, layout.environments(envs[0].state, 0)


def study(episodes: int) -> World:
    """The first training episodes of the study."""
    config = plain(composed())
    cluster = cluster_from_config(config["cluster"], "cluster")
    generator = WorkloadGenerator(
        validated(WorkflowConfig, config["workflow"], "workflow"),
        validated(WorkloadConfig, config["workload"], "workload"),
        cluster.single_core_speed,
    )
    return World(
        cluster,
        [generator.training_episode(training_seed(0, 0, 0, i)) for i in range(episodes)],
        validated(Objective, config["objective"], "objective"),
        validated(AgentsConfig, config["agents"], "agents"),
    )


def rate(play: Callable[[], int]) -> float:
    """Decisions per second: best of some repeats, after one to warm up."""
    play()
    best = 0.0
    for _ in range(REPEATS):
        begin = time.thread_time()
        decisions = play()
        best = max(best, decisions / (time.thread_time() - begin))
    return best


def play_rawenv(env: RawEnv, decisions: int | None = None) -> int:
    """Steps an environment from Python, round robin over the nodes; returns the decisions."""
    env.reset()
    places, memory_alloc = nodes_in_order(env)
    while not env.done and env.decisions != decisions:
        env.step(*places[env.decisions % len(places)], memory_alloc)
    return env.decisions


class Enough(Exception):
    """So many decisions have been taken."""


def play_reference(env: RawEnv, decisions: int) -> int:
    """The same on the plain Python model."""
    places, memory_alloc = nodes_in_order(env)
    taken = 0

    class InTurn(ReferenceWorld):
        def decide(self, job: Job, candidates: list[int]) -> tuple[int, int]:
            nonlocal taken
            if taken == decisions:
                raise Enough
            taken += 1
            return (taken - 1) % len(places), memory_alloc

    with suppress(Enough):
        InTurn(env.episode, lambda _: 0.0)
    return taken


def nodes_in_order(env: RawEnv) -> tuple[list[tuple[str, int, int]], int]:
    """All places of an environment, and an amount of memory (MB) that each of them has."""
    places = [env.place_of(node) for node in range(len(env.state.nodes))]
    return places, min(1024, int(env.state.nodes["memory"].min()))


def fork_us(env: RawEnv) -> float:
    """Microseconds of a fork in the middle of an episode."""
    decisions = play_rawenv(env)
    play_rawenv(env, decisions // 2)

    def fork_many() -> int:
        for _ in range(FORKS):
            env.fork()
        return FORKS

    return 1e6 / rate(fork_many)


def own_bytes(state: State) -> int:
    """Bytes of the arrays that a fork copies or makes anew."""
    return state.block.nbytes


def measure_compilation() -> None:
    """Compiles, or loads, all that observed decisions need; prints the seconds."""
    world = study(1)
    begin = time.perf_counter()
    envs, buffers = world.environments()
    play_rawenv(envs[0], 1)
    observed(envs[0], buffers, 1, False)
    print(time.perf_counter() - begin)


def compile_seconds() -> tuple[float, float]:
    """(cold, cached): seconds of a fresh process to get all compiled functions."""
    with tempfile.TemporaryDirectory() as folder:
        seconds = []
        for _ in range(2):
            done = subprocess.run(
                [sys.executable, "-c", COMPILE],
                cwd=ROOT,
                env={**os.environ, "NUMBA_CACHE_DIR": folder},
                check=True,
                capture_output=True,
                text=True,
            )
            seconds.append(float(done.stdout))
    return seconds[0], seconds[1]


def measure(episodes: int, compilation: bool) -> dict[str, float]:
    """All figures, by the names in `UNITS`.

    Args:
        episodes: number of episodes in the compiled loops.
        compilation: measure compile times too, in processes of their own.
    """
    envs, buffers = study(episodes).environments()
    states = [env.state for env in envs]
    figures = {
        "bare_decisions_per_s": rate(
            lambda: sum(play_bare(state, seed) for seed, state in enumerate(states))
        ),
        "observed_decisions_per_s": rate(
            lambda: sum(observed(one, buffers, seed, False) for seed, one in enumerate(envs))
        ),
        "observed_greedy_decisions_per_s": rate(
            lambda: sum(observed(one, buffers, seed, True) for seed, one in enumerate(envs))
        ),
        "rawenv_steps_per_s": rate(lambda: play_rawenv(envs[0])),
        "reference_decisions_per_s": rate(lambda: play_reference(envs[0], REFERENCE_DECISIONS)),
        "fork_us": fork_us(envs[0]),
        "bytes_per_env": own_bytes(states[0]),
    }
    same = rate(lambda: play_rawenv(envs[0], REFERENCE_DECISIONS))
    figures["rawenv_to_reference_ratio"] = same / figures["reference_decisions_per_s"]
    if compilation:
        figures["cold_compile_s"], figures["cached_load_s"] = compile_seconds()
    return figures


@until_reader_leaves()
def main(arguments: list[str] | None = None) -> None:
    """Measures and prints, as a table or as one JSON object."""
    parser = argparse.ArgumentParser(usage=argparse.SUPPRESS, description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--episodes", type=int, default=64, help="in the compiled loops")
    parser.add_argument(
        "--no-compilation", action="store_true", help="leave out the compile times (half a minute)"
    )
    options = parser.parse_args(arguments)
    if options.episodes < 1:
        parser.error(f"--episodes is {options.episodes}, at least 1 is needed")
    figures = measure(options.episodes, not options.no_compilation)
    print_figures(figures, UNITS, options.json)


if __name__ == "__main__":
    main()
