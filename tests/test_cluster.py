"""Training on a Ray cluster of two nodes on one machine: nodes and the driver are killed."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ray.cluster_utils import Cluster

from agents.learned.checkpoint import find_checkpoint
from tests.test_train import BRIEF, TRAIN, rows_of, runs_in

TIMEOUT = 600
ON_BOTH = [*BRIEF, "ray=cluster", "ray.num_env_runners=2", "ray.envs_per_runner=2"]


NODE = {"num_cpus": 1, "include_dashboard": False}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A head with one core; tests add nodes of one core, so that each holds one runner."""
    cluster = Cluster(initialize_head=True, head_node_args=NODE)
    yield cluster
    cluster.shutdown()


class Training:
    """`python train.py` on a cluster, in a process of its own."""

    def __init__(self, cluster: Cluster, folder: Path, *overrides: str) -> None:
        self.folder = folder
        self._output = (folder / "output.txt").open("a+")
        self._process = subprocess.Popen(
            [*TRAIN, *ON_BOTH, f"ray.address='{cluster.address}'", *overrides],
            cwd=folder,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )

    def told(self) -> str:
        """What it has printed."""
        return Path(self._output.name).read_text()

    def iterations(self) -> int:
        """How many it has done."""
        runs = runs_in(self.folder)
        return len(rows_of(runs[-1])) if runs else 0

    def wait_until(self, happened: Callable[[], bool]) -> None:
        """Waits for a condition; a training that ends before, or a time-out, fails the test."""
        deadline = time.monotonic() + TIMEOUT
        while not happened():
            assert self._process.poll() is None, self.told()
            assert time.monotonic() < deadline, self.told()
            time.sleep(0.2)

    def end(self) -> int:
        """Waits for its end; its exit code."""
        return self._process.wait(TIMEOUT)

    def kill(self) -> None:
        """SIGKILL."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._output.close()


@pytest.mark.long
def test_a_node_is_killed_then_the_driver_and_the_run_is_resumed(
    cluster: Cluster, tmp_path: Path
) -> None:
    node = cluster.add_node(**NODE)
    saving = "checkpoint.every_minutes=0.001"
    training = Training(cluster, tmp_path, saving, "budget.iterations=1000")
    try:
        training.wait_until(lambda: training.iterations() >= 2)
        cluster.remove_node(node, allow_graceful=False)  # SIGKILL
        training.wait_until(lambda: "1 of 2 runners lost, going on with 1" in training.told())
        done = training.iterations()
        training.wait_until(lambda: training.iterations() >= done + 2)
    finally:
        training.kill()

    (run,) = runs_in(tmp_path)
    before = rows_of(run)
    assert {float(row["runners"]) for row in before} == {1.0, 2.0}
    state = json.loads((find_checkpoint(run) / "run.json").read_text())["state"]
    assert state["iteration"] >= len(before) - 1

    # One core is left.
    goal = state["iteration"] + 1
    resumed = Training(
        cluster, tmp_path, f"resume={run}", f"budget.iterations={goal}", "ray.num_env_runners=1"
    )
    try:
        assert resumed.end() == 0, resumed.told()
    finally:
        resumed.kill()
    assert runs_in(tmp_path) == [run]
    *_, row = rows_of(run)
    assert int(row["iteration"]) == goal
    assert int(row["env_steps"]) > state["env_steps"]
