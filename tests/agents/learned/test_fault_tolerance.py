"""Runners that are lost: the run goes on with those that are left, and ends without any."""

from pathlib import Path

import pytest
import ray

from agents.learned.checkpoint import RunState, save_checkpoint
from agents.learned.fault_tolerance import RunnersLost
from agents.learned.run_log import env_steps_of
from tests.agents.learned.conftest import Started
from tests.agents.learned.test_training import PPO_SETTINGS


@pytest.mark.long
def test_a_run_goes_on_with_the_runners_left_and_ends_without_any(
    started: Started, tmp_path: Path
) -> None:
    given = {"num_env_runners": 2, "restart_failed_runners": True, "wait_for_runners": 0.03}
    algorithm = started(PPO_SETTINGS, {"layout": "placer"}, **given)
    first, second = algorithm.env_runner_group._worker_manager._actors.values()
    # As when the machine is gone: Ray has nowhere to start another.
    ray.kill(first, no_restart=True)
    result = algorithm.train()
    assert result["fault_tolerance"]["num_healthy_workers"] == 1
    assert env_steps_of(result) >= 640
    ray.kill(second, no_restart=True)
    assert env_steps_of(algorithm.train()) == 0
    with pytest.raises(RunnersLost, match="all 2 runners are lost"):
        algorithm.train()
    # What was learned can still be saved.
    save_checkpoint(algorithm, tmp_path, RunState(), {}, keep=1)
