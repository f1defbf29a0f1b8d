"""Commands end quietly when the reader of what they print has left, as behind `| head`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from run.command import PROJECT
from tests.env.worlds import TINY
from tests.report.evaluations import finished_evaluation

GOLDEN = PROJECT / "tests" / "golden" / "06_small_random_graph.json"
LEFT = (141, -13, 1)
"""Exit codes, of which 141 and -13 are those of SIGPIPE to a shell and to Python; 1 is rich's."""
COMMANDS = {
    "report.schedule": ("-m", "report.schedule", "episode.json"),
    "report.trace": ("-m", "report.trace", "episode.json"),
    "report.compare": ("-m", "report.compare", "first", "second"),
    "env.sim.episode.replay": ("-m", "env.sim.episode.replay", "episode.json"),
    "env.sim.check.validate": ("-m", "env.sim.check.validate", "wrong.json"),
    "train.py --cfg": (str(PROJECT / "train.py"), "--cfg", "job"),
    "evaluate.py --help": (str(PROJECT / "evaluate.py"), "--help"),
    "evaluate.py": (str(PROJECT / "evaluate.py"), *TINY, "episodes=1", "baselines=[random]"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Has what the commands read."""
    folder = tmp_path_factory.mktemp("pipes")
    document = json.loads(GOLDEN.read_text())
    (folder / "episode.json").write_text(json.dumps(document))
    document["expected"]["total_rent"] += 1.0
    (folder / "wrong.json").write_text(json.dumps(document))
    finished_evaluation(folder / "first")
    finished_evaluation(folder / "second")
    return folder


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_whose_reader_has_left_says_nothing(name: str, folder: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, *COMMANDS[name]],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        timeout=600,
    )
    os.close(writer)
    assert done.stderr == ""
    assert done.returncode in LEFT


def test_a_reader_may_leave_in_the_midst() -> None:
    code = (
        "from env.base.pipes import until_reader_leaves\n"
        "with until_reader_leaves():\n"
        "    while True: print('x' * 100)\n"
    )
    python, pipe = [sys.executable, "-c", code], subprocess.PIPE
    with subprocess.Popen(python, cwd=PROJECT, stdout=pipe, stderr=pipe, text=True) as script:
        assert script.stdout is not None and script.stderr is not None
        script.stdout.readline()
        script.stdout.close()
        assert script.stderr.read() == ""
    assert script.returncode == 141


def test_another_broken_pipe_is_an_error() -> None:
    code = (
        "import os\n"
        "from env.base.pipes import until_reader_leaves\n"
        "with until_reader_leaves():\n"
        "    reader, writer = os.pipe()\n"
        "    os.close(reader)\n"
        "    os.write(writer, b'x')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert "BrokenPipeError" in done.stderr
