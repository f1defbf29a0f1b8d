"""What docs/report.md shows works."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from agents.command import CONF, PROJECT
from report import charts

DOCS = (PROJECT / "docs" / "report.md").read_text()


def blocks(language: str) -> list[str]:
    found: list[str] = re.findall(rf"```{language}\n(.*?)```", DOCS, re.DOTALL)
    assert found
    return found


def test_the_commands_run(tmp_path: Path) -> None:
    (tmp_path / "tests").symlink_to(PROJECT / "tests")
    for line in "".join(blocks("bash")).splitlines():
        program, *arguments = shlex.split(line)
        assert program == "python"
        subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env={"PYTHONPATH": str(PROJECT)},
            check=True,
            timeout=300,
        )
    assert {path.name for path in tmp_path.iterdir()} == {"tests", "gantt.png", "trace.json"}


def test_the_script_runs(capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.chdir(PROJECT)
    (script,) = blocks("python")
    exec(compile(script, "report.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    names = [line.split(":")[0] for line in printed[:4]]
    assert names == ["cold start", "transfer", "waiting", "running"]
    assert len(printed) == 4 + 4  # the episode has two servers of two NUMA nodes


def test_the_limits_are_those_of_the_program() -> None:
    settings = OmegaConf.load(CONF / "evaluate.yaml")
    assert f"fit into\n{settings.report.episodes_mb:.0f} MB (`report.episodes_mb`)" in DOCS
    assert f"more than {charts.LOG_FROM:.0f} times" in DOCS
