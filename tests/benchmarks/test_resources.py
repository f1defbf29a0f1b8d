"""The benchmark of resources: both sides do the same."""

from benchmarks.resources import EMPTY, TASKS, Tasks, compiled_play, plain_play


def test_both_sides_leave_the_same() -> None:
    tasks = Tasks.drawn(TASKS)
    left = compiled_play(tasks)()
    assert (left == plain_play(tasks)()).all()
    assert (left >= 0).all() and (left <= EMPTY).all() and (left != EMPTY).any(axis=0).all()
