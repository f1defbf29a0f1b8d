"""Forecasts of idle times that lie beyond the histogram."""

import numpy as np
import pytest

from agents.order.fcfs import Fcfs
from benchmarks.trace_player import Simulation, simulate
from env.sim.declared.hardware import ServerType
from env.sim.declared.images import Images
from env.sim.declared.rules import Rules
from env.sim.node.idle_forecast import next_idle_time
from env.sim.view.raw_env import RawEnv
from tests.env.sim.test_queueing import cluster, profiles, trace
from tests.env.small import chain, cluster_of, functions, ten_second_bins

ORDER = (1, 0, 0)


def test_what_repeats_is_repeated() -> None:
    assert next_idle_time(np.array([18_000.0]), ORDER) == 18_000.0
    assert next_idle_time(np.array([18_000.0] * 5), ORDER) == 18_000.0


def test_a_long_idle_time_follows_a_short_one() -> None:
    rng = np.random.default_rng(0)
    times = 18_000.0 + 3_600.0 * np.tile([-1.0, 1.0], 12) + rng.normal(0.0, 60.0, 24)
    assert next_idle_time(times, ORDER) == pytest.approx(14_400.0, rel=0.1)
    assert next_idle_time(times[:-1], ORDER) == pytest.approx(21_600.0, rel=0.1)


def test_a_container_is_started_ahead_of_the_forecast() -> None:
    """Idle for 300 s each time where the histogram ends at 100 s: started after 0.85 * 300 s."""
    policy = ten_second_bins(10, margin=0.1)
    known = profiles((1.0, 2.0, 1))
    # Cold starts of 2 s and executions of 1 s: ends at 3, 306, 609; then at 910 and, late, at 1256.
    times = [0.0, 303.0, 606.0, 909.0, 1256.0]
    requests = trace(known, [(time, 0, 1.0) for time in times])
    played = simulate(requests, cluster(4), Rules.always_up(Fcfs(), policy))
    # The last comes 346 s after the fourth's end, one second after the container has gone.
    assert played.cold_start.tolist() == [2.0, 2.0, 2.0, 0.0, 2.0]


ONE_NODE = cluster_of(ServerType("s", 1, 0.0, 0.0, 1, 8, 100))


def test_all_images_that_become_idle_together_get_their_forecasts() -> None:
    """Of a workflow of three sources, started anew after 994 s of idle time each."""
    three = functions(1000, 1000, 1000)
    queueing = Rules.always_up(Fcfs(), ten_second_bins(10, margin=0.1), "first_fit")
    images = Images(np.array([5.0, 5.0, 5.0]), {three: np.array([2, 0, 1])})
    # Cold starts of 5 s and executions of 1 s: the first ends are at 6.
    env = RawEnv(
        [0.0, 1000.0, 2000.0, 3000.0], [three] * 4, ONE_NODE, rules=queueing, images=images
    )
    assert env.runs["warm"].tolist() == [0] * 9 + [1] * 3
    assert env.state.images["keep_until"] == pytest.approx([994.0 * 1.15] * 3)


def test_a_container_is_kept_by_the_forecast_that_its_successor_asked_for() -> None:
    """The idle time of 0 s between two functions of one image is repeated: nothing is kept."""
    single, pair = functions(1000), chain(1000, 1000)
    policy = ten_second_bins(1, margin=0.1).model_copy(update={"forecast_order": (4, 0, 0)})
    images = Images(np.array([5.0]), {single: np.array([0]), pair: np.array([0, 0])})
    # 1000 s after each end; the third end, at 2018, is the first that knows it.
    env = RawEnv(
        [0.0, 1006.0, 2012.0, 3018.0],
        [single] * 3 + [pair],
        ONE_NODE,
        rules=Rules.always_up(Fcfs(), policy, "first_fit"),
        images=images,
    )
    assert env.runs["warm"].tolist() == [0, 0, 0, 1, 0]
    assert env.runs["end_time"].tolist() == [6.0, 1012.0, 2018.0, 3019.0, 3025.0]


def test_the_history_leaves_the_windows_of_the_last_idle_times() -> None:
    """One function became frequent again, the other did not."""
    known = profiles((1.0, 2.0, 1), (1.0, 2.0, 1))
    moments = [(time, 1, 1.0) for time in (-1000.0, -699.0, -398.0)]
    moments += [(time, 0, 1.0) for time in (-1000.0, -699.0, *np.arange(-398.0, -350.0, 6.0))]
    rules = Rules.always_up(Fcfs(), ten_second_bins(10, margin=0.1), "first_fit")
    simulation = Simulation(known, ONE_NODE, rules)
    simulation.learn(trace(known, sorted(moments)))
    assert simulation.state.images["prewarm_after"].tolist() == [0.0, 300.0 * 0.85]
    assert simulation.state.images["keep_until"].tolist() == [11.0, 300.0 * 1.15]
