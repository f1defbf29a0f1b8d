"""How fast training is and what it costs: `python -m benchmarks.training [--json]`.

The fast path (algo.sampler=fast and the lean learner) and RLlib's own, here called stock: its
MultiAgentEnvRunner, its learner connectors and its PPOTorchLearner. Both have the same world,
layout, network, number of environments, batch, minibatches and epochs, those of
`experiment=hetero_numa` and `hetero_numa_placer`, and take every gradient step: none stops early at
a KL divergence. They take turns, an iteration each, in one process; what counts is the median
iteration. The fast path samples and learns with the threads of conf/ray (`ray.threads_per_runner`,
`ray.threads_per_learner`), its peer has one. benchmarks/own_loop.py has more peers.

Rates are agent steps per second by the clock. `_cpu` marks those per second of processor time,
which other work on the machine blurs less. An agent step is one turn of one agent: a decision of
`placer` has one, of `hierarchical` three. Whole PPO is `Algorithm.train()`: sampling, learning,
RLlib's rest. How the fast path scales is measured with one thread, on clusters that do not vary.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import ray
from hydra import compose, initialize_config_dir
from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
from rich.console import Console
from rich.table import Table

from agents.learned.algorithms import build, policy_spaces, run_config
from agents.learned.run_log import env_steps_of
from benchmarks.random_choice import choose
from benchmarks.stopwatch import PHASES, Stopwatch, phase_rates
from env.base.pipes import until_reader_leaves
from env.base.schema import validated
from env.learn.batch import Batch
from env.learn.multi_agent import ServerlessEnv, register
from run.command import CONF
from run.composing import plain
from run.ray_session import start_ray
from run.settings import PPOSettings, TrainSettings

LAYOUTS = {"hierarchical": "hetero_numa", "placer": "hetero_numa_placer"}
"""Layouts, and the experiments whose agents, networks and episodes are measured."""
# What keys end with: by the clock, and by processor time.
CLOCKS = ("", "_cpu")
REPEATS = 5
# How the fast path scales: fewer repeats, and batches that 384 NUMA nodes can learn in time.
SCALING_REPEATS = 2
SCALING_STEPS = 4096
# Decisions that every environment has behind it, about an episode of hetero_numa: when episodes
# begin, little runs and all is faster.
SCALING_WARM_UP = 600
ENVIRONMENTS = (1, 8, 64, 256, 1024)
# Servers of each type of hetero_numa that come to 12 NUMA nodes, and how many times so many.
SERVERS = {"small": 2, "medium": 2, "large": 2, "fast": 2, "bigmem": 1}
MULTIPLES = (1, 8, 32)
# A KL divergence that no update comes to.
NEVER = 1e9

UNITS = {
    "sampling_ratio": "sampling, fast / stock; the smaller of the layouts",
    "ppo_ratio": "whole PPO, fast / stock; the smaller of the layouts",
    "environments": "side by side, ray.envs_per_runner",
    "threads": "of the fast sampler, ray.threads_per_runner",
    "learner_threads": "of the fast learner, ray.threads_per_learner",
    "batch_size": "agent steps an iteration, algo.batch_size",
    "minibatch_size": "algo.minibatch_size",
    "epochs": "algo.epochs",
}
LAYOUT_UNITS = {
    "sampling_ratio": "sampling, fast / stock",
    "learner_ratio": "learning, fast / stock",
    "ppo_ratio": "whole PPO, fast / stock",
    "stock_sampling_agent_steps_per_s": "RLlib's runner",
    "stock_learner_agent_steps_per_s": "RLlib's connectors and learner",
    "stock_ppo_agent_steps_per_s": "Algorithm.train() with both",
    "fast_sampling_agent_steps_per_s": "BatchEnvRunner",
    "fast_learner_agent_steps_per_s": "ChunksToBatch and BudgetPPOLearner",
    "fast_ppo_agent_steps_per_s": "Algorithm.train() with both",
}
SCALING_UNITS = {
    "layout": "who decides",
    "environments": "side by side",
    "numa_nodes": "of the cluster",
    "batch": "agent steps of an iteration",
    "simulator_agent_steps_per_s": "the batch alone, random actions",
    "sampling_agent_steps_per_s": "BatchEnvRunner",
    "learner_agent_steps_per_s": "ChunksToBatch and BudgetPPOLearner",
    "ppo_agent_steps_per_s": "Algorithm.train() with both",
    "simulator_decisions_per_s": "agent steps / turns of a decision",
    "sampling_decisions_per_s": "the same",
    "learner_decisions_per_s": "the same",
    "ppo_decisions_per_s": "the same",
    "bytes_per_env": "arrays of the simulator that an environment does not share",
    "rss_mb": "resident memory of the process, all in all",
}

Figures = dict[str, Any]


def settings_of(
    layout: str, overrides: list[str], environments: int | None = None, multiple: int | None = None
) -> TrainSettings:
    """What `train.py` would be told.

    Args:
        layout: of the agents.
        overrides: of the configuration.
        environments: number of them; None = as configured.
        multiple: of `SERVERS`; None = the configured cluster.
    """
    overrides = [f"experiment={LAYOUTS[layout]}", f"algo.kl_stop={NEVER}", *overrides]
    if environments is not None:
        overrides.append(f"ray.envs_per_runner={environments}")
    with initialize_config_dir(str(CONF), version_base="1.3"):
        told = plain(compose("train", overrides))
        if multiple is not None:
            told["cluster"] = plain(compose("train", ["cluster=hetero_numa"]))["cluster"]
    if multiple is not None:
        for name, count in SERVERS.items():
            told["cluster"]["server_types"][name]["server_count"] = multiple * count
    return validated(TrainSettings, told, "train")


def with_algo(settings: TrainSettings, **changes: Any) -> TrainSettings:
    """The settings with some values of `algo` changed."""
    return settings.model_copy(update={"algo": ppo_of(settings).model_copy(update=changes)})


def ppo_of(settings: TrainSettings) -> PPOSettings:
    """What is measured."""
    assert isinstance(settings.algo, PPOSettings)
    return settings.algo


class Timed(Protocol):
    """An algorithm whose iterations are timed, phase by phase."""

    def iterate(self) -> np.ndarray:
        """One iteration; (PHASES, 2) agent steps per second, as of `clocks`."""

    def stop(self) -> None:
        """Frees what it holds."""


class Pipeline:
    """An algorithm whose iterations are timed, phase by phase.

    Args:
        settings: of a run of `train.py`; with algo.sampler=rllib the learner is RLlib's as well.

    Attributes:
        algorithm: of RLlib.
        steps: agent steps of the last iteration.
    """

    def __init__(self, settings: TrainSettings) -> None:
        world = settings.world()
        environment = ServerlessEnv(world)
        spaces = policy_spaces(environment, settings.agents.share_type_policy)
        config = run_config(settings, world, spaces, 0)
        if ppo_of(settings).sampler == "rllib":
            config.learners(learner_class=PPOTorchLearner)
        self.algorithm = build(config, None)
        self._watches = {
            "sampling": Stopwatch(self.algorithm.env_runner.sample),
            "learner": Stopwatch(self.algorithm.learner_group.update),
            "ppo": Stopwatch(self.algorithm.train),
        }
        self.algorithm.env_runner.sample = self._watches["sampling"]
        self.algorithm.learner_group.update = self._watches["learner"]

    def iterate(self) -> np.ndarray:
        """One iteration; (PHASES, 2) agent steps per second, as of `clocks`."""
        return phase_rates(self._watches, self._train)

    def _train(self) -> int:
        # In both layouts one agent acts in every step of the environment.
        self.steps = env_steps_of(self._watches["ppo"]())
        return self.steps

    def stop(self) -> None:
        """Frees what it holds."""
        self.algorithm.stop()
        gc.collect()


def compare(settings: TrainSettings, repeats: int, **others: Timed) -> Figures:
    """The figures of `LAYOUT_UNITS`, rates and ratios also by processor time.

    Args:
        settings: of a run of `train.py`.
        repeats: iterations that count.
        others: that take their turns too; their rates have their names.
    """
    pipelines: dict[str, Timed] = {
        name: Pipeline(with_algo(settings, sampler=sampler))
        for name, sampler in (("stock", "rllib"), ("fast", "fast"))
    } | others
    found: dict[str, list[np.ndarray]] = {name: [] for name in pipelines}
    # The first iteration compiles and warms up.
    for _ in range(1 + repeats):
        for name, pipeline in pipelines.items():
            found[name].append(pipeline.iterate())
    rates = {name: np.median(each[1:], axis=0) for name, each in found.items()}
    for pipeline in pipelines.values():
        pipeline.stop()

    figures: Figures = {}
    for clock, suffix in enumerate(CLOCKS):
        for phase, *each in zip(PHASES, *rates.values(), strict=True):
            of = {name: rate[clock] for name, rate in zip(rates, each, strict=True)}
            for name, rate in of.items():
                figures[f"{name}_{phase}_agent_steps_per_s{suffix}"] = rate
            figures[f"{phase}_ratio{suffix}"] = of["fast"] / of["stock"]
    return figures


def play(batch: Batch, decisions: int) -> None:
    """So many decisions of every environment, at random."""
    seen, random = {turn: turn.room(len(batch)) for turn in batch.turns}, 1
    actions = np.zeros(len(batch), np.int64)
    for _ in range(decisions):
        for turn in batch.turns:
            batch.observe(turn, seen[turn])
            random = choose(seen[turn]["mask"], random, actions)
            batch.act(turn, actions)
        batch.step()
    batch.ended.clear()


def scale(settings: TrainSettings) -> Figures:
    """A row of `SCALING_UNITS`, rates also by processor time: the fast path with these settings."""
    algo = ppo_of(settings)
    batch_size = max(algo.minibatch_size, min(algo.batch_size, SCALING_STEPS))
    pipeline = Pipeline(with_algo(settings, sampler="fast", batch_size=batch_size))
    batch: Batch = pipeline.algorithm.env_runner.samplers[0].batch
    play(batch, SCALING_WARM_UP)
    rates = np.median([pipeline.iterate() for _ in range(1 + SCALING_REPEATS)][1:], axis=0)
    decisions = pipeline.steps // (len(batch) * len(batch.turns))
    simulator = Stopwatch(play)
    for _ in range(SCALING_REPEATS):
        simulator(batch, decisions)
    row: Figures = {
        "layout": settings.agents.layout,
        "environments": len(batch),
        "numa_nodes": len(batch.states[0].nodes),
        "batch": pipeline.steps,
        "bytes_per_env": batch.states[0].block.nbytes,
        "rss_mb": resident_mb(),
    }
    by_phase = {
        "simulator": SCALING_REPEATS * pipeline.steps / simulator.seconds,
        **dict(zip(PHASES, rates, strict=True)),
    }
    for phase, rate in by_phase.items():
        for clock, steps in zip(CLOCKS, rate, strict=True):
            row[f"{phase}_agent_steps_per_s{clock}"] = steps
            row[f"{phase}_decisions_per_s{clock}"] = steps / len(batch.turns)
    pipeline.stop()
    return row


def resident_mb() -> float:
    """Resident memory of this process; Linux alone tells."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def measure(overrides: list[str], repeats: int, scaling: bool) -> Figures:
    """All figures. Ray has to run.

    Args:
        overrides: of the configuration of training.
        repeats: iterations of each pipeline that count.
        scaling: measure more environments and NUMA nodes too, on the fast path.

    Returns:
        The figures of `UNITS`; under the name of each layout those of `LAYOUT_UNITS`; and as
        `scaling` a list of rows as in `SCALING_UNITS`. Rates and ratios also with `_cpu`.
    """
    register()
    settings = settings_of("hierarchical", overrides)
    layouts = {}
    for layout in LAYOUTS:
        tell(f"{layout}: stock and fast")
        layouts[layout] = compare(settings_of(layout, overrides), repeats)
    figures: Figures = {
        f"{name}{clock}": min(each[f"{name}{clock}"] for each in layouts.values())
        for clock in CLOCKS
        for name in ("sampling_ratio", "ppo_ratio")
    }
    figures["environments"] = settings.ray.envs_per_runner
    figures["threads"] = settings.ray.threads_per_runner
    figures["learner_threads"] = settings.ray.threads_per_learner
    for name in ("batch_size", "minibatch_size", "epochs"):
        figures[name] = getattr(ppo_of(settings), name)
    figures |= layouts
    if scaling:
        figures["scaling"] = rows = []
        alone = [
            *overrides,
            "ray.threads_per_runner=1",
            "ray.threads_per_learner=1",
            "variation.unvaried=1.0",
        ]
        for layout in LAYOUTS:
            for environments in ENVIRONMENTS:
                tell(f"{layout}: {environments} environments")
                rows.append(scale(settings_of(layout, alone, environments=environments)))
            for multiple in MULTIPLES:
                tell(f"{layout}: {multiple} times {sum(SERVERS.values())} servers")
                rows.append(scale(settings_of(layout, alone, multiple=multiple)))
    return figures


