"""What `--help` prints: the groups that a command takes, and its values with their comments."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template
from typing import Any, NamedTuple, cast

import yaml
from hydra import compose
from hydra.core.config_loader import ConfigLoader
from hydra.core.global_hydra import GlobalHydra
from hydra.core.object_type import ObjectType
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf

BESIDE = {"experiment": None, "baseline": "evaluate"}
"""Groups that no list of defaults has, and the only command that has options of theirs, if any."""
_KEY = re.compile(r"( *)([\w.-]+):(?:\s|$)(.*)")
_BEHIND = re.compile(r"(?:^|\s)#\s?(.*)")
_PACKAGE = re.compile(r"# @package (\S+)")


class Comment(NamedTuple):
    """Of a key: whole lines above it, and the end of its own line with what goes on below."""

    above: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()


def help_text(config_name: str, config: DictConfig) -> str:
    """The help of a command.

    Args:
        config_name: its primary configuration in conf/.
        config: composed of what was typed, with the node `hydra`, whose template it fills.
    """
    loader = GlobalHydra.instance().config_loader()
    groups = "\n".join(_groups(loader, config_name, config.hydra.runtime.choices))
    comments = dict(_comments(config))
    tree = cast(dict[str, Any], OmegaConf.to_container(config, resolve=False))
    del tree["hydra"]
    shown = "\n".join(_shown(tree, comments))
    return Template(config.hydra.help.template).substitute(APP_CONFIG_GROUPS=groups, CONFIG=shown)


def _groups(
    loader: ConfigLoader, config_name: str, choices: Mapping[str, str | None]
) -> Iterator[str]:
    taken = {group for group in choices if not group.startswith("hydra/")}
    taken |= {group for group, only in BESIDE.items() if only in (None, config_name)}
    for group in sorted(taken):
        options = loader.get_group_options(group, ObjectType.CONFIG)
        if group == "experiment":
            base = compose(config_name)
            options = [each for each in options if _is_for(config_name, each, base, taken)]
        yield f"{group}: {', '.join(options)}"


def _is_for(config_name: str, experiment: str, base: DictConfig, groups: set[str]) -> bool:
    """Whether an experiment is for this command: those of others have groups or keys it lacks."""
    try:
        found = compose(config_name, overrides=[f"experiment={experiment}"])
    except HydraException:
        return False
    own = [key for key in base if key not in groups and isinstance(base[key], DictConfig)]
    return found.keys() <= base.keys() and all(found[key].keys() <= base[key].keys() for key in own)


def _comments(config: DictConfig) -> Iterator[tuple[str, Comment]]:
    """By dotted key, of all files that the configuration was composed of; later ones count."""
    runtime = config.hydra.runtime
    folders = [Path(each.path) for each in runtime.config_sources if each.schema == "file"]
    names = {"": config.hydra.job.config_name, **runtime.choices}
    for folder in reversed(folders):  # the first one that has a file is the one that counts
        for group, option in names.items():
            if option is not None and not group.startswith("hydra/"):
                yield from _of_file(folder / group / f"{option}.yaml", group.replace("/", "."))


def _of_file(file: Path, package: str) -> Iterator[tuple[str, Comment]]:
    if not file.is_file():
        return
    text = file.read_text()
    defaults = (yaml.safe_load(text) or {}).get("defaults", [])
    for same_group in (each for each in defaults if isinstance(each, str) and each[0] != "_"):
        yield from _of_file(file.with_name(f"{same_group}.yaml"), package)
    declared = _PACKAGE.match(text)
    if declared is not None and declared[1] == "_global_":
        package = ""
    yield from _of_lines(text.splitlines(), package)


def _of_lines(lines: list[str], package: str) -> Iterator[tuple[str, Comment]]:
    above: list[str] = []
    path: list[tuple[int, str]] = []
    last: tuple[str, Comment, int] | None = None  # key, comment, and where that begins in its line
    for line in lines:
        if line.lstrip().startswith("#"):
            if last is not None and line.index("#") == last[2]:
                key, comment, column = last
                last = key, comment._replace(behind=(*comment.behind, line.strip("# "))), column
                yield last[:2]
            else:
                above.append(line.strip())
            continue
        found = _KEY.match(line)
        if found is not None:
            indent, name, rest = len(found[1]), found[2], found[3]
            path = [each for each in path if each[0] < indent] + [(indent, name)]
            key = ".".join(filter(None, (package, *(each[1] for each in path))))
            behind = _BEHIND.search(rest)
            comment = Comment(tuple(above), (behind[1],) if behind else ())
            column = found.start(3) + behind.start() + 1 if behind else -1
            last = key, comment, column
            yield key, comment
        above = []


def _shown(
    tree: Mapping[str, Any], comments: Mapping[str, Comment], prefix: str = ""
) -> Iterator[str]:
    indent = "  " * prefix.count(".")
    for name, value in tree.items():
        comment = comments.get(f"{prefix}{name}", Comment())
        yield from (f"{indent}{line}" for line in comment.above)
        inner = isinstance(value, Mapping) and bool(value)
        written = yaml.safe_dump(value, default_flow_style=True, width=1_000, sort_keys=False)
        line = f"{indent}{name}:" if inner else f"{indent}{name}: {written.splitlines()[0]}"
        yield "  # ".join((line, " ".join(comment.behind))) if comment.behind else line
        if inner:
            yield from _shown(value, comments, f"{prefix}{name}.")
