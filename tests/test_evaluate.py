"""`python evaluate.py` as users run it: its files, repeated, interrupted, swept, with promises."""

import json
import signal
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from agents.baseline import known_baselines
from env.sim.check.validate import violations
from env.sim.episode.episode_file import read_episode
from evaluate import prepared
from evaluation.contest import Contest, Played, Task
from evaluation.results import read_results
from report.digits import exact
from run.command import run
from tests.commands import Command
from tests.env.worlds import TINY
from tests.evaluate_command import (
    BRIEF,
    EVALUATE,
    FILES,
    FREE,
    RULES,
    TRACE,
    ended,
    results_in,
    results_of,
    rows_in,
    run_in,
    told_in,
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder where the command ran as a process of its own, and what it printed."""
    folder = tmp_path_factory.mktemp("elsewhere")
    done = ended([*EVALUATE, *BRIEF], folder)
    assert (done.returncode, done.stderr) == (0, "")
    return folder, done.stdout


def test_the_table_shows_all_policies(finished: tuple[Path, str]) -> None:
    folder, printed = finished
    assert "…" not in printed
    for row in rows_in(folder):
        (line,) = [line for line in printed.splitlines() if line.split()[:1] == [row["policy"]]]
        # Of so few episodes there are no intervals.
        assert exact(row["metrics"]["J"]["mean"]["value"]) in line
        assert exact(row["relative"]["value"], "share", "+") in line


def test_the_files_and_what_they_say_of_the_run(finished: tuple[Path, str]) -> None:
    folder, printed = finished
    results = run_in(folder)
    assert printed.splitlines()[-1] == f"results: {results}"
    events = {path.name for path in results.glob("events.out.tfevents.*")}
    assert len(events) == 1
    assert {path.name for path in results.iterdir()} == {*FILES, *events, ".hydra"}
    table = read_results(results)
    played = set(zip(table["policy"], table["seed"], table["episode"], strict=True))
    assert played == set(product(RULES, [0], range(3))) and len(table) == 3 * len(RULES)
    recorded = {path.name for path in (results / "episodes").iterdir()}
    assert recorded == {f"{policy}_0_0000.json" for policy in RULES}
    run = told_in(folder)
    assert run["command"] == " ".join(["python evaluate.py", *BRIEF])
    assert (run["seeds"], run["episodes"]) == ([0], 3)
    assert (run["scenarios"], run["samples"]) == ({"": {}}, {})
    assert run["config"]["baselines"] == RULES
    assert run["versions"]["numpy"] == np.__version__


def test_an_interrupted_evaluation_goes_on(
    finished: tuple[Path, str], command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = []

    def counted(contest: Contest, task: Task) -> Played:
        if len(played) == 1:
            raise KeyboardInterrupt
        played.append((task.episode, task.policies))
        return play(contest, task)

    play = Contest.play
    monkeypatch.setattr(Contest, "play", counted)
    with pytest.raises(KeyboardInterrupt):
        command(*BRIEF)
    (folder,) = tmp_path.glob("outputs/*/*")
    assert not (folder / "results.parquet").exists()
    # Another episode, or anything else that changes numbers, is refused.
    done = command("objective.time_weight=2", f"resume={folder}")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "resume: objective.time_weight is 2" in done.err
    monkeypatch.setattr(Contest, "play", lambda *it: played.append(it[1].episode) or play(*it))
    assert command(f"resume={folder}").code == 0
    # The first episode is not played again, and nothing is elsewhere.
    assert played == [(0, tuple(RULES)), 1, 2]
    assert run_in(tmp_path) == folder
    pd.testing.assert_frame_equal(results_in(tmp_path), results_in(finished[0]))


def test_a_signal_stops_between_episodes(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(contest: Contest, task: Task) -> Played:
        signal.raise_signal(signal.SIGINT)
        return play(contest, task)

    play = Contest.play
    monkeypatch.setattr(Contest, "play", interrupted)
    monkeypatch.setattr(sys, "argv", ["evaluate.py", *BRIEF])
    with pytest.raises(SystemExit, match="stopped, 3 of 9 episodes are played.* resume=.*outputs"):
        run(prepared, "evaluate")
    (rows,) = tmp_path.glob("outputs/*/*/unfinished.jsonl")
    assert len(rows.read_text().splitlines()) == 3


def test_what_was_assumed_is_printed_and_kept(command: Command, tmp_path: Path) -> None:
    (tmp_path / "w.dax").write_text(
        '<adag><job id="a" name="x" runtime="2"><uses file="f" link="output"/></job>'
        '<job id="b" name="y"><uses file="f" link="input"/></job></adag>'
    )
    done = command(*BRIEF, "workflow=files", "workflow.path=w.dax", "episodes=1")
    assert done.code == 0, done
    text = (
        "workflows: 1; tasks: 2; edges added for a file that is read: 1; "
        "file sizes missing, taken as 0: 1; parallelism drawn: 2; memory drawn: 2; runtime drawn: 1"
    )
    assert f"assumed, {tmp_path}/w.dax: {text}\n" in done.out
    kept = told_in(tmp_path)["assumptions"]
    assert kept[f"{tmp_path}/w.dax"]["text"] == kept["total"]["text"] == text
    assert kept["total"]["counts"]["memory drawn"] == 2
    assert text in (run_in(tmp_path) / "report.html").read_text()


REAL = [
    "wfinstances/blast-chameleon-small-001.json.gz",
    "wfinstances/montage-chameleon-2mass-005d-001.json.gz",
    "wfinstances/srasearch-chameleon-10a-003.json.gz",
    "pegasus_dax/Montage_25.xml.gz",
]


@pytest.mark.long
@pytest.mark.realdata
def test_all_baselines_on_real_workflows(command: Command, tmp_path: Path, data_dir: Path) -> None:
    paths = ",".join(str(data_dir / name) for name in REAL)
    done = command(
        "workflow=files", f"workflow.path=[{paths}]", "workload.arrivals.workflows=[2,3]",
        "baselines=all", "episodes=2", "record=2",
    )  # fmt: skip
    assert done.code == 0, done.err
    found = results_in(tmp_path)
    assert set(found["policy"]) == set(known_baselines()) - {"rollout", "clairvoyant", "best_of"}
    assert set(found["kind"]) == {"baseline"}
    # Neither is below what a schedule can reach; fetching data and cold starts come on top.
    assert (found["slowdown"] > 1).all()
    assert (found["cost_ratio"] >= 1).all()
    for file in tmp_path.glob("outputs/*/*/episodes/*_0_0000.json"):
        assert violations(read_episode(file)) == []


LOADS = "sweep={workload.sampling.ratio: [0.1,0.3]}"
WORDS = [*TRACE, *FREE, "baselines=[fcfs,funcsched]", "seed=[1,2]", "episodes=1"]
COLD = "workload.container_cold_start=2.5"
WORKFLOWS = [*TINY, "baselines=[random,cheapest]", "episodes=2"]


def test_every_scenario_is_played_as_it_is_alone(command: Command, tmp_path: Path) -> None:
    assert command(*WORDS, LOADS, "hydra.run.dir=run").code == 0
    folder = tmp_path / "run"
    found = results_of(folder)
    scenarios = [f"sampling.ratio={ratio}" for ratio in (0.1, 0.3)]
    assert list(zip(found["scenario"], found["seed"], found["policy"], strict=True)) == [
        (scenario, seed, policy)
        for scenario in scenarios
        for seed in (1, 2)
        for policy in ("fcfs", "funcsched")
    ]
    run = json.loads((folder / "run.json").read_text())
    ratios = {name: point["workload.sampling.ratio"] for name, point in run["scenarios"].items()}
    assert ratios == dict(zip(scenarios, (0.1, 0.3), strict=True))
    for name, ratio in ratios.items():
        assert f"of which a share of {ratio:g} keeps" in run["samples"][name]
    assert (run["seeds"], run["players_sha256"], run["assumptions"]) == ([1, 2], {}, {})
    # Nothing is recorded where something is swept.
    assert not (folder / "episodes").exists()
    assert command(*WORDS, "workload.sampling.ratio=0.3", "record=0").code == 0
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


SWEEP = "sweep={cluster.server_types.small.server_count: [1,4]}"
# No large server, and so much at once that one small one is not enough.
BUSY = [
    *TINY,
    "cluster.server_types.large.server_count=0",
    "workload.arrivals.mean_gap=1",
    "workload.arrivals.workflows=[20,20]",
    "baselines=[round_robin,earliest_finish]",
    "episodes=8",
]


def test_how_many_servers_a_promise_needs(command: Command, tmp_path: Path) -> None:
    """The bound is between what one and what four servers come to, whoever places."""
    assert command(*BUSY, SWEEP, 'keep={slowdown_p95: "<1e9"}').code == 0
    found = json.loads((run_in(tmp_path) / "promise.json").read_text())["rows"]
    means = {(row["scenario"], row["policy"]): row["means"][0] for row in found}
    few, many = ([mean for (where, _), mean in means.items() if f"={n}" in where] for n in (1, 4))
    low, high = max(mean["ci_high"] for mean in many), min(mean["ci_low"] for mean in few)
    assert low < high
    (tmp_path / "outputs").rename(tmp_path / "before")
    done = command(*BUSY, SWEEP, f'keep={{slowdown_p95: "<{(low + high) / 2}"}}', "minimise=rent")
    assert done.code == 0, done.err
    assert "with small.server_count=4" in done.out
    assert "2 surely keep it, 2 surely do not" in done.out
    best = json.loads((run_in(tmp_path) / "promise.json").read_text())["best"]
    rents = [row["spent"]["value"] for row in found if row["scenario"].endswith("=4")]
    assert best["spent"]["value"] == min(rents)


def test_promises_may_change_when_an_evaluation_goes_on(command: Command, tmp_path: Path) -> None:
    assert command(*BRIEF, 'keep={slowdown: "<0"}').code == 0
    done = command(*BRIEF, 'keep={slowdown: ">0"}', f"resume={run_in(tmp_path)}")
    assert done.code == 0 and "Cheapest that surely keeps slowdown > 0" in done.out
