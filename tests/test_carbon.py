"""The experiments of conf/experiment/carbon_* that evaluate: each runs, their directions hold."""

from pathlib import Path

import pytest

from evaluate import prepared
from run.command import CONF
from tests.commands import InProcess
from tests.env.worlds import write_carbon
from tests.evaluate_command import results_in

EXPERIMENTS = sorted(
    path.stem
    for path in (CONF / "experiment").glob("carbon_*.yaml")
    if "\nbaselines:" in path.read_text()  # others train, tests/test_train.py
)
FIXTURE = Path(__file__).parent / "env" / "workloads" / "fixtures" / "photo.json"
BRIEF = {"carbon_wfinstances": [f"workflow.path={FIXTURE}"]}
"""What a user has to name."""


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_an_experiment_runs(
    in_process: InProcess, experiment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARBON", str(tmp_path))
    write_carbon(tmp_path, 2024)
    brief = ["workload.arrivals.workflows=[4,4]", "episodes=1", *BRIEF.get(experiment, [])]
    done = in_process("evaluate", prepared)(f"experiment={experiment}", *brief)
    assert done.code == 0, done.err
    carbon = results_in(tmp_path).groupby("policy")["carbon"].sum()
    if "home" in carbon:
        assert carbon["greedy_carbon"] < carbon["home"]
    else:
        assert set(carbon.index) == {"heft", "fcfs", "cap", "pcaps"}
