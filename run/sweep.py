"""What the key `sweep` of evaluate.py comes to: a configuration for each of its points."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.types import Override
from omegaconf import OmegaConf

from env.base.errors import InputError
from env.base.schema import short
from run.arguments import as_text, leaves, parsed
from run.composing import composed, plain
from run.settings import WORLD

Value = str | int | float | bool | None
SWEPT = (*WORLD, "agents", "policy")
"""Groups and keys that can be swept: the world, and who was trained. Seeds are a list anyway."""
FORM = "sweep: KEY: [VALUE, ...] is needed, or a list of such mappings"


@dataclass(frozen=True)
class Scenario:
    """A point of what is swept.

    Attributes:
        name: what tables call it: `keep_alive=lru sampling.ratio=0.5`; "" without a sweep.
        point: values by the key, or the group, that they are of.
        config: composed there, in plain containers.
        overrides: what was typed, and the values of the point.
    """

    name: str
    point: Mapping[str, Value]
    config: dict[str, Any]
    overrides: Sequence[Override]


def scenarios_of(told: Mapping[str, Any]) -> list[Scenario]:
    """The points of a sweep, the last key varying fastest; one without a sweep.

    Args:
        told: the configuration of this command, in plain containers.

    Raises:
        InputError: the sweep is none, a key of it was typed too, or a point does not compose.
    """
    words = typed_words("hydra", "task")
    if told.get("sweep") is None:
        return [Scenario("", {}, dict(told), parsed(words))]
    mine = [each for each in parsed(words) if each.key_or_group.split(".")[0] != "sweep"]
    typed = tuple(str(override.input_line) for override in mine)
    return [
        Scenario(
            " ".join(f"{short_keys(point)[key]}={shown(value)}" for key, value in point.items()),
            point,
            {**config, "sweep": told["sweep"]},
            overrides,
        )
        for point in _points(told["sweep"], typed)
        for config, overrides in [_composed(typed, tuple(point.items()))]
    ]


def short_keys(keys: Iterable[str]) -> dict[str, str]:
    """What people are told of dotted keys: their last two parts, or as many as tell them apart."""
    parts = {key: key.split(".") for key in keys}
    for count in range(2, max(map(len, parts.values()), default=0) + 2):
        names = {key: ".".join(own[-count:]) for key, own in parts.items()}
        if len(set(names.values())) == len(names):
            break
    return names


def typed_words(*kinds: str) -> list[str]:
    """The overrides of this command as they were typed: what `${...}` in them names comes later."""
    given = OmegaConf.to_container(HydraConfig.get().overrides, resolve=False)
    assert isinstance(given, dict)
    return [word for kind in kinds for word in given[kind]]


def _points(sweep: Any, typed: Sequence[str]) -> Iterator[dict[str, Value]]:
    given = sweep if isinstance(sweep, list) else [sweep]
    if not given or not all(isinstance(each, Mapping) and each for each in given):
        raise InputError(f"{FORM}, found {short(sweep)}")
    grids = [_grid(each) for each in given]
    if any(grid.keys() != grids[0].keys() for grid in grids):
        raise InputError(
            f"sweep: {', '.join(grids[0])} are the keys of its first mapping, others need the same"
        )
    for override in parsed(typed):
        value = None if override.is_delete() else override.value()
        for key, _ in leaves(override.key_or_group, value):
            if key in grids[0]:
                raise InputError(f"sweep: {key} is given as well: leave one of them out")
    points = [
        dict(zip(grid, values, strict=True)) for grid in grids for values in product(*grid.values())
    ]
    if len({frozenset(point.items()) for point in points}) < len(points):
        raise InputError("sweep: a point is given twice")
    yield from points


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


@cache
def _composed(
    typed: tuple[str, ...], point: tuple[tuple[str, Value], ...]
) -> tuple[dict[str, Any], list[Override]]:
    """Composing takes a moment, and the check of a command has done it already."""
    words = [*typed, *(_word(key, value) for key, value in point), "sweep=null"]
    try:
        config, overrides = composed("evaluate", words)
        return plain(config), overrides[:-1]
    except InputError as error:
        raise InputError(f"sweep: {error}") from None


def _word(key: str, value: Value) -> str:
    return as_text(key, value) if isinstance(value, str) else f"{key}={shown(value)}"


def shown(value: Value) -> str:
    """A value as YAML has it."""
    return value if isinstance(value, str) else json.dumps(value)
