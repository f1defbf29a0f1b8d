"""From the words of a command to a configuration, or one for each point of its sweep.

What is wrong with them is said in one line.
"""

import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from hydra import compose
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from env.base.errors import InputError, located
from env.base.files import name_apart, read_yaml
from env.base.schema import nearest, one_line, short

WORLD = (
    *("cluster", "workflow", "workload", "objective", "dispatch", "lease", "keep_alive"),
    *("changes", "recovery"),
)
"""Groups that make the world in which schedulers are compared."""
TRAINING_WORLD = (*WORLD, "agents", "variation")
"""Groups that make the world in which schedulers learn."""
SWEPT = (*WORLD, "agents", "policy")
"""Groups and keys that can be swept: the world, and the policies. Seeds are a list anyway."""
ALLOWED = "KEY=VALUE, +KEY=VALUE, ++KEY=VALUE or ~KEY is needed"
TYPED = Path(".hydra", "overrides.yaml")
"""The arguments of a run, in its folder."""
OF_HYDRA = ("hydra.run.dir", "hydra.sweep.dir", "hydra.sweep.subdir", "hydra.searchpath")
"""Hydra's own settings that have an effect."""
UNQUOTED = re.compile(r"(?!(null|true|false|nan|inf)\Z)[a-z./_][\w./+-]*", re.ASCII | re.IGNORECASE)
"""Text that Hydra reads as it is, without quotes."""
RUNS_CODE = re.compile(r"[+~]*(hydra|ray(=|\.address|\.runtime_env)|[^=]*@)|.*\.py", re.DOTALL)
"""An argument that says what runs on this machine."""


Value = str | int | float | bool | None


