"""Functions that are compiled apart: who is read from the cache finds what it calls."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FUNCTIONS = """
from env.sim.jit import compiled, compiled_apart

@compiled_apart
def twice(number):
    return 2 * number

@compiled_apart
def twice_and(number, more):
    return twice(number) + more

@compiled
def four_times(number):
    return twice_and(number, twice(number))
"""
CALL = """
import functions
answer = functions.four_times(3), functions.four_times(0.5)
hits = sum(functions.four_times.stats.cache_hits.values())
print(*answer, hits)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    return tmp_path


def call(folder: Path) -> list[str]:
    """What a new process answers, and how many of its two functions it has read."""
    paths = {"PYTHONPATH": f"{ROOT}:{folder}", "NUMBA_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", CALL],
        env={**os.environ, **paths},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_callers_that_are_read_find_what_they_call(folder: Path) -> None:
    assert call(folder) == ["12", "2.0", "0"]
    assert call(folder) == ["12", "2.0", "2"]


def test_callers_that_are_read_find_what_another_process_has_compiled(folder: Path) -> None:
    call(folder)
    for name in ("twice", "twice_and"):
        for cached in folder.rglob(f"functions.{name}-*"):
            cached.unlink()
    assert call(folder) == ["12", "2.0", "2"]
