"""What is asked of a composed configuration."""

from run.told import first_difference


def test_the_first_difference_of_two_trees() -> None:
    one = {"a": 1, "b": {"c": [1], "d": None}}
    assert first_difference(one, {"b": {"d": None, "c": [1]}, "a": 1}) is None
    assert first_difference(one, {"a": 1, "b": {"c": [2], "d": None}}) == ("b.c", [1], [2])
    assert first_difference(one, {**one, "e": 5}) == ("e", None, 5)