class Scenario(NamedTuple):
    """A configuration that a job runs: that of the job, or of a point of its sweep.

    Attributes:
        name: in tables: `keep_alive=lru sampling.ratio=0.5`; "" without a sweep.
        point: the swept values by key or group.
        config: composed there, in plain containers.
        overrides: the arguments of the command, and the values of the point.
    """

    name: str
    point: Mapping[str, Value]
    config: dict[str, Any]
    overrides: Sequence[Override]


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Errors of Hydra, OmegaConf and YAML in the block become one line.

    Raises:
        InputError: in place of such an error.
    """
    try:
        yield
    except InputError:
        raise
    except (
        *(HydraException, OmegaConfBaseException, yaml.YAMLError),
        *(ValueError, RecursionError),  # of Hydra, too
    ) as error:
        cause = error.__cause__
        more = f": {cause}" if isinstance(cause, OmegaConfBaseException) else ""
        text = str(error).partition("\nConfig search path")[0]
        raise InputError(one_line(f"{text}{more}")) from None


def parsed(words: Sequence[str], in_sweep: bool = False) -> list[Override]:
    """Reads arguments of the form `KEY=VALUE`, `+KEY=VALUE`, `++KEY=VALUE` and `~KEY`.

    In a sweep a key may have several values.

    Raises:
        InputError: Hydra cannot read one, or reads several values where one is needed; or one is a
            setting of Hydra's that has no effect.
    """
    parser, overrides = OverridesParser.create(), []
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
        overrides.append(override)
    return overrides


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
    """The arguments of the run that `resume` names, but for the keys that are typed anew.

    Args:
        typed: the arguments of the command.
        code_may_run: whether the run may say what runs on this machine, as its checkpoints do.

    Raises:
        InputError: the file that keeps them is damaged, or names code or processes all the same.
    """
    keys = {each.key_or_group: each.value() for each in typed if not each.is_delete()}
    run = Path(str(keys.get("resume")))
    file = (run.parent.parent if run.parent.name == "checkpoints" else run) / TYPED
    if not file.is_file():
        return []
    words = read_yaml(file, str(file))
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise InputError(f"{file}: a list of texts is needed, found {short(words)}")
    with located(str(file)):
        kept = [str(o.input_line) for o in parsed(words) if o.key_or_group not in keys]
    for word in kept:
        if not code_may_run and RUNS_CODE.match(word):
            raise InputError(f"{file}: {short(word)}: what runs here is typed: give it again")
    return kept


def composed(config_name: str, words: Sequence[str]) -> tuple[DictConfig, list[Override]]:
    """A primary configuration of conf/ with the node `hydra`, and the overrides as read.

    Hydra is initialised, and the words are as on a command line.

    Raises:
        InputError: an override is not readable, names what is not there, or takes nothing away.
    """
    overrides = parsed(words)
    with one_line_errors():
        try:
            config = compose(config_name, overrides=list(words), return_hydra_config=True)
        except (HydraException, ValueError):
            _check_keys(config_name, overrides)
            raise
    for override in overrides:
        key = override.key_or_group
        empty = not override.is_delete() and override.value() == {}
        if empty and OmegaConf.select(config, key):
            raise InputError(
                f"{key}={{}}: mappings are merged, so this takes nothing away: write ~{key}"
            )
    return config, overrides


def without_hydra(config: DictConfig) -> DictConfig:
    """A composed configuration without the node `hydra`."""
    return OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])


def plain(config: DictConfig) -> dict[str, Any]:
    """The same as plain containers, which Ray and pydantic take.

    Raises:
        InputError: an interpolation does not resolve.
    """
    with one_line_errors():
        # Values that are missing stay `???`: `validated` says where.
        values = OmegaConf.to_container(without_hydra(config), resolve=True)
    assert isinstance(values, dict)
    return {str(key): value for key, value in values.items()}


def scenarios_of(config: dict[str, Any], overrides: Sequence[Override]) -> list[Scenario]:
    """The scenarios of a command: the points of its sweep, the last key varying fastest, or one.

    Raises:
        InputError: `sweep` has another form, a key of it was typed too, or a point does not
            compose.
    """
    sweep = config.get("sweep")
    if sweep is None:
        return [Scenario("", {}, config, overrides)]
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


def _check_keys(config_name: str, overrides: Sequence[Override]) -> None:
    """Refuses an unknown option or key: the nearest is named, or all beside it."""
    loader = GlobalHydra.instance().config_loader()
    paths = [str(o.input_line) for o in overrides if o.key_or_group == "hydra.searchpath"]
    typed = [each for each in overrides if not each.key_or_group.startswith("hydra.")]
    groups: dict[str, str] = {}
    for override in typed:
        group, value = override.key_or_group, override.value()
        options = loader.get_group_options(group, config_name=config_name, overrides=paths)
        for option in (value if isinstance(value, list) else [value]) if options else ():
            if str(option) not in options:
                advice = nearest(str(option), options)
                raise InputError(f"{group}={option}: unknown option, {advice}")
            groups[group] = str(override.input_line)
    try:
        keys = _keys(config_name, [*paths, *groups.values()])
    except HydraException:  # where one is a group of other commands alone
        keys = _keys(config_name, paths)
        groups = {group: word for group, word in groups.items() if group.split("/")[0] in keys}
        keys = _keys(config_name, [*paths, *groups.values()])
    for override in typed:
        key, added = override.key_or_group, override.is_add() or override.is_force_add()
        if not added and key not in {*keys, *groups}:
            parents = [key[:end] for end, mark in enumerate(key) if mark == "."]
            parent = next((each for each in reversed(parents) if each in keys), "")
            beside = [name for name in keys if name.rpartition(".")[0] == parent]
            advice = (
                nearest(key, beside, parent and f"{parent}.") if beside else f"{parent} has none"
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


def as_text(key: str, value: str) -> str:
    """The argument by which `key` gets exactly the text `value`."""
    # To OmegaConf, ${ begins an interpolation even in quotes, unless a backslash precedes it; other
    # backslashes are written twice there.
    literal = re.sub(r"(\\*)\$\{", r"\1\1\\${", value)
    # Hydra reads backslashes as they are, unless they are followed by the quote.
    literal = re.sub(
        r'(\\*)("|\Z)', lambda match: 2 * match[1] + match[2].replace('"', r"\""), literal
    )
    return f'{key}="{literal}"'


def assigned(key: str, value: Any) -> str:
    """The argument by which `key` gets a value."""
    return f"{key}={_written(value)}"


def _written(value: Any) -> str:
    """As Hydra reads it, whose mappings have keys without quotes."""
    if isinstance(value, Mapping):
        inner = ",".join(f"{key}:{_written(each)}" for key, each in value.items())
        return f"{{{inner}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_written, value))}]"
    if isinstance(value, Path):
        value = shorter_path(value)
    if isinstance(value, str):
        return value if UNQUOTED.fullmatch(value) else as_text("", value)[1:]
    return json.dumps(value)


def shorter_path(path: Path) -> str:
    """From the working directory, where that is not the longer way."""
    return min(os.path.relpath(path), str(path), key=len)


def leaves(key: str, tree: Any) -> Iterator[tuple[str, Any]]:
    """The values within a tree of plain mappings, by dotted keys below `key`; "" is the root's.

    Empty mappings are among them, and a tree may be a value.
    """
    if not isinstance(tree, Mapping) or not tree:
        yield key, tree
        return
    for name, inner in tree.items():
        yield from leaves(f"{key}.{name}" if key else str(name), inner)


def at(config: Mapping[str, Any], key: str) -> Any:
    """The value of a dotted key, None where there is none."""
    value: Any = config
    for name in key.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
