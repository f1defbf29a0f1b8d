"""A finished evaluation on a small world, as the files that the report is made of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from env.metrics import METRICS, episode_metrics
from env.reward import Objective
from env.sim.cluster import ClusterConfig, ServerType
from env.sim.episode_file import episode_of, write_episode
from env.sim.raw_env import RawEnv
from env.sim.workflow import WorkflowTemplate

CLUSTER = ClusterConfig(
    single_core_speed=1_000_000,
    memory_bandwidth=100e9,
    numa_bandwidth=30e9,
    network_bandwidth=20e6,
    server_types=(
        ServerType("small", 2, 0.17, 25.0, 1, 4, 8192),
        ServerType("large", 1, 1.09, 45.0, 2, 16, 32768),
    ),
)
POLICIES = {
    "learned": "learned",
    "greedy_objective_tuned_latency": "baseline",
    "round_robin": "baseline",
    "clairvoyant": "reference",
}
"""Kinds by name. The first one uses all NUMA nodes, others fewer; see `played`."""


def fork(functions: int) -> WorkflowTemplate:
    """One function whose result all others read, of 3 GB each, so that some wait for memory."""
    return WorkflowTemplate(
        "fork",
        computation=[60_000_000 * (1 + index % 3) for index in range(functions)],
        memory_req=[3072] * functions,
        parallelism=[2] * functions,
        edges=[(0, index) for index in range(1, functions)],
        data_bytes=[100_000_000] * (functions - 1),
    )


def played(policy: int, episode: int, workflows: int, functions: int) -> RawEnv:
    """An episode played to its end."""
    arrivals = [40.0 * index + episode for index in range(workflows)]
    env = RawEnv(arrivals, [fork(functions)] * workflows, CLUSTER, record=True)
    nodes = len(env.state.nodes) - policy % 3
    while not env.done:
        env.step(*env.place_of(env.decisions // (1 + policy) % nodes), 3072)
    return env


def finished_evaluation(
    folder: Path,
    policies: Sequence[str] = tuple(POLICIES),
    episodes: int = 2,
    workflows: int = 3,
    functions: int = 6,
    training: bool = True,
) -> Path:
    """Writes the files of an evaluation into a new folder and returns it."""
    (folder / "episodes").mkdir(parents=True)
    objective = Objective(time_weight=1.0, cost_weight=1.0)
    rows = []
    for index, policy in enumerate(policies):
        for episode in range(episodes):
            env = played(index, episode, workflows, functions)
            name = f"{policy}_{episode:04d}"
            write_episode(folder / "episodes" / f"{name}.json", episode_of(env, name, "a test"))
            metrics = episode_metrics(env.state, objective)
            rows.append({"policy": policy, "seed": 0, "episode": episode, **metrics})
    results = pd.DataFrame(rows)
    results.to_parquet(folder / "results.parquet")
    means = results.groupby("policy")[list(METRICS)].mean()
    summary = [
        {
            "policy": policy,
            "kind": POLICIES.get(policy, "baseline"),
            **{
                metric: {"mean": mean, "ci_low": 0.9 * mean, "ci_high": 1.1 * mean}
                for metric, mean in means.loc[policy].items()
            },
        }
        for policy in means.sort_values("J").index
    ]
    (folder / "summary.json").write_text(json.dumps(summary))
    run = {
        "config": {"episodes": episodes, "objective": {"time_weight": 1.0, "cost_weight": 1.0}},
        "commit": "0123abc",
        "versions": {"python": "3.11.9", "numpy": np.__version__},
        "seeds": [0],
    }
    (folder / "run.json").write_text(json.dumps(run))
    if training:
        steps = np.arange(1, 11) * 8192
        curve = pd.DataFrame({"env_steps": steps, "J": 15.0 / np.sqrt(np.arange(1, 11))})
        curve.to_csv(folder / "metrics.csv", index=False)
    return folder
