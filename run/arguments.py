"""What Hydra makes of the arguments of a command, and how to write those it cannot read."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf

from env.base.errors import InputError, located
from env.base.files import MOST_YAML_BYTES, check_yaml, read_bytes
from env.base.schema import short
from run.interpolation import check_written, leaves

ALLOWED = "KEY=VALUE, +KEY=VALUE, ++KEY=VALUE or ~KEY is needed"
TYPED = Path(".hydra", "overrides.yaml")
"""Where Hydra keeps the arguments of a run, in its folder."""
RUNS_CODE = re.compile(r"[+~]*(hydra|ray(=|\.address|\.runtime_env)|[^=]*@)|.*\.py", re.DOTALL)
"""An argument that says what runs on this machine."""
LONGEST_ADVICE = 1_000
"""Characters of a word to paste, above which only its form is shown."""


def parsed(
    parser: OverridesParser, arguments: Sequence[str], in_sweep: bool = False
) -> list[Override]:
    """Reads arguments of the form `KEY=VALUE`, `+KEY=VALUE`, `++KEY=VALUE` and `~KEY`.

    Args:
        parser: of Hydra.
        arguments: of the command.
        in_sweep: whether a key may have several values.

    Raises:
        InputError: Hydra cannot read one, or reads several values where one is needed; or one has
            an interpolation that is not allowed.
    """
    found = []
    for argument in arguments:
        try:
            override = parser.parse_override(argument)
        except (HydraException, ValueError, RecursionError):  # ValueError: thousands of digits
            raise InputError(_unreadable(parser, argument)) from None
        if override.is_sweep_override() and not in_sweep:
            key, _, value = argument.partition("=")
            raise InputError(
                f"{short(argument)}: several values are for -m, "
                f"text is written {_advice(key, value)}, a list KEY=[A,B]"
            )
        if not override.key_or_group:
            raise InputError(f"{short(argument)}: {ALLOWED}")
        if not override.is_sweep_override():  # its jobs are read in their turn
            check_written(override.key_or_group, override.value(), "command line")
        found.append(override)
    return found


def of_resumed(parser: OverridesParser, typed: Sequence[Override], code_may_run: bool) -> list[str]:
    """What the run was told that `resume` names, but for the keys that are typed anew.

    Args:
        parser: of Hydra.
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
    words = yaml.safe_load(check_yaml(read_bytes(file, MOST_YAML_BYTES), str(file)))
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise InputError(f"{file}: a list of texts is needed, found {short(words)}")
    with located(str(file)):
        told = [str(o.input_line) for o in parsed(parser, words) if o.key_or_group not in keys]
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


def check_emptied(overrides: Sequence[Override], config: DictConfig) -> None:
    """Refuses `KEY={}` where it leaves something in KEY, for Hydra merges mappings.

    Args:
        overrides: of the command.
        config: what it comes to, with the node `hydra`.

    Raises:
        InputError: a mapping that was given as empty has what no later override gives.
    """
    later: set[str] = set()
    for override in reversed(overrides):
        if override.is_delete():
            continue
        given = dict(leaves(override.key_or_group.replace("/", "."), override.value()))
        for key in (key for key, value in given.items() if value == {}):
            left = OmegaConf.select(config, key, throw_on_missing=False)
            found = OmegaConf.to_container(left) if isinstance(left, DictConfig) else None
            for name, inner in found.items() if isinstance(found, dict) else ():
                if not later.issuperset(dict(leaves(f"{key}.{name!s}", inner))):
                    raise InputError(
                        f"{key}={{}}: mappings are merged, so this takes nothing away: write "
                        f"~{key}, or ~{key}.{name!s} and so on for single keys"
                    )
        later |= given.keys()


def _unreadable(parser: OverridesParser, argument: str) -> str:
    key, _, value = argument.partition("=")
    if not argument.isprintable():
        return f"{short(argument)}: a character that cannot be printed, which is not allowed"
    try:
        parser.parse_override(f"{key}=0")
    except HydraException:
        return f"{short(argument)}: {ALLOWED}"
    if not value:
        return f"{short(argument)}: no value, {ALLOWED}"
    several = any(mark in value for mark in "[{,")
    each = ", each of several texts in quotes of its own" if several else ""
    return f"{short(argument)}: not readable, text is written {_advice(key, value)}{each}"


def _advice(key: str, value: str) -> str:
    word = shlex.quote(as_text(key, value))  # as a POSIX shell is given it
    return word if len(word) <= LONGEST_ADVICE else f"'{key}=\"...\"'"
