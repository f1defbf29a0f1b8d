"""What the README shows works."""

import re

from agents.command import CONF, PROJECT
from env.metrics import METRICS, episode_metrics
from env.reward import Objective
from env.sim.cluster_file import cluster_from_config
from env.sim.raw_env import RawEnv
from env.sim.workflow import WorkflowTemplate
from tests.env.worlds import TINY, world

README = (PROJECT / "README.md").read_text()


def test_the_script_runs_as_printed(capsys):
    (script,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(script, "README.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    # Both first functions: 25 s of cold start, 60 s x 1e6 operations on 2 cores = 30 s; the second
    # one reads 5e8 bytes on the same node in 5 ms and works 30 s. The later workflow ends last.
    assert printed[0] == "0.0 25.0 0.17"
    assert printed[-1] == "95.005 0.34"


def test_the_table_of_groups_names_every_option():
    groups = ("cluster", "workflow", "workload", "agents", "objective", "variation", "algo")
    for group in (*groups, "ray", "tune", "experiment", "baseline", "dispatch", "trace"):
        row = re.findall(rf"^\| `{group}` \|.*$", README, re.MULTILINE)[0]
        for path in (CONF / group).glob("*.yaml"):
            assert f"`{path.stem}`" in row, f"README: {group}={path.stem} is missing"


def test_the_metric_of_the_docs_can_be_computed(monkeypatch):
    monkeypatch.setattr("env.metrics.METRICS", dict(METRICS))
    text = (PROJECT / "docs" / "evaluation.md").read_text()
    (script,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names = {}
    exec(compile(script, "docs/evaluation.md", "exec"), names)
    config = world(*TINY)
    cluster = cluster_from_config(config["cluster"], "cluster")
    env = RawEnv([0.0, 1.0], [WorkflowTemplate("w", [1_000_000], [1], [1], [], [])] * 2, cluster)
    while not env.done:
        env.step("small", 0, 0, 1)
    found = episode_metrics(env.state, Objective(time_weight=1, cost_weight=1))
    # One small server for an hour, two workflows.
    assert found["rent_per_workflow"] == 0.17 / 2


def test_the_scheduler_of_the_docs_rents_one_small_server(capsys):
    text = (PROJECT / "docs" / "scheduler.md").read_text()
    (script,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(script, "docs/scheduler.md", "exec"), {})
    # Two chains of one and a half minutes, ten minutes apart: one hour of the smallest server.
    assert capsys.readouterr().out == "0.17\n"
