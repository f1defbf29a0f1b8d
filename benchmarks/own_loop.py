"""A loop of others beside train.py: `python -m benchmarks.own_loop [--json]`.

MaskablePPO of sb3-contrib on the vector environment, and that environment without a learner, beside
the pipelines of benchmarks/training.py. All have the world of `experiment=hetero_numa_placer` and
its number of environments, batch, minibatches, epochs and widths of hidden layers. The networks of
MaskablePPO see all NUMA nodes as one row of numbers, where those of the project score one node
after the other. Torch has one thread, as docs/own_loop.md has it.
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib.util import find_spec

import numpy as np
import ray
import torch
from rich.console import Console

from benchmarks.random_choice import choose
from benchmarks.stopwatch import Stopwatch, phase_rates
from benchmarks.training import (
    CLOCKS,
    LAYOUT_UNITS,
    REPEATS,
    Figures,
    compare,
    ppo_of,
    settings_of,
    table_of,
)
from env.base.pipes import until_reader_leaves
from env.learn.gym import SingleAgentVectorEnv
from env.learn.multi_agent import register
from run.ray_session import start_ray
from run.settings import PPOSettings

UNITS = LAYOUT_UNITS | {
    "maskable_sampling_agent_steps_per_s": "MaskablePPO.collect_rollouts",
    "maskable_learner_agent_steps_per_s": "MaskablePPO.train",
    "maskable_ppo_agent_steps_per_s": "MaskablePPO.learn",
    "vector_agent_steps_per_s": "SingleAgentVectorEnv alone, random actions",
}


def play_vector(envs: SingleAgentVectorEnv, decisions: int) -> None:
    """So many decisions of every environment, at random."""
    actions, random = np.zeros(envs.num_envs, np.int64), 1
    for _ in range(decisions):
        random = choose(envs.action_masks(), random, actions)
        envs.step(actions)


class MaskablePPOLoop:
    """An algorithm whose iterations are timed, phase by phase.

    Args:
        algo: that of the other pipelines.
        envs: which it steps.
    """

    def __init__(self, algo: PPOSettings, envs: SingleAgentVectorEnv) -> None:
        from sb3_contrib import MaskablePPO
        from torch import nn

        from env.learn.sb3 import BatchVecEnv

        decisions = max(1, algo.batch_size // envs.num_envs)
        self._steps = decisions * envs.num_envs
        learner = MaskablePPO(
            "MultiInputPolicy",
            BatchVecEnv(envs),
            n_steps=decisions,
            batch_size=algo.minibatch_size,
            n_epochs=algo.epochs,
            learning_rate=algo.learning_rate,
            gamma=algo.gamma,
            gae_lambda=algo.gae_lambda,
            clip_range=algo.clip,
            ent_coef=algo.entropy,
            policy_kwargs={"net_arch": list(algo.hidden), "activation_fn": nn.ReLU},
            seed=0,
            device="cpu",
        )
        self._watches = {
            "sampling": Stopwatch(learner.collect_rollouts),
            "learner": Stopwatch(learner.train),
            "ppo": Stopwatch(learner.learn),
        }
        learner.collect_rollouts = self._watches["sampling"]  # type: ignore[method-assign]
        learner.train = self._watches["learner"]  # type: ignore[method-assign]

    def iterate(self) -> np.ndarray:
        """One iteration; (PHASES, 2) agent steps per second, as of `clocks`."""
        return phase_rates(self._watches, self._learn)

    def stop(self) -> None:
        """Nothing is open."""

    def _learn(self) -> int:
        self._watches["ppo"](self._steps, reset_num_timesteps=False)
        return self._steps


def measure(overrides: list[str], repeats: int) -> Figures:
    """The figures of `UNITS`, rates and ratios also with `_cpu`. Ray has to run.

    Args:
        overrides: of the configuration of training.
        repeats: iterations that count.
    """
    register()
    torch.set_num_threads(1)
    settings = settings_of("placer", overrides)
    algo, world, count = ppo_of(settings), settings.world(), settings.ray.envs_per_runner
    maskable = MaskablePPOLoop(algo, SingleAgentVectorEnv(world, count))
    figures = compare(settings, repeats, maskable=maskable)
    envs = SingleAgentVectorEnv(world, count)
    envs.reset()
    decisions, rates = max(1, algo.batch_size // count), []
    for _ in range(1 + repeats):
        watch = Stopwatch(play_vector)
        watch(envs, decisions)
        rates.append(decisions * count / watch.seconds)
    for clock, rate in zip(CLOCKS, np.median(rates[1:], axis=0), strict=True):
        figures[f"vector_agent_steps_per_s{clock}"] = rate
    return figures


@until_reader_leaves()
def main(arguments: list[str] | None = None) -> None:
    """Measures and prints, as a table or as one JSON object."""
    parser = argparse.ArgumentParser(usage=argparse.SUPPRESS, description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="iterations of each pipeline")
    options = parser.parse_args(arguments)
    if options.repeats < 1:
        parser.error(f"--repeats is {options.repeats}, at least 1 is needed")
    if find_spec("sb3_contrib") is None:
        sys.exit("sb3-contrib is not installed (make .venv/installed-dev)")
    start_ray(settings_of("placer", []).ray, 0)
    try:
        figures = measure([], options.repeats)
    finally:
        ray.shutdown()
    if options.json:
        print(json.dumps(figures))
    else:
        Console().print(table_of(("", figures, UNITS)))


if __name__ == "__main__":
    main()
