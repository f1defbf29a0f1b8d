"""Scenarios as places on charts: which swept key is an axis, and what panels are of."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from run.sweep import shown

Scenarios = Mapping[str, Mapping[str, Any]]
"""Of run.json: the swept keys and their values, by the name of the scenario."""


def axes_of(scenarios: Scenarios) -> list[str]:
    """The swept keys that can be an axis: those of numbers, or all where there are none."""
    swept = _swept(scenarios)
    return [key for key in swept if _are_numbers(scenarios, key)] or swept


def places(scenarios: Scenarios, axis: str) -> pd.DataFrame:
    """Where every scenario is: scenario, x (its value of `axis`), panel (those of other keys)."""
    others = [key for key in _swept(scenarios) if key != axis]
    numbers = _are_numbers(scenarios, axis)
    return pd.DataFrame(
        {
            "scenario": name,
            "x": point[axis] if numbers else shown(point[axis]),
            "panel": ", ".join(f"{key}={shown(point[key])}" for key in others),
        }
        for name, point in scenarios.items()
    )


def _swept(scenarios: Scenarios) -> list[str]:
    """Keys with more than one value."""
    points = list(scenarios.values())
    return [key for key in points[0] if len({shown(point[key]) for point in points}) > 1]


def _are_numbers(scenarios: Scenarios, key: str) -> bool:
    values = [point[key] for point in scenarios.values()]
    return all(isinstance(each, int | float) and not isinstance(each, bool) for each in values)
