"""WfFormat, the JSON of WfCommons: version 1.5 and later, and the older layout.

https://github.com/wfcommons/WfFormat. The older layout (up to 1.4) has no `specification`: tasks
hold their own files and measurements; up to 1.3 they may be called `jobs`.
"""

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AliasChoices, BeforeValidator, Field, model_validator

from env.base.errors import InputError
from env.base.files import parse_json
from env.base.schema import LOWER_CASE, Recorded, short, validated
from env.sim.declared.bounds import NamedResources
from env.workloads.task_graph import (
    NO_TASK,
    Task,
    TaskGraph,
    agreed,
    graph_from_files,
    position,
    positions,
    sized_files,
)

BYTES_PER_MB = 1_000_000
KB_PER_MB = 1_000
PROGRAM = re.compile(r"[A-Za-z][\w.+-]*")
"""A program's name. Nextflow records whole shell scripts instead, which say nothing of the kind."""
NUMBERING = re.compile(r"[_-]?(ID)?\d+$")
"""What makes the names of tasks of one kind differ: mProject_ID0000002. Alone it is no kind."""
MEASURED = ("command", "runtimeInSeconds", "memoryInBytes", "coreCount", "avgCPU")
"""What a record of an execution states of a task, in the newer layout."""

Amount = Annotated[float, Field(ge=0)]
Name = Annotated[str, Field(min_length=1)]
NULL_AS_EMPTY = BeforeValidator(lambda value: [] if value is None else value)
Item = TypeVar("Item")
ListOf = Annotated[list[Item], NULL_AS_EMPTY, Field(default_factory=list)]


class _Command(Recorded):
    program: str | None = None


class _SizedFile(Recorded):
    id: Name
    sizeInBytes: Amount | None = None


class _File(Recorded):
    """A file of a task, in the older layout."""

    id: Name | None = None
    name: Name
    path: str | None = None
    link: Annotated[Literal["input", "output"], LOWER_CASE]
    sizeInBytes: Amount | None = None
    size: Amount | None = None  # bytes, up to 1.3

    @property
    def place(self) -> str | None:
        """Folder and name, however the folder is written."""
        if not self.path:
            return None
        return posixpath.normpath(f"{self.path}/{self.name}").replace("//", "/")


class _Task(Recorded):
    """A task, what was measured of one, or both."""

    id: Name | None = None
    name: Name | None = None
    category: str | None = None
    parents: ListOf[str]
    children: ListOf[str]
    inputFiles: ListOf[str]
    outputFiles: ListOf[str]
    files: ListOf[_File]  # in the older layout
    command: _Command | None = None
    runtimeInSeconds: Amount | None = None
    runtime: Amount | None = None  # seconds, up to 1.3
    memoryInBytes: Amount | None = None
    memory: Amount | None = None  # kB, up to 1.3
    coreCount: Amount | None = None
    cores: Amount | None = None  # in the older layout
    avgCPU: Amount | None = None  # percent of one core
    resources: NamedResources = Field(default_factory=dict)  # not of WfFormat, which allows more

    @model_validator(mode="after")
    def _is_called(self) -> Self:
        if not self.key:
            raise ValueError("one of id and name is needed")
        return self

    @property
    def key(self) -> str:
        """What identifies it."""
        return self.id or self.name or ""


class _Tasks(Recorded):
    tasks: list[_Task] = Field(default_factory=list, validation_alias=AliasChoices("tasks", "jobs"))
    files: ListOf[_SizedFile]


class _Workflow(_Tasks):
    """The older layout has the tasks in the workflow itself."""

    specification: _Tasks | None = None
    execution: _Tasks | None = None


