"""Carbon of an episode, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from env.metrics import episode_metrics
from env.reward import Objective
from env.sim.cluster import ClusterConfig, ServerType
from env.sim.errors import InputError
from env.sim.power import Power
from env.sim.raw_env import RawEnv
from env.sim.workflow import WorkflowTemplate

POWER = Power(idle_core=1.0, busy_core=5.0, memory=0.5, pue=1.2, carbon_intensity=500.0)
CLUSTER = ClusterConfig(
    1_000,
    1e9,
    1e9,
    1e9,
    (
        ServerType("slow", 1, 0.1, 0.0, 2, 2, 4096),
        ServerType("fast", 1, 0.3, 0.0, 1, 4, 2048, single_core_speed=2_000),
        ServerType("never", 3, 0.3, 0.0, 1, 64, 2048),
    ),
    POWER,
)
SINGLE = WorkflowTemplate(
    "single",
    computation=np.array([7_200_000]),  # two core-hours at 1,000 operations a second
    memory_req=np.array([1024]),
    parallelism=np.array([2]),
    edges=np.empty((0, 2), np.int64),
    data_bytes=np.empty(0, np.int64),
)


def carbon(cluster: ClusterConfig) -> float:
    """Of an episode with one workflow on the second node of `slow`, a later one on `fast`."""
    env = RawEnv([50.0, 0.0], [SINGLE, SINGLE], cluster)
    env.step("slow", 0, 1, 1024)
    env.step("fast", 0, 0, 1024)
    assert env.done
    return episode_metrics(env.state, Objective(time_weight=1, cost_weight=1))["carbon"]


def test_it_is_that_of_leased_servers_and_of_their_work() -> None:
    """`slow` is leased for 1 hour: 4 cores and 8 GB at rest are 8 W, 2 core-hours add 8 Wh.

    `fast` is leased for 1 hour: 4 cores and 2 GB are 5 W; at twice the speed 1 core-hour adds 4 Wh.
    """
    kwh = (8.0 + 8.0 + 5.0 + 4.0) / 1000
    assert carbon(CLUSTER) == pytest.approx(kwh * 1.2 * 500.0, rel=1e-12)


def test_it_is_not_known_without_power() -> None:
    assert np.isnan(carbon(replace(CLUSTER, power=None)))


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("idle_core", -1.0, "at least 0"),
        ("busy_core", 0.9, "at least 1"),
        ("pue", 0.99, "at least 1"),
        ("carbon_intensity", float("nan"), "at least 0"),
    ],
)
def test_values_out_of_range_are_refused(field: str, value: float, allowed: str) -> None:
    with pytest.raises(InputError, match=rf"^cluster: power: {field} is {value}, .*{allowed} "):
        replace(POWER, **{field: value})
