"""The share of GPUs that a placement rule allocates: `python -m benchmarks.gpu_sharing [--json]`.

Functions of conf/workflow/gpu_sharing.yaml come one after the other to conf/cluster/gpu.yaml and
never end, until all of them need as many GPUs as there are: the protocol of Weng et al., Beware of
Fragmentation, USENIX ATC 2023. Each goes to a node with room; for those that find none nothing else
changes. What is then held of the GPUs tells how well a rule keeps them in one piece.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from hydra import compose, initialize_config_dir

from agents.baseline import make_baselines
from agents.scheduler import Decision
from benchmarks.figures import print_figures
from env.base.pipes import until_reader_leaves
from env.resources.quantity import UNIT
from env.score.reward import Objective
from env.sim.declared.hardware import ClusterConfig, cluster_from_config
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.view.raw_env import RawEnv
from env.workloads.source import workload_source
from run.composing import plain

CONF = Path(__file__).parents[1] / "conf"
RULES = ("random", "best_fit", "fgd")
RESOURCE = "GPU"
FOREVER = 1e6
"""Seconds on one core, of every function."""
OBJECTIVE = Objective(time_weight=1.0, cost_weight=1.0)

UNITS = {f"{rule}_percent": f"of the {RESOURCE}s allocated by {rule}, mean" for rule in RULES}


def world() -> tuple[ClusterConfig, list[WorkflowTemplate], np.ndarray]:
    """The cluster, each function as a workflow of its own, and how often one is drawn."""
    with initialize_config_dir(str(CONF), version_base=None):
        config = plain(compose("train", ["cluster=gpu", "workflow=gpu_sharing"]))
    cluster = cluster_from_config(config["cluster"], "cluster")
    source = workload_source(config["workflow"], config["workload"], cluster, 0)
    pool = source.pools["training"]  # type: ignore[union-attr]
    counts = [template.function_count for template in pool.templates]
    weights = np.repeat(np.array(pool.weights, float), counts)
    functions = [
        WorkflowTemplate(
            template.function_names[fn_id],
            np.array([int(FOREVER * cluster.single_core_speed)]),
            template.memory_req[[fn_id]],
            template.parallelism[[fn_id]],
            edges=np.zeros((0, 2), np.int64),
            data_bytes=np.zeros(0, np.int64),
            resources={name: needs[[fn_id]] for name, needs in template.resources.items()},
        )
        for template in pool.templates
        for fn_id in range(template.function_count)
    ]
    return cluster, functions, weights / weights.sum()


class WithRoom(Decision):
    """Only nodes with room now may be chosen, if there are any."""

    @cached_property
    def rows(self) -> np.ndarray:
        """As of a `Decision`."""
        rows: np.ndarray = Decision.rows.func(self).copy()  # type: ignore[attr-defined]
        room = (rows["feasible"] == 1) & (rows["waits"] == 0)
        if room.any():
            rows["feasible"] = room
        return rows


def allocated(rule: str, seed: int) -> float:
    """The share of all GPUs that is held once as many are needed as there are."""
    cluster, functions, weights = world()
    kinds, rng = cluster.server_types, np.random.default_rng(seed)
    has = sum(kind.count * kind.numa_nodes * kind.offered(RESOURCE) for kind in kinds)
    drawn, needed = [], 0.0
    while needed * UNIT < has:
        drawn.append(functions[rng.choice(len(functions), p=weights)])
        needed += float(drawn[-1].resources.get(RESOURCE, [0])[0])
    drawn.append(functions[0])  # when it comes, all others have been placed
    env = RawEnv(np.arange(len(drawn), dtype=float).tolist(), drawn, cluster, seed)
    (scheduler,) = make_baselines([rule])
    seeds = np.random.SeedSequence(seed)
    chance = np.random.default_rng(seeds)
    scheduler.reset(env, OBJECTIVE, seeds)
    while env.state.cluster[0]["decisions"] < len(drawn) - 1:
        decision = WithRoom(env, OBJECTIVE, rng=chance)
        decision.carry_out(env, scheduler.choose(decision))
    seen = env.resources
    column = seen.labels.index(RESOURCE)
    return 1.0 - float(seen.available[:, column].sum() / seen.total[:, column].sum())


@until_reader_leaves()
def main(arguments: Sequence[str] | None = None) -> None:
    """Plays and prints, as a table or as one JSON object."""
    parser = argparse.ArgumentParser(usage=argparse.SUPPRESS, description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args(arguments)
    seeds = range(max(1, options.seeds))
    means = [100 * float(np.mean([allocated(rule, seed) for seed in seeds])) for rule in RULES]
    print_figures(dict(zip(UNITS, means, strict=True)), UNITS, options.json)


if __name__ == "__main__":
    main()