def read_wfformat(content: bytes, name: str, where: str) -> TaskGraph:
    """Reads one workflow from the unpacked content of a file, which errors call `where`.

    Tasks are identified by their ids, or by their names where they have none. `parents` and
    `children` are ids, or names that only one task has. An edge that only one of them states
    counts; the two are merged. Files of the older layout are identified by the first of id, place
    (folder and name) and name that all files of the workflow state.

    Raises:
        InputError: the content is no WfFormat, a task is unknown, not the only one of its name or
            declared twice, a number is negative or not finite, or two values are stated for one
            thing.
    """
    data = parse_json(content, where)
    if not isinstance(data, Mapping) or not isinstance(data.get("workflow"), Mapping):
        raise InputError(f"{where}: workflow: missing, required")
    workflow = validated(_Workflow, data["workflow"], f"{where}: workflow")
    specification = workflow.specification or workflow
    edges, counts = _edges(specification.tasks, where)
    executed: dict[str, dict[str, Any]] = {}
    for record in workflow.execution.tasks if workflow.execution else ():
        if record.key in executed:
            raise InputError(f"{where}: task {short(record.key)} has two execution records")
        executed[record.key] = {field: getattr(record, field) for field in MEASURED}
    sizes = sized_files(((file.id, file.sizeInBytes) for file in specification.files), where)
    files = [file for task in specification.tasks for file in task.files]
    labels = (label for label in ("id", "place") if all(getattr(file, label) for file in files))
    label = next(labels, "name")
    tasks = tuple(
        _task(task.model_copy(update=executed.pop(task.key, {})), sizes, label, where)
        for task in specification.tasks
    )
    counts[NO_TASK] = len(executed)
    return graph_from_files(name, where, tasks, edges, counts)


def _edges(tasks: Sequence[_Task], where: str) -> tuple[set[tuple[int, int]], Counter[str]]:
    """Edges of `parents` and `children` merged, and how many only one of them states."""
    index = positions((task.key for task in tasks), where)
    names = [task.name or task.key for task in tasks]
    count = Counter(names)
    index = {name: place for place, name in enumerate(names) if count[name] == 1} | index
    from_parents, from_children = set(), set()
    for place, task in enumerate(tasks):
        has = f"{where}: task {short(task.key)} has the"
        for parent in task.parents:
            from_parents.add((position(parent, index, f"{has} parent"), place))
        for child in task.children:
            from_children.add((place, position(child, index, f"{has} child")))
    one_sided = from_parents ^ from_children if from_parents and from_children else ()
    return from_parents | from_children, Counter(
        {"edges stated by one end only, kept": len(one_sided)}
    )


def _task(task: _Task, sizes: Mapping[str, float | None], label: str, where: str) -> Task:
    where = f"{where}: task {short(task.key)}"
    in_bytes = None if task.memoryInBytes is None else task.memoryInBytes / BYTES_PER_MB
    in_kb = None if task.memory is None else task.memory / KB_PER_MB
    cores = agreed(task.coreCount, task.cores, f"{where}: coreCount, cores")
    if not cores and task.avgCPU is not None:
        cores = max(1, task.avgCPU / 100)

    def files(names: Iterable[str], link: str) -> dict[str, float | None]:
        stated = [(name, sizes.get(name)) for name in names]
        for file in task.files:
            if file.link == link:
                what = f"{where}: {link} {short(file.name)}: sizeInBytes, size"
                stated.append((getattr(file, label), agreed(file.sizeInBytes, file.size, what)))
        return sized_files(stated, f"{where}: {link}")

    return Task(
        name=task.key,
        category=task.category or _category(task.name or task.key, task.command),
        runtime=agreed(task.runtimeInSeconds, task.runtime, f"{where}: runtimeInSeconds, runtime"),
        memory=agreed(in_bytes, in_kb, f"{where}: memoryInBytes, memory, in MB"),
        cores=cores,
        resources=task.resources,
        reads=files(task.inputFiles, "input"),
        writes=files(task.outputFiles, "output"),
    )


def _category(name: str, command: _Command | None) -> str:
    program = command.program if command else None
    return program if program and PROGRAM.fullmatch(program) else NUMBERING.sub("", name) or name