def tell(what: str) -> None:
    """What is measured now; minutes pass."""
    print(f"measuring {what}", file=sys.stderr)


def number(value: float) -> str:
    """As many digits as say something."""
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.2f}"


def table_of(*sections: tuple[str, Figures, Mapping[str, str]]) -> Table:
    """What each section is called, its figures, and what they are."""
    table = Table("figure", "value", "by processor time", "what")
    for prefix, figures, units in sections:
        table.add_section()
        for key, what in units.items():
            processor = figures.get(f"{key}_cpu")
            shown = "" if processor is None else number(processor)
            table.add_row(f"{prefix}{key}", number(figures[key]), shown, what)
    return table


def show(figures: Figures) -> None:
    """Prints tables."""
    console = Console()
    layouts = [(f"{layout}.", figures[layout], LAYOUT_UNITS) for layout in LAYOUTS]
    console.print(table_of(("", figures, UNITS), *layouts))
    if "scaling" in figures:
        shown = [key for key in SCALING_UNITS if "decisions" not in key]
        rows = Table(*[key.removesuffix("_agent_steps_per_s") for key in shown])
        for row in figures["scaling"]:
            values = (row[key] for key in shown)
            rows.add_row(*(each if isinstance(each, str) else number(each) for each in values))
        console.print(rows)
        console.print(
            "simulator, sampling, learner, ppo: agent steps/s by the clock, with one thread"
        )


@until_reader_leaves()
def main(arguments: list[str] | None = None) -> None:
    """Measures and prints, as tables or as one JSON object."""
    parser = argparse.ArgumentParser(usage=argparse.SUPPRESS, description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="iterations of each pipeline")
    parser.add_argument(
        "--no-scaling", action="store_true", help="leave out other environments and NUMA nodes"
    )
    options = parser.parse_args(arguments)
    if options.repeats < 1:
        parser.error(f"--repeats is {options.repeats}, at least 1 is needed")
    start_ray(settings_of("hierarchical", []).ray, 0)
    try:
        figures = measure([], options.repeats, not options.no_scaling)
    finally:
        ray.shutdown()
    if options.json:
        print(json.dumps(figures))
    else:
        show(figures)


if __name__ == "__main__":
    main()
