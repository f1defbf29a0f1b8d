"""A finished evaluation with recorded episodes of a small world, for tests of the report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from agents.scheduler import Kind
from env.score.reward import Objective
from env.sim.declared.hardware import cluster_from_config
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.view.raw_env import RawEnv
from evaluation.contest import recording_name
from evaluation.episode_metrics import PlayedEpisode
from tests.episodes import begun, written
from tests.report import evaluations
from tests.report.evaluations import metrics_of_rows, result, run_of, workload_of, write_results

CLUSTER = cluster_from_config(evaluations.CLUSTER, "cluster")
POLICIES: dict[str, Kind] = {
    "learned": "learned",
    "greedy_objective_tuned_for_us": "baseline",
    "round_robin": "baseline",
    "clairvoyant": "reference",
}
"""Kinds by name. The first one uses all NUMA nodes, others fewer; see `played`."""
MEMORY = 3072
"""MB of every function, so that two run at a time on a small server and others wait."""
OBJECTIVE = Objective(time_weight=1.0, cost_weight=1.0)


def fork(functions: int) -> WorkflowTemplate:
    """One function whose result all others read."""
    return WorkflowTemplate(
        "fork",
        computation=60_000_000 * (1 + np.arange(functions) % 3),
        memory_req=np.full(functions, MEMORY),
        parallelism=np.full(functions, 2),
        edges=np.array([(0, index) for index in range(1, functions)]),
        data_bytes=np.full(functions - 1, 100_000_000),
    )


def played(
    policy: int,
    episode: int,
    workflows: int,
    functions: int,
    gap: float,
    tenants: Sequence[str] = (),
) -> RawEnv:
    """An episode played to its end; workflows belong to the tenants in turn."""
    arrivals = [gap * index + episode for index in range(workflows)]
    owners = [tenants[index % len(tenants)] for index in range(workflows) if tenants]
    env = begun(arrivals, [fork(functions)] * workflows, CLUSTER, record=True, tenants=owners)
    nodes = len(env.state.nodes) - policy % 3
    while not env.done:
        env.step(*env.place_of(env.decisions // (1 + policy) % nodes), MEMORY)
    return env


def finished_evaluation(
    folder: Path,
    policies: Mapping[str, Kind] = POLICIES,
    episodes: int = 2,
    workflows: int = 3,
    functions: int = 6,
    gap: float = 40.0,
    tenants: Mapping[str, float] | None = None,
) -> Path:
    """Writes the files of an evaluation into a new folder and returns it.

    `tenants` have their declared shares; workflows arrive `gap` seconds apart; see `played`.
    """
    run = run_of(workload=workload_of(**(tenants or {})), episodes=episodes)
    rows = []
    for index, (policy, kind) in enumerate(policies.items()):
        for episode in range(episodes):
            env = played(index, episode, workflows, functions, gap, list(tenants or {}))
            finished = PlayedEpisode(env.state, OBJECTIVE, CLUSTER.power, env, 1.0, math.nan)
            metrics = {name: each.compute(finished) for name, each in metrics_of_rows().items()}
            rows.append(result(policy, episode, math.nan, 0, kind, "", **metrics))
            (folder / "episodes").mkdir(parents=True, exist_ok=True)
            written(env, folder / "episodes" / f"{recording_name(policy, 0, episode)}.json")
    write_results(folder, run, rows)
    return folder


def write_training(folder: Path) -> None:
    """Adds what a training of the learned policy has left."""
    steps = np.arange(1, 11)
    curve = pd.DataFrame({"env_steps": 8192 * steps, "difference": 15.0 / np.sqrt(steps)})
    curve.to_csv(folder / "metrics.csv", index=False)
