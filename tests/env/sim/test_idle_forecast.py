"""Forecasts of idle times that lie beyond the histogram."""

import numpy as np
import pytest

from agents.order.fcfs import Fcfs
from env.queueing import simulate
from env.sim.cluster import ClusterConfig, ServerType
from env.sim.controller import Queueing
from env.sim.idle_forecast import next_idle_time
from env.workloads.trace import REQUEST, FunctionProfiles, Trace
from tests.env.policies import ten_second_bins

ORDER = (1, 0, 0)


def test_what_repeats_is_repeated() -> None:
    assert next_idle_time(np.array([18_000.0]), ORDER) == 18_000.0
    assert next_idle_time(np.array([18_000.0] * 5), ORDER) == 18_000.0


def test_a_long_idle_time_follows_a_short_one() -> None:
    rng = np.random.default_rng(0)
    times = 18_000.0 + 3_600.0 * np.tile([-1.0, 1.0], 12) + rng.normal(0.0, 60.0, 24)
    assert next_idle_time(times, ORDER) == pytest.approx(14_400.0, rel=0.1)
    assert next_idle_time(times[:-1], ORDER) == pytest.approx(21_600.0, rel=0.1)


def test_differences_follow_a_trend() -> None:
    """Ten minutes more every time: only a model of differences goes on beyond the last one."""
    times = 18_000.0 + 600.0 * np.arange(12.0) + np.tile([-5.0, 5.0], 6)
    assert next_idle_time(times, (0, 2, 0)) == pytest.approx(times[-1] + 600.0, abs=60.0)
    assert next_idle_time(times, (1, 0, 0)) < times[-1]


def test_a_container_is_started_ahead_of_the_forecast() -> None:
    """Idle for 300 s each time where the histogram ends at 100 s: started after 0.85 * 300 s."""
    policy = ten_second_bins(10, margin=0.1)
    known = FunctionProfiles(
        ("F1",), np.array([1.0]), np.array([2.0]), np.array([1]), np.array([1])
    )
    # Cold starts of 2 s and executions of 1 s: ends at 3, 306, 609; then at 910 and, late, at 1256.
    times = [0.0, 303.0, 606.0, 909.0, 1256.0]
    requests = np.array([(time, 0, 1.0) for time in times], REQUEST)
    server = ClusterConfig(1_000_000, 1.0, 1.0, 1.0, (ServerType("s", 1, 0, 0, 1, 1, 4),))
    played = simulate(Trace(known, lambda: iter([requests])), server, Queueing(Fcfs(), policy))
    # The last comes 346 s after the fourth's end, one second after the container has gone.
    assert played.cold_start.tolist() == [2.0, 2.0, 2.0, 0.0, 2.0]
