"""What Hydra makes of the arguments of a command, and how to write those it cannot read."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException

from env.base.errors import InputError, located
from env.base.files import read_yaml
from env.base.schema import short

ALLOWED = "KEY=VALUE, +KEY=VALUE, ++KEY=VALUE or ~KEY is needed"
TYPED = Path(".hydra", "overrides.yaml")
"""What a run was told, in its folder."""
OF_HYDRA = ("hydra.run.dir", "hydra.sweep.dir", "hydra.sweep.subdir", "hydra.searchpath")
"""What of Hydra's own settings has an effect."""
RUNS_CODE = re.compile(r"[+~]*(hydra|ray(=|\.address|\.runtime_env)|[^=]*@)|.*\.py", re.DOTALL)
"""An argument that says what runs on this machine."""


def parsed(words: Sequence[str], in_sweep: bool = False) -> list[Override]:
    """Reads arguments of the form `KEY=VALUE`, `+KEY=VALUE`, `++KEY=VALUE` and `~KEY`.

    Args:
        words: of the command.
        in_sweep: whether a key may have several values.

    Raises:
        InputError: Hydra cannot read one, or reads several values where one is needed; or one is a
            setting of Hydra's that has no effect.
    """
    parser, found = OverridesParser.create(), []
    for word in words:
        key, _, value = word.partition("=")
        advice = f"text is written {shlex.quote(as_text(key, value))}"  # as a POSIX shell is given
        try:
            override = parser.parse_override(word)
        except (HydraException, ValueError, RecursionError):  # ValueError: thousands of digits
            unreadable = f"not readable, {advice}, each of several texts in quotes of its own"
            raise InputError(f"{short(word)}: {unreadable if value else ALLOWED}") from None
        key = override.key_or_group
        if not key:
            raise InputError(f"{short(word)}: {ALLOWED}")
        if override.is_sweep_override() and not in_sweep:
            raise InputError(
                f"{short(word)}: several values are for -m, {advice}, a list KEY=[A,B]"
            )
        if key.startswith(("hydra.", "hydra/")) and key not in OF_HYDRA:
            raise InputError(f"{key}: not supported, of hydra only {', '.join(OF_HYDRA)} are")
        found.append(override)
    return found


def expanded(overrides: Sequence[Override]) -> list[list[str]]:
    """The words of every job of a sweep, the last key varying fastest."""
    values = [
        [f"{each.get_key_element()}={value}" for value in each.sweep_string_iterator()]
        if each.is_sweep_override()
        else [str(each.input_line)]
        for each in overrides
    ]
    return [list(words) for words in product(*values)]


def of_resumed(typed: Sequence[Override], code_may_run: bool) -> list[str]:
    """What the run was told that `resume` names, but for the keys that are typed anew.

    Args:
        typed: the arguments of the command.
        code_may_run: whether the run may say what runs on this machine, as its checkpoints do.

    Raises:
        InputError: the file that keeps it is damaged, or names code or processes all the same.
    """
    keys = {each.key_or_group: each.value() for each in typed if not each.is_delete()}
    run = Path(str(keys.get("resume")))
    file = (run.parent.parent if run.parent.name == "checkpoints" else run) / TYPED
    if not file.is_file():
        return []
    words = read_yaml(file, str(file), yaml.BaseLoader)
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise InputError(f"{file}: a list of texts is needed, found {short(words)}")
    with located(str(file)):
        told = [str(o.input_line) for o in parsed(words) if o.key_or_group not in keys]
    for word in told:
        if not code_may_run and RUNS_CODE.match(word):
            raise InputError(f"{file}: {short(word)}: what runs here is typed: give it again")
    return told


def as_text(key: str, value: str) -> str:
    """The argument by which `key` gets exactly the text `value`."""
    # To OmegaConf, ${ begins an interpolation even in quotes, unless a backslash precedes it; other
    # backslashes are written twice there.
    literal = re.sub(r"(\\*)\$\{", r"\1\1\\${", value)
    # Hydra reads backslashes as they are, unless they are followed by the quote.
    literal = re.sub(
        r'(\\*)("|\Z)', lambda found: 2 * found[1] + found[2].replace('"', r"\""), literal
    )
    return f'{key}="{literal}"'


def leaves(key: str, tree: Any) -> Iterator[tuple[str, Any]]:
    """The values within a tree of plain mappings with their dotted keys; also empty mappings.

    Args:
        key: of the tree itself; "" for the root.
        tree: a mapping, or a value.
    """
    if not isinstance(tree, Mapping) or not tree:
        yield key, tree
        return
    for name, inner in tree.items():
        yield from leaves(f"{key}.{name}" if key else str(name), inner)
