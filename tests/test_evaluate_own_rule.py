"""`python evaluate.py` with a rule of the user's own: played, repeated, continued."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from agents.own_rule import RuleCode, row_names
from evaluate import check, evaluate
from evaluation.contest import Contest
from run.command import PROJECT
from tests.commands import Command, InProcess
from tests.env.worlds import TINY
from tests.evaluate_command import interrupted, results_in, results_of, run_in, told_in
from tests.own_rules import RULE, TOLD


@pytest.fixture
def command(in_process: InProcess, tmp_path: Path) -> Command:
    (tmp_path / "my_rules.py").write_text(RULE)
    return in_process("evaluate", evaluate, check)


def test_a_class_of_ones_own_plays(command: Command, tmp_path: Path) -> None:
    """One that takes the first node, as the baseline does where nobody waits."""
    assert command(*TOLD, "baselines=[my_rules.py:MyRule,random]").code == 0
    found = results_in(tmp_path)
    assert list(found["policy"].unique()) == ["MyRule", "random"]
    assert set(found["kind"]) == {"baseline"}
    digest = hashlib.sha256(RULE.encode()).hexdigest()
    assert told_in(tmp_path)["players_sha256"] == {"MyRule": digest}
    assert (run_in(tmp_path) / "episodes" / "MyRule_0_0000.json").exists()
    assert "MyRule" in (run_in(tmp_path) / "summary.md").read_text()


def test_a_class_of_ones_own_gives_workflows_tickets(command: Command, tmp_path: Path) -> None:
    world = ["workload=tickets", "dispatch=queued", "lease=always", "workload.arrivals.mean_gap=2"]
    told = [*TOLD, *world, "baselines=[my_rules.py:Generous,stride_workflows]"]
    done = command(*told)
    assert done.code == 0, done.err
    (file,) = run_in(tmp_path).glob("episodes/Generous_0_0000.json")
    workflows = json.loads(file.read_text())["workflows"]
    assert [each["tickets"] for each in workflows] == [1.0 + i % 3 for i in range(len(workflows))]
    assert results_in(tmp_path).groupby("policy")["J"].mean().nunique() == 2

    refused = command(*TOLD, *world, "baselines=[my_rules.py:Stingy]")
    assert refused.code == 2 and "tickets: 0, numbers of 1e-09 to 1e+12 are allowed" in refused.err


def test_parameters_tell_two_of_a_class_apart(command: Command, tmp_path: Path) -> None:
    told = "baselines=[{class: my_rules.py:MyRule, node: 3},my_rules.py:MyRule]"
    assert command(*TOLD, told).code == 0
    found = results_in(tmp_path)
    J = found.groupby("policy")["J"].mean()
    assert set(J.index) == {"MyRule(node=3)", "MyRule"} and J.nunique() == 2
    (tmp_path / "outputs").rename(tmp_path / "before")
    assert command(*TOLD, "baselines=[{class: my_rules.py:MyRule, node: 3}]").code == 0
    alone = results_in(tmp_path)
    assert alone["J"].tolist() == found.loc[found["policy"] == "MyRule(node=3)", "J"].tolist()
    assert set(alone["policy"]) == {"MyRule"}


@pytest.mark.parametrize(
    ("parameters", "names"),
    [
        (({"a": 1}, {"a": True}, {"a": 1.0}), ["Ok(a=1)", "Ok(a=true)", "Ok(a=1.0)"]),
        (({"a": None}, {}), ["Ok(a=null)", "Ok"]),
        (({"a": 1}, {"a": "1"}, {"a": "b"}), ["Ok(a=1)", 'Ok(a="1")', "Ok(a=b)"]),
        (({"a": [0]}, {"a": [False]}), ["Ok(a=[0])", "Ok(a=[false])"]),
        (({"a": 1, "b": 2}, {"b": 2, "a": 1}), ["Ok", "Ok"]),
    ],
)
def test_parameters_differ_by_type_and_presence(
    parameters: tuple[dict[str, Any], ...], names: list[str]
) -> None:
    assert row_names([RuleCode("odd.py", "Ok", each) for each in parameters]) == names


def test_it_plays_in_several_processes_and_scenarios(command: Command, tmp_path: Path) -> None:
    told = [
        *TINY,
        "episodes=2",
        "sweep={lease.step: [60,3600]}",
        "baselines=[{class: my_rules.py:MyRule, node: 3},cheapest]",
    ]
    assert command(*told, "hydra.run.dir=alone").code == 0
    done = command(*told, "workers=2", "hydra.run.dir=both")
    assert done.code == 0, done.err
    alone, both = results_of(tmp_path / "alone"), results_of(tmp_path / "both")
    pd.testing.assert_frame_equal(alone, both)
    assert alone["scenario"].nunique() == 2


def test_a_changed_file_is_not_gone_on_with(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = [*TOLD, "baselines=[my_rules.py:MyRule]"]
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Contest, "play", interrupted(Contest.play))
        command(*told)
    (folder,) = tmp_path.glob("outputs/*/*")
    (tmp_path / "my_rules.py").write_text(RULE + "# another\n")
    done = command(*told, f"resume={folder}")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "resume: players_sha256.MyRule is " in done.err
    (tmp_path / "my_rules.py").write_text(RULE)
    assert command(*told, f"resume={folder}").code == 0
    assert len(results_in(tmp_path)) == 2


def test_who_waits_goes_in_an_order_of_ones_own(command: Command, tmp_path: Path) -> None:
    told = [*TINY, "episodes=2", "record=0", "dispatch=queued"]
    crowded = "cluster.server_types.small.memory_mb_per_numa_node=2048"
    players = "baselines=[my_rules.py:LastFirst,my_rules.py:MyRule]"
    done = command(*told, crowded, "cluster.server_types.large.server_count=0", players)
    assert done.code == 0, done.err
    found = results_in(tmp_path).pivot(index="episode", columns="policy", values="flow_time")
    assert (found["LastFirst"] != found["MyRule"]).any()


def test_classes_of_one_name_are_told_apart_by_file(command: Command, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    for place in ("old/my_rules.py", "mine.py"):
        (tmp_path / place).write_text(RULE)
    files = "my_rules.py:MyRule,old/my_rules.py:MyRule,{class: mine.py:MyRule, node: 3}"
    assert command(*TOLD, f"baselines=[{files}]").code == 0
    assert list(results_in(tmp_path)["policy"].unique()) == [
        f"{tmp_path.name}_my_rules.py:MyRule",
        "old_my_rules.py:MyRule",
        "mine.py:MyRule",
    ]


def test_the_class_that_the_docs_teach(command: Command, tmp_path: Path) -> None:
    page = (PROJECT / "docs" / "scheduler.md").read_text()
    (tmp_path / "my_rules.py").write_text(
        page.partition("```python\n# my_rules.py\n")[2].partition("```")[0]
    )
    done = command(*TOLD, "baselines=[my_rules.py:CheapestInTime,greedy_per_core]")
    assert done.code == 0, done.err
    rows = json.loads((run_in(tmp_path) / "summary.json").read_text())["policies"]
    assert {row["policy"] for row in rows} == {"CheapestInTime", "greedy_per_core"}
