"""The key `sweep` of evaluate.py: a configuration for each of its points."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from hydra.core.override_parser.types import Override

from env.base.errors import InputError
from env.base.files import name_apart
from env.base.schema import short
from run.composing import WORLD, Scenario, Value, assigned, composed, leaves, plain

SWEPT = (*WORLD, "agents", "policy")
"""Groups and keys that can be swept: the world, and the policies. Seeds are a list anyway."""


def scenarios_of(config: dict[str, Any], overrides: Sequence[Override]) -> list[Scenario]:
    """The points of the sweep in a configuration with these overrides, last key varying fastest.

    Raises:
        InputError: `sweep` has another form, a key of it was typed too, or a point does not
            compose.
    """
    sweep = config["sweep"]
    others = [each for each in overrides if each.key_or_group.split(".")[0] != "sweep"]
    scenarios = []
    for point in _points(sweep, others):
        words = [str(override.input_line) for override in others]
        words += [assigned(key, value) for key, value in point.items()]
        try:
            at_point, typed = composed("evaluate", [*words, "sweep=null"])
            values = {**plain(at_point), "sweep": sweep}
        except InputError as error:
            raise InputError(f"sweep: {error}") from None
        names = short_keys(point)
        name = " ".join(f"{names[key]}={shown(value)}" for key, value in point.items())
        scenarios.append(Scenario(name, point, values, typed[:-1]))
    return scenarios


def short_keys(keys: Iterable[str]) -> dict[str, str]:
    """Dotted keys as people read them: the last two parts, or as many as tell them apart."""
    parts = {key: tuple(key.split(".")) for key in keys}
    return {
        key: name_apart(words, [other for other in parts.values() if other != words], 2, ".")
        for key, words in parts.items()
    }


def _points(sweep: Any, typed: Sequence[Override]) -> list[dict[str, Value]]:
    given = sweep if isinstance(sweep, list) else [sweep]
    if not given or not all(isinstance(each, Mapping) and each for each in given):
        form = "KEY: [VALUE, ...] is needed, or a list of such mappings"
        raise InputError(f"sweep: {form}, found {short(sweep)}")
    grids = [_grid(each) for each in given]
    if any(grid.keys() != grids[0].keys() for grid in grids):
        raise InputError(
            f"sweep: {', '.join(grids[0])} are the keys of its first mapping, others need the same"
        )
    for override in typed:
        value = None if override.is_delete() else override.value()
        for key, _ in leaves(override.key_or_group, value):
            if key in grids[0]:
                raise InputError(f"sweep: {key} is given as well: leave one of them out")
    points = [
        dict(zip(grid, values, strict=True)) for grid in grids for values in product(*grid.values())
    ]
    if len({frozenset(point.items()) for point in points}) < len(points):
        raise InputError("sweep: a point is given twice")
    return points


def _grid(given: Mapping[str, Any]) -> dict[str, list[Value]]:
    """Values by dotted key; keys may be written as mappings in mappings, too."""
    grid = dict(leaves("", given))
    for key, values in grid.items():
        if re.split("[./]", key)[0] not in SWEPT:
            raise InputError(f"sweep.{key}: only keys of {', '.join(SWEPT)} are swept")
        if not isinstance(values, list) or not values:
            raise InputError(f"sweep.{key}: a list of values is needed, found {short(values)}")
        for value in values:
            if not isinstance(value, Value):
                raise InputError(f"sweep.{key}: {short(value)}, single values are needed")
    return grid


def shown(value: Value) -> str:
    """A value as YAML has it."""
    return value if isinstance(value, str) else json.dumps(value)
