"""Scenarios as places on charts: which swept key is an axis, and what panels are of."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

Scenarios = Mapping[str, Mapping[str, Any]]
"""Of run.json: the swept keys and their values, by the name of the scenario."""


def axes_of(scenarios: Scenarios) -> list[str]:
    """The swept keys that can be an axis: those of numbers, or all where there are none."""
    swept = _swept(scenarios)
    of_numbers = [key for key in swept if all(map(_is_number, _values(scenarios, key)))]
    return of_numbers or swept


def places(scenarios: Scenarios, axis: str) -> pd.DataFrame:
    """Where every scenario is: scenario, x (its value of `axis`), panel (those of other keys)."""
    others = [key for key in _swept(scenarios) if key != axis]
    numbers = all(map(_is_number, _values(scenarios, axis)))
    return pd.DataFrame(
        {
            "scenario": name,
            "x": point[axis] if numbers else _text(point[axis]),
            "panel": ", ".join(f"{key}={_text(point[key])}" for key in others),
        }
        for name, point in scenarios.items()
    )


def _swept(scenarios: Scenarios) -> list[str]:
    """Keys with more than one value."""
    keys = next(iter(scenarios.values()))
    return [key for key in keys if len(set(map(_text, _values(scenarios, key)))) > 1]


def _values(scenarios: Scenarios, key: str) -> Sequence[Any]:
    return [point[key] for point in scenarios.values()]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: Any) -> str:
    """As YAML has it."""
    return value if isinstance(value, str) else json.dumps(value)
