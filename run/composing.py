"""Composes a configuration; what Hydra refuses is one line, with the nearest known name."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import yaml
from hydra import compose
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from env.base.errors import InputError
from env.base.schema import nearest, one_line
from run.arguments import parsed


@contextmanager
def one_line_errors() -> Iterator[None]:
    """What Hydra, OmegaConf and YAML find wrong in the block is one line.

    Raises:
        InputError: they found something.
    """
    try:
        yield
    except InputError:
        raise
    except (
        *(HydraException, OmegaConfBaseException, yaml.YAMLError),
        *(ValueError, RecursionError),  # of Hydra, too
    ) as error:
        behind = error.__cause__
        more = f": {behind}" if isinstance(behind, OmegaConfBaseException) else ""
        raise InputError(one_line(f"{error}{more}")) from None


def composed(config_name: str, words: Sequence[str]) -> tuple[DictConfig, list[Override]]:
    """A configuration, with the node `hydra`, and the overrides as read.

    Args:
        config_name: a primary configuration in conf/, which Hydra has been told of.
        words: as on a command line.

    Raises:
        InputError: an override is none, or names what is not there; or it takes nothing away.
    """
    given = parsed(words)
    with one_line_errors():
        try:
            config = compose(config_name, overrides=list(words), return_hydra_config=True)
        except (HydraException, ValueError):
            _check_names(config_name, given)
            raise
        for override in given:
            key = override.key_or_group
            if (
                not override.is_delete()
                and override.value() == {}
                and OmegaConf.select(config, key)
            ):
                raise InputError(
                    f"{key}={{}}: mappings are merged, so this takes nothing away: write ~{key}"
                )
    return config, given


def without_hydra(config: DictConfig) -> DictConfig:
    """A composed configuration without what is Hydra's."""
    return OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])


def plain(config: DictConfig) -> dict[str, Any]:
    """The same as plain containers, which is what Ray and pydantic take.

    Raises:
        InputError: an interpolation does not resolve.
    """
    with one_line_errors():
        # Values that are missing stay `???`: `validated` says where.
        found = OmegaConf.to_container(without_hydra(config), resolve=True)
    assert isinstance(found, dict)
    return {str(key): value for key, value in found.items()}


def _check_names(config_name: str, overrides: Sequence[Override]) -> None:
    """Refuses unknown groups, options and keys: the nearest is named, or all."""
    loader = GlobalHydra.instance().config_loader()
    paths = [str(o.input_line) for o in overrides if o.key_or_group == "hydra.searchpath"]
    mine = [each for each in overrides if not each.key_or_group.startswith("hydra.")]
    groups: dict[str, str] = {}
    for override in mine:
        group = override.key_or_group
        options = loader.get_group_options(group, config_name=config_name, overrides=paths)
        if options:
            chosen = override.value()
            for option in chosen if isinstance(chosen, list) else [chosen]:
                if str(option) not in options:
                    near = nearest(str(option), options)
                    raise InputError(f"{group}={option}: unknown option, {near}")
            groups[group] = str(override.input_line)
    try:
        known = _keys(config_name, [*paths, *groups.values()])
    except HydraException:  # where one is a group of other commands alone
        taken = _keys(config_name, paths)
        groups = {group: word for group, word in groups.items() if group.split("/")[0] in taken}
        known = _keys(config_name, [*paths, *groups.values()])
    for override in mine:
        key, added = override.key_or_group, override.is_add() or override.is_force_add()
        if not added and key not in {*known, *groups}:
            above = [key[:end] for end, mark in enumerate(key) if mark == "."]
            parent = next((each for each in reversed(above) if each in known), "")
            near_by = [name for name in known if name.rpartition(".")[0] == parent]
            advice = (
                nearest(key, near_by, parent and f"{parent}.") if near_by else f"{parent} has none"
            )
            raise InputError(f"{key}: unknown key, {advice}")


def _keys(config_name: str, words: list[str]) -> list[str]:
    """Dotted names of everything in a configuration, branches included."""

    def names(tree: Any, prefix: str) -> Iterator[str]:
        if isinstance(tree, Mapping):
            for name, value in tree.items():
                yield f"{prefix}{name}"
                yield from names(value, f"{prefix}{name}.")

    return list(names(OmegaConf.to_container(compose(config_name, overrides=words)), ""))
