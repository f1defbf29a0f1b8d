"""The benchmark of resources: both sides do the same, and the figures are printed."""

import json

import pytest

from benchmarks.resources import EMPTY, TASKS, UNITS, Tasks, compiled_play, main, plain_play


def test_both_sides_leave_the_same() -> None:
    tasks = Tasks.drawn(TASKS)
    left = compiled_play(tasks)()
    assert (left == plain_play(tasks)()).all()
    assert (left >= 0).all() and (left <= EMPTY).all() and (left != EMPTY).any(axis=0).all()


def test_all_figures_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--json", "--repeats", "1"])
    figures = json.loads(capsys.readouterr().out)
    assert list(figures) == list(UNITS) and figures["acquire_ratio"] > 1
