"""The small example of the FuncSched paper, worked by hand.

One server of 2 units of memory. F1 to F4 arrive at 0 in this order and need 1, 1, 2, 2 units; they
execute for 0.5, 0.5, 0.25, 1 s; F1 to F3 start cold in 3.5, 3.5, 5.75 s, F4 alone is warm.
"""

import numpy as np
import pytest

from agents.order.fcfs import Fcfs
from agents.order.funcsched import FuncSched
from agents.order.sjf import Sjf
from benchmarks.trace_player import simulate
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.keep_alive_policy import Lru
from env.sim.declared.ordering import Order
from env.sim.declared.rules import Rules
from env.workloads.traces.trace import REQUEST, FunctionProfiles, Trace

SERVER = ClusterConfig(1_000_000, 1e9, 1e9, 1e9, (ServerType("server", 1, 0.0, 0.0, 1, 4, 2),))
PROFILES = FunctionProfiles(
    names=("F1", "F2", "F3", "F4"),
    execution=np.array([0.5, 0.5, 0.25, 1.0]),
    cold_start=np.array([3.5, 3.5, 5.75, 0.0]),
    memory=np.array([1, 1, 2, 2]),
    parallelism=np.ones(4),
)
REQUESTS = np.array([(0.0, 0, 0.5), (0.0, 1, 0.5), (0.0, 2, 0.25), (0.0, 3, 1.0)], REQUEST)


@pytest.mark.parametrize(
    ("order", "completions", "mean"),
    [
        # F1 and F2 take F4's memory, F3 needs all of it: 4, 4, then 4 + 6, then 10 + 1.
        (Fcfs(), [4.0, 4.0, 10.0, 11.0], 7.25),
        # F3 first, then F1 and F2 together, then F4.
        (Sjf(), [10.0, 10.0, 6.0, 11.0], 9.25),
        # P = 4, 4, 12, 2: F4 first, in its warm container.
        (FuncSched(starve_threshold=60.0), [5.0, 5.0, 11.0, 1.0], 5.5),
    ],
)
def test_completions(order: Order, completions: list[float], mean: float) -> None:
    trace = Trace(PROFILES, lambda: iter([REQUESTS]))
    requests = simulate(trace, SERVER, Rules.always_up(order, Lru()), warm=[(0, 3)])
    assert requests.completion.tolist() == completions
    assert requests.completion.mean() == mean
