"""`python evaluate.py` with a rule of the user's own: played, repeated, continued."""

import hashlib
import json
from pathlib import Path

import pandas as pd
import pytest

from evaluation.contest import Contest
from run.command import PROJECT
from tests.commands import Command
from tests.env.worlds import TINY
from tests.evaluate_command import interrupted, results_in, results_of, run_in, told_in

RULE = """
from dataclasses import dataclass
from pathlib import Path

from agents.order.chosen import Chosen
from env.learn.tenant_agents import TenantAgents


@dataclass
class MyRule:
    node: "int" = 0

    def reset(self, env, objective, seed):
        if Path("mood").exists():
            raise RuntimeError("in a mood")

    def choose(self, decision):
        nodes = decision.rows["feasible"].nonzero()[0]
        return int(nodes[min(self.node, len(nodes) - 1)])


class LastFirst(MyRule):
    order = Chosen()

    def choose(self, decision):
        if decision.kind == "choose":
            return int(decision.rows["declared"].argmax())
        return super().choose(decision)


class Generous(MyRule):
    fit = "worst_fit"
    order = TenantAgents(levels=(1.0, 2.0, 3.0), mechanism="stride", placement="worst_fit")

    def choose(self, decision):
        return decision.env.newcomer % 3
"""
TOLD = [*TINY, "episodes=2", "record=1"]


@pytest.fixture(autouse=True)
def rules(tmp_path: Path) -> None:
    (tmp_path / "my_rules.py").write_text(RULE)


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


def test_who_waits_goes_in_an_order_of_ones_own(command: Command, tmp_path: Path) -> None:
    told = [*TINY, "episodes=2", "record=0", "dispatch=queued"]
    crowded = "cluster.server_types.small.memory_mb_per_numa_node=2048"
    players = "baselines=[my_rules.py:LastFirst,my_rules.py:MyRule]"
    done = command(*told, crowded, "cluster.server_types.large.server_count=0", players)
    assert done.code == 0, done.err
    found = results_in(tmp_path).pivot(index="episode", columns="policy", values="flow_time")
    assert (found["LastFirst"] != found["MyRule"]).any()


def test_what_a_rule_raises_costs_no_rows(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = [*TOLD, "baselines=[my_rules.py:MyRule]"]
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Contest, "play", interrupted(Contest.play))
        command(*told, "hydra.run.dir=run")
    rows = (tmp_path / "run" / "unfinished.jsonl").read_bytes()
    (tmp_path / "mood").touch()
    failed = command(*told, "resume=run")
    assert failed.code == 2
    assert "error: MyRule: episode 1 of seed 0: reset raised RuntimeError: in a mood" in failed.err
    assert 'my_rules.py", line 15, in reset' in failed.err
    assert (tmp_path / "run" / "unfinished.jsonl").read_bytes() == rows
    assert command(*told, "hydra.run.dir=another").code == 2
    assert not (tmp_path / "another").exists()
    (tmp_path / "mood").unlink()
    assert command(*told, "resume=run").code == 0
    assert len(results_of(tmp_path / "run")) == 2


def test_the_class_that_the_docs_teach(command: Command, tmp_path: Path) -> None:
    page = (PROJECT / "docs" / "scheduler.md").read_text()
    (tmp_path / "my_rules.py").write_text(
        page.partition("```python\n# my_rules.py\n")[2].partition("```")[0]
    )
    done = command(*TOLD, "baselines=[my_rules.py:CheapestInTime,greedy_per_core]")
    assert done.code == 0, done.err
    rows = json.loads((run_in(tmp_path) / "summary.json").read_text())["policies"]
    assert {row["policy"] for row in rows} == {"CheapestInTime", "greedy_per_core"}
