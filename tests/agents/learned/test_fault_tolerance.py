"""Runners that are lost: told, left out, waited for, but not for ever."""

import math
from pathlib import Path

import pytest
import ray

from agents.learned.checkpoint import RunState, save_checkpoint
from agents.learned.fault_tolerance import RunnersLost
from agents.learned.run_log import RunLog, env_steps_of
from tests.agents.learned.test_training import make_algorithm


@pytest.mark.long
def test_a_run_goes_on_with_the_runners_left_and_ends_without_any(toy: str, tmp_path: Path) -> None:
    algorithm = make_algorithm(
        toy,
        {"layout": "placer"},
        num_env_runners=2,
        restart_failed_runners=True,
        wait_for_runners=0.03,
    )
    try:
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
    finally:
        algorithm.stop()


def test_what_becomes_of_runners_is_told(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    with RunLog(tmp_path, ["placer"], runners=4, state=RunState()) as log:
        for runners, timed_out in ((4, 0), (2, 0), (2, 0), (4, 0), (4, 1)):
            measures = {
                "env_steps_per_s": 1.0,
                "runners": float(runners),
                "runners_timed_out": float(timed_out),
            }
            log.write(measures, RunState(), progress=math.nan)
    told = [line for line in capsys.readouterr().out.splitlines() if "runners" in line]
    assert told == [
        "2 of 4 runners lost, going on with 2",
        "all 4 runners are there again",
        "1 runners did not answer in time",
    ]
