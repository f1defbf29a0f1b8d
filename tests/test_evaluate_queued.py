"""`python evaluate.py dispatch=queued`: interrupted, continued, on several processes."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from evaluate import check, evaluate
from evaluation.queued_evaluation import CaseRow, QueuedEvaluation, Task
from evaluation.results import read_results
from run.command import PROJECT, run
from tests.agents.learned.test_queue_order import save_untrained
from tests.commands import Command, InProcess
from tests.env.learn.test_queue_places import PLACED
from tests.test_funcsched import words

WORDS = words("funcsched_distribution")
TASKS = 2 * 2 * 2
"""Orders, ratios, seeds."""


@pytest.fixture
def command(in_process: InProcess) -> Command:
    return in_process("evaluate", evaluate, check)


@pytest.fixture(scope="module")
def untrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy of the agents `queue` and `placer`."""
    folder = tmp_path_factory.mktemp("untrained") / "policy"
    save_untrained(folder, PLACED, "agents=placer")
    return folder


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished evaluation of WORDS, in a process of its own."""
    folder = tmp_path_factory.mktemp("finished")
    told = [sys.executable, PROJECT / "evaluate.py", *WORDS, "hydra.run.dir=run"]
    subprocess.run(told, cwd=folder, check=True, capture_output=True, timeout=600)
    return folder / "run"


def only_run(folder: Path) -> Path:
    (found,) = folder.glob("outputs/*/*")
    return found


def test_an_interrupted_evaluation_goes_on(
    command: Command, untrained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[Task] = []

    def counted(evaluation: QueuedEvaluation, task: Task) -> CaseRow:
        if len(played) == 3:
            raise KeyboardInterrupt
        played.append(task)
        return play(evaluation, task)

    play = QueuedEvaluation.play
    monkeypatch.setattr(QueuedEvaluation, "play", counted)
    with pytest.raises(KeyboardInterrupt):
        command(*WORDS)
    folder = only_run(tmp_path)
    assert not (folder / "results.parquet").exists()
    # What changes numbers, or who plays, is refused.
    for changed, says in (
        ("dispatch.late=50", "resume: dispatch.late is 50"),
        ("trace.source.seed=7", "resume: trace.source.seed is 7"),
        (f"policy={untrained}", "resume: policy is "),
    ):
        done = command(*WORDS, changed, f"resume={folder}")
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert says in done.err
    monkeypatch.setattr(QueuedEvaluation, "play", lambda *it: played.append(it[1]) or play(*it))
    assert command(*WORDS, f"resume={folder}").code == 0
    # Nothing is played twice, and nothing is elsewhere.
    assert len(played) == len(set(played)) == TASKS
    monkeypatch.setattr(QueuedEvaluation, "play", play)
    assert command(*WORDS, "hydra.run.dir=whole").code == 0
    pd.testing.assert_frame_equal(read_results(folder), read_results(tmp_path / "whole"))


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"order": "foo"}, "has a row of (Case("),
        ({"seed": 9}, "has a row of (Case("),
        ({"completion_quantiles": [1.0]}, "completion_quantiles: "),
        ({"metrics": {"completion": 0.0}}, "completion is 0.0, allowed: finite and above 0"),
    ],
)
def test_rows_of_something_else_are_not_gone_on_with(
    changed: dict[str, object], says: str, finished: Path, command: Command, tmp_path: Path
) -> None:
    """Neither from the file of rows nor from the finished results, and nothing is written."""
    rows = pq.read_table(finished / "results.parquet").to_pylist()
    names = ("sample", "ratio", "keep_alive", "order", "seed", "completion_quantiles")
    row = {name: rows[0][name] for name in names}
    row["metrics"] = {name: cell for name, cell in rows[0].items() if name not in names}
    whole = {**row, **changed}
    if "metrics" in changed:
        whole["metrics"] = {**row["metrics"], "completion": 0.0}
    folder = tmp_path / "copy"
    shutil.copytree(finished, folder)
    (folder / "results.parquet").unlink()
    (folder / "unfinished.jsonl").write_text(json.dumps(whole) + "\n")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    done = command(*WORDS, f"resume={folder}")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert says in done.err
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    shutil.copy(finished / "results.parquet", folder)
    (folder / "unfinished.jsonl").unlink()
    table = pd.read_parquet(folder / "results.parquet")
    for name, cell in changed.items():
        if name == "metrics":
            table.loc[0, "completion"] = 0.0
        else:
            table.at[0, name] = cell
    table.to_parquet(folder / "results.parquet")
    done = command(*WORDS, f"resume={folder}")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert says in done.err


RATIOS = "dispatch.samples.representative.ratios"


@pytest.mark.parametrize(
    ("override", "says"),
    [
        (f"{RATIOS}=[0.5,0.5000001]", "is given twice"),
        ("dispatch.slo=[2,2]", "is given twice"),
        (f"{RATIOS}=[1e-9]", "nothing arrives at ratio 1e-09 with seed 1, a higher ratio"),
    ],
)
def test_what_cannot_be_played_gets_one_line(override: str, says: str, command: Command) -> None:
    words = [word for word in WORDS if not word.startswith(override.split("=")[0])]
    done = command(*words, override)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert says in done.err


def test_a_policy_that_has_been_replaced_is_not_gone_on_with(
    command: Command, untrained: Path, tmp_path: Path
) -> None:
    shutil.copytree(untrained, tmp_path / "policy")
    policy = f"policy={tmp_path / 'policy'}"
    assert command(*WORDS, policy).code == 0
    description = tmp_path / "policy" / "policy.json"
    description.write_text(description.read_text() + "\n")
    done = command(*WORDS, policy, f"resume={only_run(tmp_path)}")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "resume: policy_sha256 is " in done.err


def test_a_signal_stops_between_cases(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(evaluation: QueuedEvaluation, task: Task) -> CaseRow:
        signal.raise_signal(signal.SIGINT)
        return play(evaluation, task)

    play = QueuedEvaluation.play
    monkeypatch.setattr(QueuedEvaluation, "play", interrupted)
    monkeypatch.setattr(sys, "argv", ["evaluate.py", *WORDS])
    with pytest.raises(SystemExit, match=f"stopped, 1 of {TASKS} cases are played.* resume="):
        run(evaluate, "evaluate", check)
    rows = only_run(tmp_path) / "unfinished.jsonl"
    assert len(rows.read_text().splitlines()) == 1


def test_processes_change_no_number(command: Command, untrained: Path, tmp_path: Path) -> None:
    """With a policy, whose sums could come out otherwise."""
    policy = f"policy={untrained}"
    assert command(*WORDS, policy, "hydra.run.dir=one").code == 0
    assert command(*WORDS, policy, "workers=2", "hydra.run.dir=two").code == 0
    one, two = (read_results(tmp_path / name) for name in ("one", "two"))
    assert set(one["order"]) == {"fcfs", "funcsched", "learned"}
    pd.testing.assert_frame_equal(one, two)


def test_what_was_run(command: Command, tmp_path: Path) -> None:
    def told(name: str, *overrides: str) -> dict[str, Any]:
        assert command(*WORDS, *overrides, f"hydra.run.dir={name}").code == 0
        found: dict[str, Any] = json.loads((tmp_path / name / "run.json").read_text())
        return found

    plain = told("plain")
    assert plain["command"].startswith("python evaluate.py experiment=funcsched_distribution")
    assert (plain["seeds"], plain["policy_sha256"]) == ([1, 2], None)
    assert plain["samples"].keys() == {"representative"}
    # The hash is of what arrives, not of who plays.
    assert told("orders", "dispatch.orders=[sjf]")["workload_sha256"] == plain["workload_sha256"]
    for name, changed in (("source", "trace.source.seed=7"), ("seeds", "dispatch.seeds=[1,3]")):
        assert told(name, changed)["workload_sha256"] != plain["workload_sha256"]
