"""Where compiled code is kept; of functions compiled apart, who is read finds what it calls."""

import os
import pwd
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from env.base.jit import _cache_folder

ROOT = Path(__file__).parents[3]
FUNCTIONS = """
from env.base.jit import compiled, compiled_apart

@compiled_apart
def twice(number):
    return 2 * number

@compiled_apart
def twice_and(number, more):
    return twice(number) + more

@compiled
def four_times(number):
    return twice_and(number, twice(number))

@compiled
def five_times(number):
    return four_times(number) + number
"""
CALL = """
import sys
from env.base import jit
jit.OURS = ("functions.",)
import functions
called = getattr(functions, sys.argv[1])
print(called(3), called(0.5), sum(called.stats.cache_hits.values()))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    return tmp_path


def call(folder: Path, name: str) -> list[str]:
    """What a function answers in a new process, and in how many of its two forms it was read."""
    paths = {"PYTHONPATH": f"{ROOT}:{folder}", "NUMBA_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", CALL, name],
        env={**os.environ, **paths},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_they_find_what_another_process_has_compiled(folder: Path) -> None:
    call(folder, "four_times")
    for name in ("twice", "twice_and"):
        for cached in folder.rglob(f"functions.{name}-*"):
            cached.unlink()
    assert call(folder, "four_times") == ["12", "2.0", "2"]


def test_they_find_what_those_call_that_had_been_read_when_they_were_compiled(folder: Path) -> None:
    call(folder, "four_times")
    assert call(folder, "five_times") == ["15", "2.5", "0"]
    assert call(folder, "five_times") == ["15", "2.5", "2"]


def nobody(number: int) -> None:
    """In place of the machine's list of users, which lacks this one."""
    raise KeyError(number)


def test_a_user_without_a_home_has_compiled_code_in_the_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert _cache_folder().parent == tmp_path / f"serverless-scheduling-{os.getuid()}"


def test_beside_a_folder_that_is_not_ours_there_is_one_of_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "serverless-scheduling").write_text("somebody else's")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert _cache_folder().parent == tmp_path / f"serverless-scheduling-{os.getuid()}"
