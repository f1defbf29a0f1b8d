"""A scheduler of the user's own: a class in a Python file that `baselines` names.

To load one executes its file.
"""

from __future__ import annotations

import hashlib
import json
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import dropwhile
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import numpy as np

from agents.scheduler import Decision, Kind, Scheduler
from env.base.errors import InputError, located
from env.base.files import read_bytes
from env.base.schema import listed, names_file, nearest, one_line, short
from env.score.reward import Objective
from env.sim.declared.rules import PLACEMENTS
from env.sim.view.raw_env import RawEnv

LONGEST_NAME = 100
"""Characters of what tables and files call a rule."""


@dataclass(frozen=True)
class RuleCode:
    """A class of a file, and what it is made with.

    Attributes:
        file: path, as it was typed.
        name: of the class.
        parameters: of its constructor, what JSON can hold.
    """

    file: str
    name: str
    parameters: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.file}:{self.name}"

    @property
    def row(self) -> str:
        """What tables call it: its class, with the parameters."""
        given = ",".join(f"{key}={json.dumps(value)}" for key, value in self.parameters.items())
        # Recorded episodes are files of this name.
        return f"{self.name}({given})".replace("/", "_") if given else self.name


def code_in(entry: Any) -> RuleCode | None:
    """The class that an entry of `baselines` names; None where it names a baseline.

    Raises:
        ValueError: it is neither.
    """
    parameters = dict(entry) if isinstance(entry, Mapping) else {"class": entry}
    text = parameters.pop("class", entry)
    file, _, name = str(text).rpartition(":")
    if file.endswith(".py") and name.isidentifier():
        return RuleCode(file, name, parameters)
    if text != entry or not isinstance(text, str) or ".py" in (text[-3:], file[-3:]):
        raise ValueError(
            "the name of a baseline, FILE.py:CLASS, or {class: FILE.py:CLASS, PARAMETER: VALUE} "
            f"is needed, found {short(text)}"
        )
    return None


class OwnRule(Scheduler):
    """A class of the user's own as a scheduler; see `Scheduler` for what it has.

    Args:
        name: what tables call it.
        code: which class.
        path: of its file, absolute, for tracebacks.
        content: of the file, so that other processes need none.

    Attributes:
        sha256: hash of the file and, where there are some, of the parameters.

    Raises:
        InputError: there is no such class or it is no scheduler; or its code raised something, now
            or while it plays.
    """

    def __init__(self, name: str, code: RuleCode, path: str, content: bytes) -> None:
        self.name, self._path, self._made_of = name, path, (name, code, path, content)
        with _shown(str(code), path):
            module = vars(_module(path, content))
            classes = {name: each for name, each in module.items() if isinstance(each, type)}
            if code.name not in classes:
                near = nearest(code.name, list(classes))
                raise InputError(f"{code.file}: no class '{code.name}', {near}")
            rule = self._rule = classes[code.name](**code.parameters)
        for attribute in ("kind", "fit", "order", "tiers", "asked"):
            setattr(self, attribute, getattr(rule, attribute, getattr(Scheduler, attribute)))
        for attribute, allowed in (("kind", get_args(Kind)), ("fit", PLACEMENTS)):
            if (word := getattr(self, attribute)) not in allowed:
                text = f"{attribute} is {short(word)}, allowed: {listed(allowed)}"
                raise InputError(f"{code}: {text}")
        for method in ("reset", "choose"):
            if not hasattr(rule, method):
                raise InputError(f"{code} has no method {method}, reset and choose are needed")
        given = json.dumps(code.parameters, sort_keys=True).encode() if code.parameters else b""
        self.sha256 = hashlib.sha256(content + given).hexdigest()

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process has no module of this file, so it loads the class again.
        return type(self), self._made_of

    def reset(self, env: RawEnv, objective: Objective, seed: np.random.SeedSequence) -> None:
        """Turns to a new episode."""
        with _shown("reset", self._path):
            self._rule.reset(env, objective, seed)

    def choose(self, decision: Decision) -> int:
        """A row of the decision."""
        with _shown("choose", self._path):
            row: int = self._rule.choose(decision)
        return row


def own_rules(codes: Sequence[RuleCode], queued: bool) -> list[OwnRule]:
    """The schedulers that classes of the user's own make.

    Args:
        codes: which classes.
        queued: whether functions wait centrally.

    Raises:
        InputError: see `OwnRule`; or two cannot be told apart, or one does not fit this world.
    """
    rules: list[OwnRule] = []
    rows = [code.row for code in codes]
    for code, row in zip(codes, rows, strict=True):
        name = f"{Path(code.file).name}:{row}" if rows.count(row) > 1 else row
        if name in (rule.name for rule in rules):
            raise InputError(f"baselines: '{name}' is given twice")
        if not names_file(name) or len(name) > LONGEST_NAME:
            raise InputError(f"baselines: {short(name)}: too long or odd for the name of a row")
        with located("baselines"):
            path = Path(code.file).expanduser()
            rule = OwnRule(name, code, str(path.absolute()), read_bytes(path))
        if rule.order is not None and not queued:
            raise InputError(f"baselines: {code} has an order: dispatch=queued is needed")
        rules.append(rule)
    return rules


@lru_cache(maxsize=64)
def _module(path: str, content: bytes) -> ModuleType:
    """What executing a file makes, once in a process."""
    # A name of its own: a file may be called as a module that there is.
    digest = hashlib.sha256(content).hexdigest()
    module = ModuleType(f"{Path(path).stem}_{digest[:12]}")
    module.__file__ = path
    sys.modules[module.__name__] = module  # where dataclasses look for it
    exec(compile(content, path, "exec"), vars(module))
    return module


@contextmanager
def _shown(what: str, path: str) -> Iterator[None]:
    """What the user's code raises becomes an error, with the traceback from that code on.

    Raises:
        InputError: it raised something, or called `sys.exit`.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        theirs = list(dropwhile(lambda frame: frame.filename != path, frames))
        if isinstance(error, InputError) and not theirs:
            raise
        shown = InputError(f"{what} raised {type(error).__name__}: {one_line(str(error))}")
        for line in "".join(traceback.format_list(theirs)).splitlines():
            shown.add_note(line)
        raise shown from None
