"""What all tests share: commands, and the folder of real samples, which not every machine has."""

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from run.command import Prepare, run
from tests.commands import Command, Done, InProcess

DATA_DIR = Path(__file__).resolve().parents[2] / "shared" / "data"


# `make test` plays the short one, `make test-long` the other.
for name, examples in (("short", 25), ("long", 200)):
    settings.register_profile(
        name,
        max_examples=examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips those tests where the folder is absent."""
    if DATA_DIR.is_dir():
        return
    skip = pytest.mark.skip(reason=f"the real samples are not in {DATA_DIR}")
    for item in items:
        if "realdata" in item.keywords:
            item.add_marker(skip)


@pytest.fixture
def data_dir() -> Path:
    """The folder of real samples."""
    return DATA_DIR


@pytest.fixture
def no_ray() -> None:
    """Ends the Ray that tests of learning leave running, for who starts one in this process."""
    if "ray" in sys.modules:
        sys.modules["ray"].shutdown()


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in which commands run, in this process."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes no figures, which take seconds."""
    monkeypatch.setattr("report.files.write_figures", lambda *figures: [])


@pytest.fixture
def in_process(
    no_ray: None,
    elsewhere: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> InProcess:
    """Makes commands that run in `elsewhere` and in this process: starting one takes seconds.

    Evaluations write figures only where a test looks at them.
    """

    def of(
        name: str,
        prepare: Prepare,
        figures: bool = False,
    ) -> Command:
        if name == "evaluate" and not figures:
            monkeypatch.setattr("report.files.write_figures", lambda *figures: [])

        def call(*overrides: str) -> Done:
            monkeypatch.setattr(sys, "argv", [f"{name}.py", *overrides])
            code = 0
            try:
                run(prepare, name)
            except SystemExit as left:
                if isinstance(left.code, str):  # Python itself prints it
                    print(left.code, file=sys.stderr)
                code = 1 if isinstance(left.code, str) else int(left.code or 0)
            return Done(code, *capsys.readouterr())

        return call

    return of


@pytest.fixture
def command(in_process: InProcess) -> Command:
    """`python evaluate.py`; modules of other commands have a fixture of the same name."""
    from evaluate import prepared

    return in_process("evaluate", prepared)
