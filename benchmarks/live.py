"""How long a live cluster takes to answer: `python -m benchmarks.live [--json]`.

The platform of the tests plays held-out episodes of the default world with the policy
`hetero_numa`: functions take half to twice as long as declared. Times are those of one thread's
processor, so other work on the machine blurs them less.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hydra import compose, initialize_config_dir

from agents.learned.learned_scheduler import LearnedScheduler
from agents.live import LiveCluster
from benchmarks.figures import print_figures
from env.base.pipes import until_reader_leaves
from env.base.schema import validated
from env.score.reward import Objective
from env.sim.declared.hardware import cluster_from_config
from env.workloads.generator import WorkloadConfig, WorkloadGenerator
from env.workloads.templates import WorkflowConfig
from run.command import CONF, plain
from tests.platform_loop import Platform

UNITS = {
    "decision_ms": "next_assignment, median of those that place a function, milliseconds",
    "decision_p99_ms": "the same, 99th percentile",
    "event_ms": "an event told, median, milliseconds",
    "event_p99_ms": "the same, 99th percentile",
    "large_decision_ms": "decision_ms with a hundred times the servers (cluster=large)",
}
EVENTS = ("arrived", "started", "finished", "server_up")


def seconds_of(cluster_name: str, episodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Seconds of every decision and of every event of some episodes."""
    with initialize_config_dir(str(CONF), version_base=None):
        told = plain(compose("evaluate", [f"cluster={cluster_name}"]))
    cluster = cluster_from_config(told["cluster"], "cluster")
    objective = validated(Objective, told["objective"], "objective")
    generator = WorkloadGenerator(
        validated(WorkflowConfig, told["workflow"], "workflow"),
        validated(WorkloadConfig, told["workload"], "workload"),
        cluster.single_core_speed,
    )
    decisions: list[float] = []
    events: list[float] = []

    def timed(ask: Callable[..., Any], seconds: list[float]) -> Callable[..., Any]:
        def asked(*given: Any) -> Any:
            begin = time.thread_time()
            answer = ask(*given)
            if answer is not None or seconds is events:
                seconds.append(time.thread_time() - begin)
            return answer

        return asked

    for index in range(episodes):
        episode = generator.evaluation_episode(index)
        known = {template.name: template for template in episode.templates}
        scheduler = LearnedScheduler("hetero_numa", cluster, objective)
        live = LiveCluster(cluster, list(known.values()), scheduler, objective)
        live.next_assignment = timed(live.next_assignment, decisions)  # type: ignore[method-assign]
        for name in EVENTS:
            setattr(live, name, timed(getattr(live, name), events))
        rng = np.random.default_rng(index)
        Platform(live, cluster, episode, rng, 2.0, np.inf, lambda: None).play()
    return np.array(decisions), np.array(events)


def measure(episodes: int) -> dict[str, float]:
    """All figures, by the names in `UNITS`."""
    seconds_of("tiny", 1)  # compiles, or loads, what is compiled
    decisions, events = seconds_of("hetero_numa", episodes)
    large, _ = seconds_of("large", 1)
    return {
        "decision_ms": 1e3 * float(np.median(decisions)),
        "decision_p99_ms": 1e3 * float(np.percentile(decisions, 99)),
        "event_ms": 1e3 * float(np.median(events)),
        "event_p99_ms": 1e3 * float(np.percentile(events, 99)),
        "large_decision_ms": 1e3 * float(np.median(large)),
    }


@until_reader_leaves()
def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints, as a table or as one JSON object."""
    parser = argparse.ArgumentParser(usage=argparse.SUPPRESS, description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--episodes", type=int, default=5)
    options = parser.parse_args(arguments)
    if options.episodes < 1:
        parser.error(f"--episodes is {options.episodes}, at least 1 is needed")
    print_figures(measure(options.episodes), UNITS, options.json)


if __name__ == "__main__":
    main()
