"""What `--help` prints: the groups that a command takes, and its values with their comments."""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from string import Template
from typing import Any, NamedTuple, cast

import yaml
from hydra.core.global_hydra import GlobalHydra
from hydra.core.object_type import ObjectType
from omegaconf import DictConfig, OmegaConf

from env.base.errors import InputError
from run.config_file import read_yaml
from run.effect import has_effect
from run.interpolation import leaves

BESIDE = {"experiment": None, "baseline": "evaluate"}
"""Groups that no list of defaults has, and the only command that has options of theirs, if any."""
REFUSED = {
    "train": {"keep_alive": {"hybrid_histogram"}},
    "search_baseline": {"workload": {"azure2019", "azure2021", "azure_like", "azure_like_week"}},
}
"""Options that a command takes in no world."""
NEEDED = {
    "agents": {"queue": ["dispatch=queued"], "tenants": ["dispatch=queued", "workload=tickets"]}
}
"""What options need that their files do not show: words of a command line."""
GIVES_EFFECT = {
    "train": {"algo/cloning": "algo.warm_start=…", "keep_alive": "workload.container_cold_start=…"},
    "evaluate": {"agents": "policy=…", "keep_alive": "workload.container_cold_start=…"},
}
"""The word that gives a group an effect, where it has none without."""
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
    groups = "\n".join(_groups(config_name, config))
    comments = dict(_comments(config))
    tree = _tree(config)
    shown = "\n".join(_shown(tree, comments))
    return Template(config.hydra.help.template).substitute(APP_CONFIG_GROUPS=groups, CONFIG=shown)


def _tree(config: DictConfig) -> dict[str, Any]:
    """The configuration in plain containers, as written, without the node `hydra`."""
    tree = cast(dict[str, Any], OmegaConf.to_container(config, resolve=False))
    del tree["hydra"]
    return tree


def _groups(config_name: str, config: DictConfig) -> Iterator[str]:
    """A line for each group: its options, and after `needs` those that need other words as well."""
    loader, choices = GlobalHydra.instance().config_loader(), config.hydra.runtime.choices
    taken = {group for group in choices if not group.startswith("hydra/")}
    taken |= {group for group, only in BESIDE.items() if only in (None, config_name)}
    folders, tree = _folders(config), _tree(config)
    for group in sorted(taken):
        needed: list[str] = []
        if not has_effect(config_name, tree, group.replace("/", ".")):
            if group not in GIVES_EFFECT.get(config_name, {}):
                continue
            needed.append(GIVES_EFFECT[config_name][group])
        alike: dict[str, list[str]] = {"": []}  # options by what they need
        for option in loader.get_group_options(group, ObjectType.CONFIG):
            if option in REFUSED.get(config_name, {}).get(group, ()):
                continue
            try:
                if group == "experiment":
                    own = sorted(_needed_by_experiment(folders, option, taken, tree))
                else:
                    own = _needed_by_option(folders, group, option)
            except InputError:  # the command does not take it either
                continue
            words = [*needed, *(word for word in own if not _is_given(word, config))]
            alike.setdefault(" ".join(words), []).append(option)
        parts = [
            f"needs {words}: {', '.join(options)}" if words else ", ".join(options)
            for words, options in alike.items()
            if options
        ]
        if parts:
            yield f"{group}: {'; '.join(parts)}"


def _is_given(word: str, config: DictConfig) -> bool:
    key, _, value = word.partition("=")
    if value == "…":
        return OmegaConf.select(config, key) is not None
    return bool(config.hydra.runtime.choices.get(key) == value)


def _needed_by_experiment(
    folders: Sequence[Path],
    experiment: str,
    taken: Set[str],
    base: Mapping[str, Any],
    outer: tuple[str, ...] = (),
) -> set[str]:
    """Values that an experiment leaves open.

    Args:
        folders: of configs.
        experiment: its name.
        taken: groups of the command.
        base: the configuration of the command.
        outer: experiments that begin from it.

    Raises:
        InputError: it is for another command: it has groups or keys that this one lacks; or its
            defaults are none, or go in a circle.
    """
    tree, needed = _read(folders, "experiment", experiment), set()
    for entry in tree.pop("defaults", []):
        if entry == "_self_":
            continue
        if isinstance(entry, str) and entry not in (*outer, experiment):
            inner = (*outer, experiment)
            needed |= _needed_by_experiment(folders, entry, taken, base, inner)
            continue
        if not isinstance(entry, Mapping):
            raise InputError(f"experiment={experiment}: defaults")
        for key, option in entry.items():
            group = str(key).removeprefix("override ").removeprefix("/")
            if group.partition("/")[0] not in taken:
                raise InputError(f"experiment={experiment}: has the group {group}")
            words = _needed_by_option(folders, group, option)
            needed |= {word for word in words if word.endswith("=…")}
    for key, value in tree.items():
        own = base.get(key)
        if isinstance(own, Mapping) and isinstance(value, Mapping) and key not in taken:
            known = value.keys() <= own.keys()
        else:
            known = key in base
        if not known:
            raise InputError(f"experiment={experiment}: has the key {key}")
    return needed - {f"{key}=…" for key, _ in leaves("", tree)}


def _needed_by_option(folders: Sequence[Path], group: str, option: str) -> list[str]:
    """What an option needs: values that its file leaves open, and the world it is for.

    Raises:
        InputError: the file is none of YAML.
    """
    tree = _read(folders, group, option)
    if group == "baseline":
        order = tree["order"]
        shares = ["workload=tickets"] if "within" in order else []
        return [] if order["name"] == "submission" else ["dispatch=queued", *shares]
    package = group.replace("/", ".")
    open_keys = [key for key, value in leaves(package, tree) if value == "???"]
    return [*NEEDED.get(group, {}).get(option, []), *(f"{key}=…" for key in open_keys)]


def _read(folders: Sequence[Path], group: str, option: str) -> dict[str, Any]:
    """What stands in the file of an option."""
    files = [folder / group / f"{option}.yaml" for folder in folders]
    return next((read_yaml(file, str(file)) or {} for file in files if file.is_file()), {})


def _comments(config: DictConfig) -> Iterator[tuple[str, Comment]]:
    """By dotted key, of all files that the configuration was composed of; later ones count."""
    names = {"": config.hydra.job.config_name, **config.hydra.runtime.choices}
    for folder in reversed(_folders(config)):
        for group, option in names.items():
            if option is not None and not group.startswith("hydra/"):
                yield from _of_file(folder / group / f"{option}.yaml", group.replace("/", "."))


def _folders(config: DictConfig) -> list[Path]:
    """Of configs; the first one that has a file is the one that counts."""
    sources = config.hydra.runtime.config_sources
    return [Path(each.path) for each in sources if each.schema == "file"]


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
