"""A scheduler of the user's own: a class in a Python file that the command line names.

To load one executes its file.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn, Self, get_args

import numpy as np

from agents.order.chosen import Chosen
from agents.scheduler import Decision, Kind, Placement, checked_placement
from env.base.errors import InputError, located
from env.base.files import name_apart, read_bytes, user_path
from env.base.schema import listed, names_file, nearest, one_line, short
from env.learn.tenant_agents import TenantAgents
from env.score.reward import Objective
from env.sim.ordering import Order
from env.sim.rules import PLACEMENTS
from env.sim.rules import Placement as Fit
from env.sim.view.raw_env import RawEnv

METHODS = ("reset", "place")
"""What a class needs to be a scheduler."""
MOST_FRAMES = 5
"""How many lines of code an error in a rule shows, the last: some call themselves without end."""
LONGEST_NAME = 100
"""Characters of what tables and files call a rule."""
FORM = "FILE.py:CLASS is needed, or {class: FILE.py:CLASS, PARAMETER: VALUE}"


@dataclass(frozen=True)
class RuleCode:
    """Which class of which file is meant, and what it is made with.

    Attributes:
        file: path, as it was typed.
        name: of the class.
        parameters: of its constructor.
    """

    file: str
    name: str
    parameters: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.file}:{self.name}"


def code_in(entry: Any) -> RuleCode | None:
    """The class that an entry of `baselines` names; None where it names a baseline.

    Raises:
        ValueError: it is neither.
    """
    parameters: Mapping[str, Any] = {}
    text = entry
    if isinstance(entry, Mapping):
        if "class" not in entry:
            raise ValueError(f"{FORM}, found a mapping without class")
        # No parameter can be called `class`.
        text, parameters = entry["class"], {k: v for k, v in entry.items() if k != "class"}
        if not isinstance(text, str):
            raise ValueError(f"{FORM}, found class: {short(text)}")
    if not isinstance(text, str):
        raise ValueError(f"the name of a baseline or {FORM}, found {short(text)}")
    file, _, name = text.rpartition(":")
    if file.endswith(".py") and name.isidentifier():
        _check_json(text, parameters)
        return RuleCode(file, name, parameters)
    if isinstance(entry, Mapping) or ".py" in (Path(text).suffix, Path(file).suffix):
        raise ValueError(f"{FORM}, found {short(text)}")
    return None


def _check_json(rule: str, parameters: Mapping[str, Any]) -> None:
    """Refuses what run.json cannot hold."""
    for name, value in parameters.items():
        try:
            json.dumps(value, allow_nan=False, sort_keys=True)
        except (TypeError, ValueError):
            raise ValueError(
                f"{rule}: parameter {short(name)}: what JSON can hold is needed, as a finite "
                f"number, found {short(value)}"
            ) from None


def row_names(codes: Sequence[RuleCode]) -> list[str]:
    """What tables call rules: by their classes, with what tells equal ones apart.

    That is the file, and of one file the parameters that differ.
    """
    paths = [user_path(code.file).resolve() for code in codes]
    # As JSON, since in Python 1 equals true.
    written = [
        {key: json.dumps(value, sort_keys=True) for key, value in code.parameters.items()}
        for code in codes
    ]
    names = []
    for code, path, own in zip(codes, paths, written, strict=True):
        alike = [
            each
            for other, where, each in zip(codes, paths, written, strict=True)
            if (other.name, where) == (code.name, path)
        ]
        others = {
            where.parts
            for other, where in zip(codes, paths, strict=True)
            if other.name == code.name and where != path
        }
        file = f"{name_apart(path.parts, others)}:" if others else ""
        told = []
        for key, text in own.items():
            values = {each.get(key) for each in alike}
            value = code.parameters[key]
            # A word goes without quotes unless that is another value.
            shown = value if isinstance(value, str) and value not in values else text
            if values != {text}:
                told.append(f"{key}={shown}")
        # Recorded episodes are files of this name.
        names.append(file + code.name + (f"({','.join(told)})".replace("/", "_") if told else ""))
    return names


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
        path = user_path(code.file)
        return cls(str(path.absolute()), read_bytes(path))


class OwnRule:
    """A class of the user's own as a scheduler.

    Whatever it raises while it plays is an `InputError`, with the lines of its code as notes.

    Args:
        name: what tables call it.
        code: which class.
        source: its file.

    Attributes:
        sha256: hash of the file and, where there are some, of the parameters.

    Raises:
        InputError: there is no such class, it is no scheduler, or making it raised something.
    """

    def __init__(self, name: str, code: RuleCode, source: Source) -> None:
        self.name = name
        self._code = code
        self._source = source
        self._rule = _made(code, source)
        self.kind: Kind = self._stated("kind", get_args(Kind), "baseline")
        self.fit: Fit = self._stated("fit", PLACEMENTS, "asked")
        self.order: Order | None = self._said("order", None)
        if self.order is not None and not hasattr(self.order, "write"):
            raise InputError(f"{code}: order: {short(self.order)}, one of agents/order is needed")
        told = json.dumps(code.parameters, sort_keys=True).encode() if code.parameters else b""
        self.sha256 = hashlib.sha256(source.content + told).hexdigest()

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process has no module of this file, so it loads the class again.
        return type(self), (self.name, self._code, self._source)

    def _stated(self, name: str, allowed: Sequence[Any], default: Any) -> Any:
        """What the class says of itself, in a word."""
        found = self._said(name, default)
        if not isinstance(found, str) or found not in allowed:
            raise InputError(f"{self._code}: {name}: {short(found)}, allowed: {listed(allowed)}")
        return found

    def _said(self, name: str, default: Any) -> Any:
        with _one_line(self._source.path, f"{self._code}: {name}"):
            # A property that raises AttributeError is there all the same.
            if hasattr(type(self._rule), name):
                return getattr(self._rule, name)
            return getattr(self._rule, name, default)

    def reset(self, env: RawEnv, objective: Objective, seed: np.random.SeedSequence) -> None:
        """Turns to a new episode."""
        with self._named("reset"):
            self._rule.reset(env, objective, seed)

    def place(self, decision: Decision) -> Placement:
        """NUMA node and MB.

        Raises:
            InputError: it raised something, or returned no placement or a node that there is not.
        """
        with self._named("place"):
            placed = self._rule.place(decision)
        return checked_placement(placed, len(decision.env.state.nodes))

    def _named(self, method: str) -> AbstractContextManager[None]:
        # Bad input to what it calls is its own fault, and it may not end an evaluation silently.
        def shown(error: BaseException) -> InputError:
            line = InputError(f"{method} raised {one_line(_told(error))}")
            for below in _lines_of(error, self._source):
                line.add_note(below)
            return line

        return _raising(shown)


class OwnChooser(OwnRule):
    """One that says who goes next as well."""

    def choose(self, decision: Decision) -> int | None:
        """Which of `env.waiting` goes next."""
        with self._named("choose"):
            chosen: int | None = self._rule.choose(decision)
        return chosen


class OwnGranter(OwnRule):
    """One that says how many tickets workflows get as well."""

    def grant(self, decision: Decision) -> float:
        """Tickets of `env.newcomer`."""
        with self._named("grant"):
            tickets: float = self._rule.grant(decision)
        return tickets


FURTHER: dict[str, tuple[type[OwnRule], type, str]] = {
    "choose": (OwnChooser, Chosen, "Chosen()"),
    "grant": (OwnGranter, TenantAgents, "TenantAgents(…)"),
}
"""Methods that a class may have besides: what it is with one, and the order that asks for it."""


def own_rules(codes: Sequence[RuleCode], queued: bool) -> list[OwnRule]:
    """The schedulers that classes of the user's own make.

    Args:
        codes: which classes.
        queued: whether functions wait centrally.

    Raises:
        InputError: see `OwnRule`; or two cannot be told apart, or one does not fit this world.
    """
    rules: list[OwnRule] = []
    for name, code in zip(row_names(codes), codes, strict=True):
        if name in (rule.name for rule in rules):
            raise InputError(f"baselines: '{name}' is given twice")
        if not names_file(name) or len(name) > LONGEST_NAME:
            raise InputError(f"baselines: {short(name)}: too long or odd to tell two rules apart")
        with located("baselines"):
            source = Source.of(code)
            found = _class_of(code, source)
            further = _further(found)
            made = FURTHER[further[0]][0] if further else OwnRule
            rule = made(name, code, source)
            _check_world(rule, code, further, queued)
        rules.append(rule)
    return rules


def _check_world(rule: OwnRule, code: RuleCode, further: Sequence[str], queued: bool) -> None:
    for method, (_, order, shown) in FURTHER.items():
        asked = isinstance(rule.order, order)
        if asked != (method in further):
            lacks = f"no method {method}" if asked else f"a method {method} and another order"
            raise InputError(f"{code} has {lacks}: {method} and `order = {shown}` go together")
    if rule.order is not None and not queued:
        raise InputError(
            f"{code} has an order of a central queue, here functions are placed when they are "
            "submitted: dispatch=queued is needed"
        )


def _made(code: RuleCode, source: Source) -> Any:
    """What making the class gives, which need not be an instance of it."""
    found = _class_of(code, source)
    needed = (*METHODS, *_further(found))
    with _one_line(source.path, str(code)):
        known = inspect.signature(found).parameters.values()
    _check_parameters(code, known)
    with _one_line(source.path, str(code)):
        rule = found(**code.parameters)
        lacking = [each for each in needed if not callable(getattr(rule, each, None))]
    if lacking:
        who = f"{code}" if isinstance(rule, found) else f"{code} makes {type(rule).__name__}, which"
        raise InputError(f"{who} has no method {lacking[0]}, {listed(needed)} are needed")
    return rule


def _further(found: type) -> list[str]:
    """Those of `FURTHER` that a class has."""
    return [method for method in FURTHER if hasattr(found, method)]


def _class_of(code: RuleCode, source: Source) -> type:
    module = _module(source, code.file)
    with _one_line(source.path, code.file):
        found = getattr(module, code.name, None)
    if not isinstance(found, type):
        own = [
            name
            for name, each in vars(module).items()
            if isinstance(each, type) and each.__module__ == module.__name__
        ]
        advice = nearest(code.name, own) if own else "it has none"
        raise InputError(f"{code.file}: no class '{code.name}', {advice}")
    return found


def _check_parameters(code: RuleCode, known: Collection[inspect.Parameter]) -> None:
    named = {
        each.name: each
        for each in known
        if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
    }
    for name in code.parameters:
        if name not in named and not any(each.kind is each.VAR_KEYWORD for each in known):
            advice = nearest(str(name), list(named)) if named else "it takes none"
            raise InputError(f"{code}: parameter {short(name)} is unknown, {advice}")
    for name, each in named.items():
        if each.default is each.empty and name not in code.parameters:
            raise InputError(
                f"{code}: parameter '{name}' is missing: {{class: {code}, {name}: VALUE}}"
            )


@lru_cache(maxsize=64)
def _module(source: Source, where: str) -> ModuleType:
    """What executing a file makes, once in a process; `where` is what errors call it."""
    # A name of its own: a file may be called as a module that there is.
    digest = hashlib.sha256(source.content).hexdigest()
    module = ModuleType(f"{Path(source.path).stem}_{digest[:12]}")
    module.__file__ = source.path
    sys.modules[module.__name__] = module  # where dataclasses look for it
    with _one_line(source.path, where):
        exec(compile(source.content, source.path, "exec"), vars(module))
    return module


def _one_line(path: str, where: str) -> AbstractContextManager[None]:
    """Whatever the code of a file raises becomes one line, with that of the file."""

    def shown(error: BaseException) -> InputError:
        lines = [
            at.lineno for at in traceback.extract_tb(error.__traceback__) if at.filename == path
        ]
        if isinstance(error, SyntaxError) and error.filename == path:
            lines, error = [error.lineno], SyntaxError(error.msg)
        at = f"line {lines[-1]}: " if lines else ""
        return InputError(f"{where}: {at}{one_line(_told(error))}")

    return _raising(shown)


@contextmanager
def _raising(shown: Callable[[BaseException], InputError]) -> Iterator[None]:
    """Whatever code of the user's raises comes out as it is shown; `os._exit` raises as well."""
    leave, here = os._exit, os.getpid()

    def stay(status: int) -> NoReturn:
        if os.getpid() != here:
            leave(status)  # a process that the code has started
        raise SystemExit(f"os._exit({status})")

    os._exit = stay
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise shown(error) from None
    finally:
        os._exit = leave


def _lines_of(error: BaseException, source: Source) -> list[str]:
    """The lines that led to an error, of the rule's file and of others in its folder."""
    content = source.content.decode(errors="replace").splitlines()
    lines = []
    for at in traceback.extract_tb(error.__traceback__):
        path = Path(at.filename)
        if path.parent == Path(source.path).parent and at.lineno is not None:
            # The file may have changed, or not be there in another process.
            line = content[at.lineno - 1].strip() if at.filename == source.path else at.line
            lines.append(f"  {path.name}: line {at.lineno}, in {at.name}: {line}")
    return lines[-MOST_FRAMES:]


def _told(error: BaseException) -> str:
    """What was raised and what it says, which may raise, too."""
    try:
        return f"{type(error).__name__}: {error}"
    except KeyboardInterrupt:
        raise
    except BaseException:
        return type(error).__name__
