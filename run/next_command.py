"""The command that a finished run names as the next one, as it works where the user stands."""

import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hydra import compose
from hydra.core.hydra_config import HydraConfig

from run.command import PROJECT
from run.composing import WORLD, assigned, plain, shorter_path


def evaluate_command(config: Mapping[str, Any], **players: Any) -> str:
    """The command that evaluates in the world of this run.

    It has the options that are not the default, and the values that differ from those of the
    options: also values of an experiment. `players` are values by key, paths among them are written
    from where the user stands.
    """
    sources = HydraConfig.get().runtime.config_sources
    folders = [Path(each.path) for each in sources if each.provider.endswith("in command-line")]
    given = [word for folder in folders for word in ("--config-dir", shorter_path(folder))]
    paths = [word for word in HydraConfig.get().overrides.hydra if "searchpath" in word]
    default = compose("evaluate", overrides=paths, return_hydra_config=True).hydra.runtime.choices
    chosen = [
        f"{group}={option}"
        for group, option in HydraConfig.get().runtime.choices.items()
        if group.split("/")[0] in WORLD and default.get(group) != option
    ]
    base = plain(compose("evaluate", overrides=paths + chosen))
    groups = [group for group in WORLD if group in config]
    changes = [word for group in groups for word in _changes(group, base[group], config[group])]
    named = [assigned(key, value) for key, value in players.items()]
    evaluate = shorter_path(PROJECT / "evaluate.py")
    return _typed(evaluate, *given, *chosen, *changes, *named)


def curves_command(folder: Path) -> str:
    """The command that shows the curves of a run."""
    return _typed("-m", "tensorboard.main", "--logdir", shorter_path(folder))


def _typed(*words: str) -> str:
    """The words behind the interpreter, as a shell takes them."""
    return shlex.join([sys.orig_argv[0], *words])


def _changes(key: str, before: Any, now: Any) -> Iterator[str]:
    """Overrides that make one value of another; mappings are merged, so key by key."""
    if not isinstance(before, Mapping) or not isinstance(now, Mapping):
        if before != now:
            yield assigned(key, now)
        return
    for name in before:
        if name not in now:
            yield f"~{key}.{name}"
    for name, value in now.items():
        if name in before:
            yield from _changes(f"{key}.{name}", before[name], value)
        else:
            yield f"+{assigned(f'{key}.{name}', value)}"
