"""Which swept key is an axis, and what else tells scenarios apart."""

from typing import Any

import pytest

from report.line_charts import axes


def named(*points: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {str(number): point for number, point in enumerate(points)}


@pytest.mark.parametrize(
    ("points", "keys"),
    [
        ([{"a": 1, "b": "x"}, {"a": 2, "b": "y"}], ["a"]),
        ([{"a": 1, "b": 0.5}, {"a": 2, "b": 0.7}], ["a", "b"]),
        ([{"a": "v", "b": "x"}, {"a": "v", "b": "y"}], ["b"]),
        ([{"a": None}, {"a": 60.0}], ["a"]),
        ([{"a": False, "b": 1}, {"a": True, "b": 1}], ["a"]),
    ],
)
def test_numbers_are_axes_and_else_words_are(points: list[dict[str, Any]], keys: list[str]) -> None:
    assert list(axes(named(*points))) == keys


def test_other_keys_are_panels() -> None:
    scenarios = named(
        {"ratio": 0.3, "keep": "lru", "slow": 1},
        {"ratio": 0.7, "keep": "lru", "slow": 1},
        {"ratio": 0.3, "keep": "none", "slow": 1},
    )
    assert axes(scenarios)["ratio"].values.tolist() == [
        ["0", 0.3, "keep=lru"],
        ["1", 0.7, "keep=lru"],
        ["2", 0.3, "keep=none"],
    ]


def test_what_is_no_number_is_written_as_in_a_configuration() -> None:
    scenarios = named({"patience": None}, {"patience": 60.0}, {"patience": "never"})
    (places,) = axes(scenarios).values()
    assert list(places["x"]) == ["null", "60.0", "never"]
    assert set(places["panel"]) == {""}
