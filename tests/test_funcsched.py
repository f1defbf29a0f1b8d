"""The experiments of conf/experiment/funcsched_*: each runs, and their directions hold."""

from pathlib import Path

import pandas as pd
import pytest

from run.command import CONF
from tests.commands import Command
from tests.evaluate_command import TRACE, results_in, told_in

EXPERIMENTS = sorted(path.stem for path in (CONF / "experiment").glob("funcsched_*.yaml"))
FILE = Path(__file__).parent / "env" / "workloads" / "fixtures" / "photo.json"
GROUPS = ("cluster", "workload", "workload/annotation")
RATIOS = "workload.sampling.ratio: [0.1,1.0]"
# Loads of the experiments that sweep them, fewer than they have.
SWEPT = {
    "funcsched_keep_alive": f"sweep.{RATIOS.replace(': ', '=')}",
    "funcsched_orders": f"sweep.{RATIOS.replace(': ', '=')}",
    "funcsched_load": f"sweep=[{{workload/sampling: [week_representative,week_random], {RATIOS}}},"
    f"{{workload/sampling: [week_rare], {RATIOS}}}]",
}
SCENARIOS = {
    "funcsched_distribution": 1,
    "funcsched_keep_alive": 3 * 2,
    "funcsched_load": 3 * 2,
    "funcsched_orders": 2,
    "funcsched_parts": 3,
    "funcsched_workflows": 1,
}


def words(experiment: str, *overrides: str) -> list[str]:
    """What to type so that it plays in a moment."""
    brief = [f"experiment={experiment}", "seed=[1,2]"]
    if experiment == "funcsched_workflows":
        return [*brief, f"workflow.path={FILE}", "episodes=1", *overrides]
    # The groups are the experiment's own.
    small = [word for word in TRACE if word.partition("=")[0] not in GROUPS]
    swept = [SWEPT[experiment]] if experiment in SWEPT else []
    return [*brief, *small, *swept, *overrides]


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_experiment_is_played(experiment: str, command: Command, tmp_path: Path) -> None:
    done = command(*words(experiment))
    assert done.code == 0, done.err
    run, found = told_in(tmp_path), results_in(tmp_path)
    players = run["config"]["baselines"]
    assert set(found["policy"]) == set(players)
    assert len(run["scenarios"]) == SCENARIOS[experiment]
    assert len(found) == len(run["scenarios"]) * len(players) * 2
    config = run["config"]
    assert (config["dispatch"]["kind"], config["lease"]["kind"]) == ("queued", "always")
    assert (found["rent"] == 0).all() and (found["cold_starts"] == 0).all()
    assert (found["J"] == found["completion"]).all()  # nothing else counts
    assert found["flow_time"].notna().all() and (found["late"] <= 1).all()
    if experiment == "funcsched_orders":
        check_orders(found)


def check_orders(found: pd.DataFrame) -> None:
    """FuncSched beats FCFS where memory is short; at a tenth of the load they hardly differ."""
    ratio = found["scenario"].str.partition("=")[2].astype(float)
    rows = found.assign(ratio=ratio).groupby(["ratio", "policy"]).mean(numeric_only=True)
    busy, idle = rows.loc[(1.0, "fcfs")], rows.loc[(0.1, "fcfs")]
    funcsched = rows.loc[(1.0, "funcsched")]
    assert busy["queueing"] > 10 > 1 > idle["queueing"]
    assert funcsched["flow_time"] < 0.7 * busy["flow_time"]
    assert funcsched["completion"] < 0.7 * busy["completion"]
    assert funcsched["queueing"] < 0.5 * busy["queueing"]
    assert rows.loc[(1.0, "rr"), "container_start"] > busy["container_start"]
    assert rows.loc[(1.0, "rr"), "preemptions"] > 1 > 0 == busy["preemptions"]
    assert rows.loc[(0.1, "funcsched"), "flow_time"] == pytest.approx(idle["flow_time"], rel=0.2)
