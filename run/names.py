"""Unknown groups, options and keys among the arguments of a command."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hydra import compose
from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.types import Override
from hydra.errors import ConfigCompositionException
from omegaconf import OmegaConf

from env.base.errors import InputError
from env.base.schema import nearest, short
from run.config_file import check_composed  # Hydra reads files as that module says


def check_names(loader: ConfigLoader, config_name: str, overrides: Sequence[Override]) -> None:
    """Refuses unknown groups, options and keys, which Hydra reports over many lines.

    And what a folder of configs says of Hydra itself and of where Ray runs.

    Raises:
        InputError: one is unknown; the nearest is named, or all.
    """
    hydras = [o for o in overrides if o.key_or_group.startswith(("hydra.", "hydra/"))]
    paths = [str(override.input_line) for override in hydras]
    if any(o.key_or_group.startswith("hydra.sweeper.params") for o in hydras):
        raise InputError("hydra.sweeper.params: not supported, -m takes KEY=A,B")
    groups = []
    for override in overrides:
        group = override.key_or_group
        options = loader.get_group_options(group, config_name=config_name, overrides=paths)
        if options and override not in hydras:
            _check_option(override, options)
            groups.append(override)
    try:
        chosen = _composed(config_name, paths + [str(each.input_line) for each in groups])
    except ConfigCompositionException:  # where one is a group of other commands alone
        taken = _composed(config_name, paths)["hydra"]["runtime"]["choices"]
        groups = [each for each in groups if each.key_or_group.split("/")[0] in taken]
        chosen = _composed(config_name, paths + [str(each.input_line) for each in groups])
    typed = [str(o.input_line) for o in hydras if o.key_or_group != "hydra.searchpath"]
    if len(typed) < len(paths):  # others' folders are searched
        ours = loader.get_group_options("ray", config_name=config_name, overrides=typed)
        rays = [each for each in groups if each.key_or_group == "ray"]
        typed += [str(each.input_line) for each in rays if str(each.value()) in ours]
        check_composed(chosen, _composed(config_name, typed))
    del chosen["hydra"]
    known = list(_keys(chosen))
    for override in overrides:
        key = override.key_or_group
        mine = override not in groups and override not in hydras
        added = override.is_add() or override.is_force_add()
        if mine and not added and key not in known:
            above = [key[:end] for end, mark in enumerate(key) if mark == "."]
            parent = next((each for each in reversed(above) if each in known), "")
            near = [name for name in known if name.rpartition(".")[0] == parent]
            advice = nearest(key, near, parent and f"{parent}.") if near else f"{parent} has none"
            raise InputError(f"{key}: unknown key, {advice}")


def _composed(config_name: str, overrides: list[str]) -> Any:
    """A configuration in plain containers, with the node `hydra`."""
    config = compose(config_name, overrides=overrides, return_hydra_config=True)
    return OmegaConf.to_container(config, resolve=False)


def _check_option(override: Override, options: list[str]) -> None:
    chosen = override.value()
    for option in chosen if isinstance(chosen, list) else [chosen]:
        if str(option) not in options:
            shown = short(option) if isinstance(option, Mapping) else option
            raise InputError(
                f"{override.key_or_group}={shown}: unknown option, {nearest(str(option), options)}"
            )


def _keys(tree: Any, prefix: str = "") -> Iterator[str]:
    """Dotted names of everything in a configuration, branches included."""
    if isinstance(tree, Mapping):
        for name, value in tree.items():
            yield f"{prefix}{name}"
            yield from _keys(value, f"{prefix}{name}.")
