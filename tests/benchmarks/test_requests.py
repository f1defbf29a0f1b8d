"""The peer of the benchmark of requests has the same rules."""

import numpy as np
import pytest

from agents.order.fcfs import Fcfs
from benchmarks.requests import CLUSTER, day, play_plain
from benchmarks.trace_player import simulate
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.keep_alive_policy import Lru
from env.sim.declared.rules import Rules


@pytest.mark.parametrize("memory", [2048, 16384])
def test_the_plain_loop_has_the_same_completion_times(memory: int) -> None:
    """On one server of 2 cores requests of a whole day wait, share cores and evict each other."""
    small = ClusterConfig(
        CLUSTER.single_core_speed, 1.0, 1.0, 1.0, (ServerType("s", 2, 0, 0, 1, 2, memory),)
    )
    trace = day(3000)
    crowded = type(trace)(trace.profiles, lambda: map(_faster, trace.requests()))
    played = simulate(crowded, small, Rules.always_up(Fcfs(), Lru()))
    assert play_plain(crowded, small, 3000) == played.completion.tolist()


def _faster(chunk: np.ndarray) -> np.ndarray:
    faster = chunk.copy()
    faster["time"] /= 40.0
    return faster
