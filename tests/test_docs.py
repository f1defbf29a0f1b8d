"""What the README and the pages of docs/ show works: every block of code and every command.

Blocks of a page are taken from top to bottom, in a folder of their own. Python runs, and prints
what the block of text below it says. YAML is the file that its first line names, as is Python that
names one. Of commands, what takes seconds runs; trainings, evaluations and searches are composed
and checked as the program would before it starts.
"""

import gzip
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from omegaconf import DictConfig
from ray.scripts.scripts import cli as ray_command
from tensorboard.program import TensorBoard

import evaluate
import search_baseline
import train
from agents.learned.checkpoint import RunState, save_checkpoint
from env.score.metrics import METRICS, episode_metrics
from env.score.reward import Objective
from env.sim.declared.hardware import cluster_from_config
from env.sim.view.raw_env import RawEnv
from report import vega
from report.summary import FEWEST_FOR_INTERVALS
from run.command import CONF, PROJECT, run
from tests.agents.learned.test_queue_policy import save_untrained
from tests.commands import NoWeights
from tests.env.small import functions
from tests.env.worlds import TINY, composed, world
from tests.episodes import end
from tests.report.evaluations import finished_evaluation

README = PROJECT / "README.md"
PAGES = [README, *sorted((PROJECT / "docs").glob("**/*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

POLICIES = PROJECT / "agents" / "learned" / "policies"
CARDS = sorted(POLICIES.glob("*/README.md"))
TRAINING, OF_QUEUE, EVALUATION, LATER = (
    f"outputs/2030-01-31/{hour}-00-00" for hour in (11, 12, 13, 14)
)
PLACEHOLDERS = {
    "funcsched_orders 'policy=outputs/<date>/<run>": f"funcsched_orders 'policy={OF_QUEUE}",
    "resume=outputs/<date>/<run>": f"resume={TRAINING}",
    "policy=outputs/<date>/<run>": f"policy={TRAINING}",
    "policy=PATH": f"policy={TRAINING}",
    "outputs/<date>/<run>": EVALUATION,
    "outputs/<date>/<later>": LATER,
}
"""What pages call the folder of a run, and which one that is here; the first that fits counts."""

PROGRAMS: dict[str, Callable[[DictConfig], Callable[[Path], None]]] = {
    "train": train.prepared,
    "evaluate": evaluate.prepared,
    "search_baseline": search_baseline.prepared,
}
QUICK = (
    "env.sim.episode.replay",
    "env.sim.check.validate",
    "report.compare",
    "report.gantt",
    "report.schedule",
    "report.trace",
    "report.workflow",
)
"""Modules whose commands run."""


def finished_training(folder: Path) -> None:
    """A policy and a checkpoint, as far as they are looked at before a run starts."""
    shutil.copytree(POLICIES / "hetero_numa_hierarchical", folder / "policy")
    state = RunState(iteration=1)
    save_checkpoint(NoWeights(), folder, state, composed(name="train"), keep=1)


@pytest.fixture(scope="module")
def taken_for_granted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that commands of the docs need."""
    folder = tmp_path_factory.mktemp("docs")
    for name in ("tests", "Makefile", "pyproject.toml", "constraints.txt"):
        (folder / name).symlink_to(PROJECT / name)
    finished_training(folder / TRAINING)
    save_untrained(folder / OF_QUEUE / "policy")
    finished_evaluation(folder / EVALUATION)
    shutil.copytree(folder / EVALUATION, folder / LATER)
    searched = folder / EVALUATION / "greedy_objective_searched.yaml"
    shutil.copy(CONF / "baseline" / "random.yaml", searched)
    taught = (PROJECT / "docs" / "scheduler.md").read_text()
    (rule,) = re.findall(
        r"^```python\n(# my_rules\.py\n.*?)^```$", taught, re.DOTALL | re.MULTILINE
    )
    (folder / "my_rules.py").write_text(rule)
    fixtures = PROJECT / "tests" / "env" / "workloads" / "fixtures"
    (folder / "workflows").mkdir()
    workloads = (PROJECT / "docs" / "workload.md").read_text()
    for name in re.findall(r"workflows/([\w.-]+\.gz)", workloads):
        content = fixtures / ("photo.json" if ".json" in name else "photo.dax")
        (folder / "workflows" / name).write_bytes(gzip.compress(content.read_bytes()))
    return folder


@pytest.fixture
def folder(taken_for_granted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, in which commands run."""
    shutil.copytree(taken_for_granted, tmp_path, symlinks=True, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # scripts find files beside them
    monkeypatch.setattr("env.score.metrics.METRICS", dict(METRICS))  # a page adds one
    return tmp_path


@pytest.mark.parametrize(
    "path", [*PAGES, *CARDS], ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_blocks_of_a_page(
    path: Path, folder: Path, no_ray: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: dict[str, Any] = {}
    printed = ""
    for language, block in BLOCK.findall(path.read_text()):
        name = block.splitlines()[0].removeprefix("# ")
        if language == "yaml" or name.endswith(".py"):
            file = Path(name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block)
        if language == "python":
            # Not capsys: Hydra closes all log handlers, and one of RLlib's then closes what it
            # takes for a file, the stream that was standard error when it was imported.
            with redirect_stdout(StringIO()) as output:
                exec(compile(block, str(path), "exec"), names)
            printed = output.getvalue()
        elif language == "text":
            assert printed == block
        elif language != "yaml":
            assert language == "bash"
            for command in commands(block):
                try_out(command, monkeypatch)


def commands(block: str) -> Iterator[str]:
    """The commands of a block, each on one line, without comments."""
    for line in block.replace("\\\n", "").splitlines():
        # Hydra takes no values of several lines, so every quotation ends on its line.
        if words := shlex.split(line, comments=True):
            yield shlex.join(words)


def try_out(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs a command if it is quick, and else checks that it is one."""
    for placeholder, value in PLACEHOLDERS.items():
        command = command.replace(placeholder, value)
    program, *arguments = shlex.split(command)
    name = Path(program).name
    if name == "make":
        subprocess.run(["make", "-n", *arguments], check=True, capture_output=True)
    elif name == "tensorboard":
        TensorBoard().configure([name, *arguments])
    elif name == "ray":
        subcommand, *options = arguments
        ray_command.commands[subcommand].make_context(subcommand, options)
    elif arguments[0] == "-m":
        assert arguments[1] in QUICK, f"{command}: is it quick?"
        files = [str(file) for word in arguments[2:] for file in matching(word)]
        subprocess.run(
            [sys.executable, "-m", arguments[1], *files],
            env={**os.environ, "PYTHONPATH": str(PROJECT)},
            check=True,
            capture_output=True,
            timeout=600,
        )
    else:
        monkeypatch.setenv("PYTHONHASHSEED", "0")
        monkeypatch.setattr(sys, "argv", arguments)
        seen: list[Path] = []
        stem = Path(arguments[0]).stem

        def looked_at(config: DictConfig) -> Callable[[Path], None]:
            PROGRAMS[stem](config)
            return seen.append

        run(looked_at, stem)
        assert seen
        # The next command may come within the same second, and would have the same folder.
        for begun in ("outputs/*/*/.hydra", "outputs/*/*/multirun.yaml"):
            for path in Path().glob(begun):
                shutil.rmtree(path.parent)


def matching(word: str) -> list[str]:
    """What a shell would make of a word."""
    if "*" not in word:
        return [word]
    found = sorted(map(str, Path().glob(word)))
    assert found, word
    return found


def test_every_page_is_linked_from_the_readme() -> None:
    for path in PAGES[1:]:
        assert f"]({path.relative_to(PROJECT)})" in README.read_text()


def test_the_table_of_groups_names_every_option() -> None:
    groups = ("cluster", "workflow", "workload", "agents", "objective", "variation", "algo", "ray")
    others = ("tune", "experiment", "baseline", "dispatch", "lease", "changes", "keep_alive")
    for group in (*groups, *others):
        row = re.findall(rf"^\| `{group}` \|.*$", README.read_text(), re.MULTILINE)[0]
        options = {path.stem for path in (CONF / group).glob("*.yaml")}
        named = set(re.findall(r"`(\w+)`", row.split("|")[3]))
        assert options <= named
        assert named <= options or group == "experiment", group  # which names clusters, too


def test_the_metric_of_the_docs_can_be_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("env.score.metrics.METRICS", dict(METRICS))
    script = dict(BLOCK.findall((PROJECT / "docs" / "evaluation.md").read_text()))["python"]
    exec(compile(script, "docs/evaluation.md", "exec"), {})
    cluster = cluster_from_config(world(*TINY)["cluster"], "cluster")
    env = end(RawEnv([0.0, 1.0], [functions(1_000_000)] * 2, cluster))
    found = episode_metrics(env.state, Objective(time_weight=1, cost_weight=1))
    # One small server for an hour, two workflows.
    assert found["rent_per_workflow"] == 0.17 / 2


def test_the_limits_of_the_report_are_those_of_the_program() -> None:
    text = " ".join((PROJECT / "docs" / "report.md").read_text().split())
    most = composed(name="evaluate")["report"]["episodes_mb"]
    assert f"fit into {most:.0f} MB" in text
    assert f"is {vega.LOG_FROM:.0f} times the smallest" in text
    assert f"With fewer than {FEWEST_FOR_INTERVALS} episodes" in text
