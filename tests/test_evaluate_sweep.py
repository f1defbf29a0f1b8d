"""`python evaluate.py` with traces and sweeps."""

import json
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from tests.commands import Command
from tests.env.worlds import TINY
from tests.evaluate_command import (
    EVALUATE,
    FREE,
    TRACE,
    results_in,
    results_of,
)

LOADS = "sweep={workload.sampling.ratio: [0.1,0.3]}"
WORDS = [*TRACE, *FREE, LOADS, "baselines=[fcfs,funcsched]", "seed=[1,2]", "episodes=1"]
COLD = "workload.container_cold_start=2.5"
WORKFLOWS = [*TINY, "baselines=[random,cheapest]", "episodes=2"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished evaluation of WORDS, in a process of its own."""
    folder = tmp_path_factory.mktemp("finished")
    told = [*EVALUATE, *WORDS, "hydra.run.dir=run"]
    subprocess.run(told, cwd=folder, check=True, capture_output=True, timeout=600)
    return folder / "run"


def test_every_scenario_is_played(finished: Path) -> None:
    found = results_of(finished)
    scenarios = [f"sampling.ratio={ratio}" for ratio in (0.1, 0.3)]
    assert list(zip(found["scenario"], found["seed"], found["policy"], strict=True)) == [
        (scenario, seed, policy)
        for scenario in scenarios
        for seed in (1, 2)
        for policy in ("fcfs", "funcsched")
    ]
    run = json.loads((finished / "run.json").read_text())
    ratios = {name: point["workload.sampling.ratio"] for name, point in run["scenarios"].items()}
    assert ratios == dict(zip(scenarios, (0.1, 0.3), strict=True))
    for name, ratio in ratios.items():
        assert f"of which a share of {ratio:g} keeps" in run["samples"][name]
    assert (run["seeds"], run["players_sha256"], run["assumptions"]) == ([1, 2], {}, {})
    # Nothing is recorded where something is swept.
    assert not (finished / "episodes").exists()


def test_a_scenario_alone_has_the_same_numbers(
    finished: Path, command: Command, tmp_path: Path
) -> None:
    alone = [word for word in WORDS if word != LOADS]
    assert command(*alone, "workload.sampling.ratio=0.3", "record=0").code == 0
    found = results_of(finished)
    same = found[found["scenario"] == "sampling.ratio=0.3"].reset_index(drop=True)
    pd.testing.assert_frame_equal(results_in(tmp_path).assign(scenario=same["scenario"]), same)


def test_schedulers_meet_the_same_workflows_in_every_scenario(
    command: Command, tmp_path: Path
) -> None:
    told = "sweep={lease: [hourly,always], keep_alive: [none,lru]}", COLD
    assert command(*WORKFLOWS, *told).code == 0
    found = results_in(tmp_path)
    assert found["scenario"].nunique() == 4
    assert (found.groupby("episode")["decisions"].nunique() == 1).all()
    free = found["scenario"].str.startswith("lease=always")
    assert (found.loc[free, "rent"] == 0).all() and (found.loc[~free, "rent"] > 0).all()
