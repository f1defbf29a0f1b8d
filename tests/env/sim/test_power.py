"""Carbon of an episode, by hand."""

import numpy as np
import pytest

from env.base.errors import InputError
from env.base.schema import validated
from env.score.metrics import episode_metrics
from env.score.reward import Objective
from env.sim.declared.hardware import ServerType
from env.sim.declared.power import Power
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.view.raw_env import RawEnv
from tests.env import small
from tests.env.sim.test_ledger import POWER

CLUSTER = small.cluster_of(
    ServerType("slow", 1, 0.1, 0.0, 2, 2, 4096),
    ServerType("fast", 1, 0.3, 0.0, 1, 4, 2048, single_core_speed=2_000),
    ServerType("never", 3, 0.3, 0.0, 1, 64, 2048),
    power=POWER,
)
HOUR = 3_600_000
"""Operations of an hour of a core of 1,000 operations a second."""


def chain(*core_hours: float) -> WorkflowTemplate:
    """Functions of two threads, one after another, without data."""
    return small.chain(*(round(HOUR * hours) for hours in core_hours), memory=1024, threads=2)


def test_it_is_that_of_leased_servers_and_of_their_work() -> None:
    """`slow` runs 2, 1 and 0.5 core-hours on two cores, one after another, so 1.75 h: leased for 2.

    4 cores and 8 GB at rest are 8 W, so 16 Wh; a core-hour of work adds 4 Wh, so 14 Wh. `fast` does
    what takes 4 core-hours elsewhere in 2, on two cores in 1 h: 4 cores and 2 GB are 5 W, so 5 Wh
    and 8 Wh.
    """
    # Numbered by their order here, which is not that of their arrival.
    env = RawEnv([50.0, 0.0], [chain(4.0), chain(2.0, 1.0, 0.5)], CLUSTER)
    while not env.done:
        place = ("slow", 0, 1) if env.current_function.wf_id == 1 else ("fast", 0, 0)
        env.step(*place, 1024)
    metrics = episode_metrics(env.state, Objective(time_weight=1, cost_weight=1), POWER)
    assert metrics["rent"] == pytest.approx(2 * 0.1 + 0.3)
    assert metrics["carbon"] == pytest.approx((16 + 14 + 5 + 8) / 1000 * 1.2 * 500, rel=1e-12)


def test_it_is_not_known_without_power() -> None:
    env = RawEnv([0.0], [chain(1.0)], CLUSTER)
    env.step("slow", 0, 0, 1024)
    assert np.isnan(episode_metrics(env.state, Objective(time_weight=1, cost_weight=1))["carbon"])


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("busy_core_w", 0.9, "power: busy_core_w is 0.9, at least idle_core_w, 1.0, is needed"),
        ("carbon_intensity_g_per_kwh", float("nan"), "power: carbon_intensity_g_per_kwh: "),
    ],
)
def test_values_out_of_range_are_refused(key: str, value: float, message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        validated(Power, POWER.model_dump() | {key: value}, "power")
