"""Reads a file that declares a workflow with `ast`: its functions, and what calls what.

Nothing of the file is executed, so names, regions and the like must be written out in it.
"""

import ast
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import AliasPath, BaseModel, BeforeValidator, Field

from env.base.errors import InputError
from env.base.files import MOST_YAML_BYTES, read_bytes
from env.base.schema import Recorded, Strict, short, validated
from env.sim.declared.bounds import Memory, Name
from env.sim.declared.regions import Regions

WORKFLOW = "Workflow"
"""How the name of the class ends that a workflow is made of, also in Caribou."""
DECLARE, INVOKE, WAIT = "serverless_function", "invoke_serverless_function", "get_predecessor_data"
BLOCKS = (
    *(ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
    *(ast.If, ast.IfExp, ast.BoolOp, ast.Match, ast.ExceptHandler),
)
"""What runs more than once, or not always."""
WITHIN = ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda
CALLED = "function", "payload", "condition"
"""What a call is given."""
WRITE_OUT = "write out each call, with its condition as third argument"

Label = Annotated[str, Field(pattern=r"^[\w-]+$")]
"""Of a workflow or a function; colons part the names of nodes."""


def _joined(region: Any) -> Any:
    named = isinstance(region, Mapping) and region.keys() == {"provider", "region"}
    return f"{region['provider']}:{region['region']}" if named else region


RegionName = Annotated[str, BeforeValidator(_joined), Field(pattern=r"^[\w-]+:[\w-]+$")]
"""`provider:region`, or a mapping with these keys."""


class Provider(Recorded):
    """What is said of a provider: the memory (MB) of functions there."""

    memory: Memory | None = Field(default=None, validation_alias=AliasPath("config", "memory"))


class RegionsAndProviders(Regions):
    """Where functions can be deployed to."""

    allowed: tuple[RegionName, ...] | None = Field(default=None, alias="allowed_regions")
    disallowed: tuple[RegionName, ...] | None = Field(default=None, alias="disallowed_regions")
    providers: dict[str, Provider] | None = None


class Call(NamedTuple):
    """A call of a function, which goes by its name in Python, and the line.

    `condition` is the probability of the call; None where an expression decides when it runs.
    """

    target: str
    condition: float | None
    line: int


class _Declared(Strict):
    name: Label
    entry_point: bool = False
    regions_and_providers: RegionsAndProviders | None = None
    environment_variables: Any = None


class Function(_Declared):
    """A function, the line of its decorator, whether it waits for all its callers, its calls."""

    line: int
    waits: bool
    calls: list[Call]


class _Workflow(Strict):
    name: Label
    version: Name


class Code(_Workflow):
    """A workflow as a file declares it in a line; functions by their names in Python."""

    where: str
    line: int
    functions: dict[str, Function]

    @property
    def workflow_id(self) -> str:
        """What tables, plans and episodes call the workflow."""
        return f"{self.name}-{self.version}"


@dataclass
class Faults:
    """What is wrong with a file, by line: all of it is said at once."""

    where: str
    found: list[tuple[int, str]] = field(default_factory=list)

    def add(self, line: int, text: str) -> None:
        """One more."""
        self.found.append((line, f"{self.where}:{line}: {text}"))

    def refuse(self) -> None:
        """Raises `InputError` if there are any; all but the first are its notes."""
        if self.found:
            first, *others = (text for _, text in sorted(self.found))
            error = InputError(first)
            error.__notes__ = others
            raise error

    def arguments(self, model: type[BaseModel], call: ast.Call, **given: Any) -> dict[str, Any]:
        """What a call is given; nothing, and a fault, if it is not written out or no such thing."""
        given |= _by_name(call, model.model_fields)
        try:
            if not any(isinstance(value, ast.expr) for value in given.values()):
                return dict(validated(model, given, f"{self.where}:{call.lineno}"))
            self.add(call.lineno, "arguments must be written out, not computed")
        except InputError as error:
            self.found.append((call.lineno, str(error)))
        return {}


def read_code(path: Path) -> Code:
    """The workflow that a Python file declares.

    Raises:
        InputError: the file is no Python, or does not declare one workflow by its rules; further
            faults are notes of the error.
    """
    faults, content = Faults(str(path)), read_bytes(path, MOST_YAML_BYTES)
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        fault = getattr(error, "msg", str(error)) or "nested too deeply"
        raise InputError(f"{path}:{line}: not Python: {fault}") from None
    made = []
    for node in tree.body:
        match node:
            case ast.Assign(
                [ast.Name(name), *_],
                ast.Call(ast.Name(called) | ast.Attribute(attr=called)) as call,
            ) if called.endswith(WORKFLOW):
                made.append((name, call))
    if len(made) != 1:
        needed = 'one NAME = Workflow("name", "version") is needed'
        raise InputError(f"{path}:{made[1][1].lineno if made else 1}: {len(made)} found, {needed}")
    ((workflow, call),) = made
    declared = faults.arguments(_Workflow, call)
    functions = _functions(tree, workflow, faults)
    entries = [each for each in functions.values() if each.entry_point]
    if not entries and not faults.found:
        faults.add(call.lineno, "no entry point, one function needs entry_point=True")
    for each in entries[1:]:
        first = f"{entries[0].name} of line {entries[0].line}"
        faults.add(each.line, f"{each.name} is a second entry point beside {first}, one is needed")
    faults.refuse()
    return Code(where=str(path), line=call.lineno, functions=functions, **declared)


def _functions(tree: ast.Module, workflow: str, faults: Faults) -> dict[str, Function]:
    """The functions of the workflow that the file calls so."""
    decorated = [
        (node, decorator)
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for decorator in _calls_of(node.decorator_list, workflow, DECLARE)
    ]
    names = {node.name for node, _ in decorated}
    functions: dict[str, Function] = {}
    lines: dict[str, int] = {}
    outside = set(_calls_of(ast.walk(tree), workflow, INVOKE))
    for node, decorator in decorated:
        line, inside = decorator.lineno, list(ast.walk(node))
        outside.difference_update(inside)
        calls = _calls(inside, workflow, names, faults)
        if declared := faults.arguments(_Declared, decorator, name=node.name):
            for name in (f"def {node.name}", f"name '{declared['name']}'"):
                if lines.setdefault(name, line) != line:
                    faults.add(line, f"{name} is used twice, in line {lines[name]} too")
            waits = bool(_calls_of(inside, workflow, WAIT))
            functions[node.name] = Function(line=line, waits=waits, calls=calls, **declared)
    for call in outside:
        faults.add(call.lineno, f"{INVOKE} outside of the functions of the workflow")
    return functions


def _calls_of(nodes: Iterable[ast.AST], workflow: str, method: str) -> list[ast.Call]:
    """The nodes that are `workflow.method(...)`, as they stand in the file."""
    calls = []
    for node in nodes:
        match node:
            case ast.Call(ast.Attribute(ast.Name(name), called)):
                if (name, called) == (workflow, method):
                    calls.append(node)
    return sorted(calls, key=lambda call: (call.lineno, call.col_offset))


def _by_name(call: ast.Call, names: Iterable[str]) -> dict[str, Any]:
    """What a call is given, by name: values that are written out, and expressions."""
    given = dict(zip(names, call.args, strict=False))
    given |= {keyword.arg or "**": keyword.value for keyword in call.keywords}
    found: dict[str, Any] = dict(given)
    for name, expression in given.items():
        with suppress(ValueError, TypeError, RecursionError):
            found[name] = ast.literal_eval(expression)
    return found


def _calls(
    inside: Sequence[ast.AST], workflow: str, names: Collection[str], faults: Faults
) -> list[Call]:
    """The calls in a function, by line; each runs once, whatever the function does."""
    blocks = (block for block in inside[1:] if isinstance(block, BLOCKS + WITHIN))
    hidden = {each for block in blocks for each in ast.walk(block)}
    calls = []
    for node in _calls_of(inside, workflow, INVOKE):
        given = _by_name(node, CALLED)
        once = len(given) == len(node.args) + len(node.keywords)
        once = once and not any(isinstance(each, ast.Starred) for each in node.args)
        target, holds = given.get("function"), given.get("condition", given.get("conditional", 1))
        if not isinstance(target, ast.Name) or target.id not in names:
            faults.add(node.lineno, "what is called must be a function of the workflow, by name")
        elif not once or not given.keys() <= {*CALLED, "conditional"}:
            faults.add(node.lineno, f"{INVOKE} takes {', '.join(CALLED)}, each once, and no more")
        elif node in hidden:
            where = "a loop, a branch or a function within"
            faults.add(node.lineno, f"{target.id} is called in {where}: {WRITE_OUT}")
        elif isinstance(holds, ast.expr):
            calls.append(Call(target.id, None, node.lineno))
        elif isinstance(holds, int | float) and 0 <= holds <= 1:
            calls.append(Call(target.id, float(holds), node.lineno))
        else:
            fault = f"condition {short(holds)} is no probability, 0 to 1 is needed"
            faults.add(node.lineno, fault)
    return calls
