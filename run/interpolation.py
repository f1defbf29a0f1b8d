"""What `${...}` may be, so that no value comes to far more than what is written."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from env.base.errors import InputError
from env.base.schema import short

FOLDERS = ("hydra.run.dir", "hydra.sweep.dir", "hydra.sweep.subdir")
"""Where results go: only there may text stand around interpolations, and dates in them."""
MOST_IN_A_FOLDER = 10
_KEY = r"[^${}:\s]{1,200}\}"
_WHOLE = re.compile(rf"\$\{{{_KEY}")
# A backslash makes it text, two are one backslash.
_OPENED = re.compile(rf"(?<!\\)(?:\\\\)*\$\{{({_KEY}|now:|run_folder:|job_folder:)?")


def leaves(key: str, tree: Any) -> Iterator[tuple[str, Any]]:
    """The values within a tree of plain containers with their dotted keys; also empty containers.

    Args:
        key: of the tree itself; "" for the root.
        tree: mappings, lists, or a value.
    """
    if not isinstance(tree, Mapping | list) or not tree:
        yield key, tree
        return
    for name, inner in tree.items() if isinstance(tree, Mapping) else enumerate(tree):
        yield from leaves(f"{key}.{name}" if key else str(name), inner)


def check_written(key: str, tree: Any, where: str) -> None:
    """Refuses interpolations, before anything resolves them, that make text grow or call others.

    `${KEY}` as a whole value cannot make text grow, whatever it names.

    Args:
        key: of the tree.
        tree: plain containers, as in `leaves`.
        where: what to call the source in an error.

    Raises:
        InputError: of an interpolation that is not allowed.
    """
    for name, value in leaves(key, tree):
        found = _OPENED.findall(value) if isinstance(value, str) else []
        if name in FOLDERS:
            if len(found) > MOST_IN_A_FOLDER or not all(found):
                raise InputError(
                    f"{where}: {name}: {short(value)}: at most {MOST_IN_A_FOLDER} interpolations "
                    "are allowed, of the forms ${KEY} and ${now:FORMAT}"
                )
        elif found and not _WHOLE.fullmatch(value):
            raise InputError(
                f"{where}: {name}: {short(value)}: an interpolation has to be the whole value and "
                "of the form ${KEY}"
            )


def copied(config: DictConfig) -> set[str]:
    """The keys whose values others copy by `${KEY}`.

    Args:
        config: composed, with interpolations that `check_written` has let pass.
    """
    written = leaves("", OmegaConf.to_container(config, resolve=False))
    texts = [value for _, value in written if isinstance(value, str)]
    return {text[2:-1] for text in texts if _WHOLE.fullmatch(text)}


def check_named(config: DictConfig | ListConfig, where: str = "") -> None:
    """Refuses interpolations of mappings and lists: those of each other double at every level.

    Args:
        config: composed, with interpolations that `check_written` has let pass.
        where: its dotted key with a dot behind; "" for the root.

    Raises:
        InputError: an interpolation names a mapping or a list.
    """
    keys: Sequence[Any] = range(len(config)) if isinstance(config, ListConfig) else list(config)
    for key in keys:
        try:
            value = config[key]
        except OmegaConfBaseException:  # missing, or names nothing: whoever needs it says so
            continue
        if not OmegaConf.is_config(value):
            continue
        if OmegaConf.is_interpolation(config, key):
            raise InputError(
                f"{where}{key}: an interpolation of a mapping or list, only of single values is "
                "allowed"
            )
        check_named(value, f"{where}{key}.")
