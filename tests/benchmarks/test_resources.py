"""The benchmark of resources: both sides do the same."""

from benchmarks.resources import EMPTY, compiled_play, drawn_tasks, plain_play


def test_both_sides_leave_the_same() -> None:
    left = compiled_play(*drawn_tasks())
    assert (left == plain_play(*drawn_tasks())).all()
    assert (left >= 0).all() and (left <= EMPTY).all() and (left != EMPTY).any(axis=0).all()
