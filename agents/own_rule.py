"""A scheduler of the user's own: a class in a Python file that `baselines` names.

To load one executes its file.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import dropwhile
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn, Self, get_args

from agents.order.chosen import Chosen
from agents.scheduler import Kind, Placement, checked_placement
from env.base.errors import InputError, located
from env.base.files import read_bytes
from env.base.schema import listed, names_file, nearest, one_line, short
from env.learn.tenant_agents import TenantAgents
from env.sim.ordering import Order
from env.sim.rules import PLACEMENTS
from env.sim.rules import Placement as Fit

METHODS = ("reset", "place")
"""What a class needs to be a scheduler."""
FURTHER: dict[str, tuple[type, str]] = {
    "choose": (Chosen, "Chosen()"),
    "grant": (TenantAgents, "TenantAgents(…)"),
}
"""Methods that it may have besides, and the order that asks for each."""
LONGEST_NAME = 100
"""Characters of what tables and files call a rule."""
FORM = "FILE.py:CLASS is needed, or {class: FILE.py:CLASS, PARAMETER: VALUE}"


@dataclass(frozen=True)
class RuleCode:
    """Which class of which file is meant, and what it is made with.

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
        told = ",".join(f"{key}={json.dumps(value)}" for key, value in self.parameters.items())
        # Recorded episodes are files of this name.
        return f"{self.name}({told})".replace("/", "_") if told else self.name


def code_in(entry: Any) -> RuleCode | None:
    """The class that an entry of `baselines` names; None where it names a baseline.

    Raises:
        ValueError: it is neither.
    """
    parameters = dict(entry) if isinstance(entry, Mapping) else {}
    text = parameters.pop("class", None) if isinstance(entry, Mapping) else entry
    if not isinstance(text, str):
        raise ValueError(f"the name of a baseline or {FORM}, found {short(entry)}")
    file, _, name = text.rpartition(":")
    if file.endswith(".py") and name.isidentifier():
        try:
            json.dumps(parameters, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{text}: parameters are what JSON can hold: {error}") from None
        return RuleCode(file, name, parameters)
    if isinstance(entry, Mapping) or ".py" in (Path(text).suffix, Path(file).suffix):
        raise ValueError(f"{FORM}, found {short(text)}")
    return None


@dataclass(frozen=True)
class Source:
    """A file of code, as it was read.

    Attributes:
        path: absolute, for tracebacks.
        content: what is executed, so that other processes need no file.
    """

    path: str
    content: bytes

    @classmethod
    def of(cls, code: RuleCode) -> Self:
        """What the file of a class holds now."""
        path = Path(code.file).expanduser()
        return cls(str(path.absolute()), read_bytes(path))


class OwnRule:
    """A class of the user's own as a scheduler; see `Scheduler` for what it has.

    Args:
        name: what tables call it.
        code: which class.
        source: its file.

    Attributes:
        sha256: hash of the file and, where there are some, of the parameters.

    Raises:
        InputError: there is no such class or it is no scheduler; or its code raised something, now
            or while it plays.
    """

    reset: Callable[..., None]
    place: Callable[..., Placement]

    def __init__(self, name: str, code: RuleCode, source: Source) -> None:
        self.name = name
        self._code = code
        self._source = source
        with _shown(str(code), source):
            self._rule = _class_of(code, source)(**code.parameters)
        self.kind: Kind = self._stated("kind", get_args(Kind), "baseline")
        self.fit: Fit = self._stated("fit", PLACEMENTS, "asked")
        self.order: Order | None = getattr(self._rule, "order", None)
        has = [each for each in (*METHODS, *FURTHER) if callable(getattr(self._rule, each, None))]
        lacking = [each for each in METHODS if each not in has]
        if lacking:
            raise InputError(f"{code} has no method {lacking[0]}, {listed(METHODS)} are needed")
        for method, (order, shown) in FURTHER.items():
            if (method in has) != isinstance(self.order, order):
                raise InputError(f"{code}: `order = {shown}` and a method {method} go together")
        for method in has:
            setattr(self, method, partial(self._call, method))
        told = json.dumps(code.parameters, sort_keys=True).encode() if code.parameters else b""
        self.sha256 = hashlib.sha256(source.content + told).hexdigest()

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process has no module of this file, so it loads the class again.
        return type(self), (self.name, self._code, self._source)

    def _stated(self, name: str, allowed: Sequence[Any], default: Any) -> Any:
        """What the class says of itself, in a word."""
        found = getattr(self._rule, name, default)
        if found not in allowed:
            raise InputError(f"{self._code}: {name}: {short(found)}, allowed: {listed(allowed)}")
        return found

    def _call(self, method: str, *given: Any) -> Any:
        with _shown(method, self._source):
            found = getattr(self._rule, method)(*given)
        if method == "place":
            return checked_placement(found, len(given[0].env.state.nodes))
        return found


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
            rule = OwnRule(name, code, Source.of(code))
        if rule.order is not None and not queued:
            raise InputError(f"baselines: {code} has an order: dispatch=queued is needed")
        rules.append(rule)
    return rules


def _class_of(code: RuleCode, source: Source) -> type:
    module = _module(source)
    found = getattr(module, code.name, None)
    if not isinstance(found, type):
        own = [name for name, each in vars(module).items() if isinstance(each, type)]
        advice = nearest(code.name, own) if own else "it has none"
        raise InputError(f"{code.file}: no class '{code.name}', {advice}")
    return found


@lru_cache(maxsize=64)
def _module(source: Source) -> ModuleType:
    """What executing a file makes, once in a process."""
    # A name of its own: a file may be called as a module that there is.
    digest = hashlib.sha256(source.content).hexdigest()
    module = ModuleType(f"{Path(source.path).stem}_{digest[:12]}")
    module.__file__ = source.path
    sys.modules[module.__name__] = module  # where dataclasses look for it
    exec(compile(source.content, source.path, "exec"), vars(module))
    return module


@contextmanager
def _shown(what: str, source: Source) -> Iterator[None]:
    """What the user's code raises becomes an error, with the traceback from that code on.

    Raises:
        InputError: it raised something, or called `sys.exit` or `os._exit`.
    """
    leave, here = os._exit, os.getpid()

    def stay(status: int) -> NoReturn:
        if os.getpid() != here:
            leave(status)  # a process that the code has started
        raise SystemExit(f"os._exit({status})")

    os._exit = stay
    try:
        yield
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        theirs = list(dropwhile(lambda frame: frame.filename != source.path, frames))
        if isinstance(error, InputError) and not theirs:
            raise
        shown = InputError(f"{what} raised {type(error).__name__}: {one_line(str(error))}")
        for line in "".join(traceback.StackSummary.from_list(theirs).format()).splitlines():
            shown.add_note(line)
        raise shown from None
    finally:
        os._exit = leave
