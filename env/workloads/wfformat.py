"""WfFormat, the JSON of WfCommons: version 1.5 and later, and the older layout.

https://github.com/wfcommons/WfFormat. The older layout (up to 1.4) has no `specification`: tasks
hold their own files and measurements; up to 1.3 they may be called `jobs`.
"""

import posixpath
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from env.base.errors import InputError
from env.base.files import parse_json
from env.base.schema import LOWER_CASE, Recorded, short, validated
from env.workloads.task_graph import (
    File,
    Task,
    TaskGraph,
    agreed,
    graph_from_files,
    named,
    positions,
)

BYTES_PER_MB = 1_000_000
KB_PER_MB = 1_000
PROGRAM = re.compile(r"[A-Za-z][\w.+-]*")
"""A program's name. Nextflow records whole shell scripts instead, which say nothing of the kind."""
NUMBERING = re.compile(r"[_-]?(ID)?\d+$")
"""What makes the names of tasks of one kind differ: mProject_ID0000002. Alone it tells no kind."""
MEASURED = ("command", "runtimeInSeconds", "memoryInBytes", "coreCount", "avgCPU")
"""What the newer layout states of a task in a record of its execution."""

Amount = Annotated[float, Field(ge=0)]
Name = Annotated[str, Field(min_length=1)]


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


class _Task(Recorded):
    """A task, what was measured of one, or both."""

    id: Name | None = None
    name: Name | None = None
    category: str | None = None
    parents: list[str] | None = None
    children: list[str] | None = None
    inputFiles: list[str] | None = None
    outputFiles: list[str] | None = None
    files: list[_File] | None = None  # in the older layout
    command: _Command | None = None
    runtimeInSeconds: Amount | None = None
    runtime: Amount | None = None  # seconds, up to 1.3
    memoryInBytes: Amount | None = None
    memory: Amount | None = None  # kB, up to 1.3
    coreCount: Amount | None = None
    cores: Amount | None = None  # in the older layout
    avgCPU: Amount | None = None  # percent of one core

    @model_validator(mode="after")
    def _is_called(self) -> Self:
        if not self.key:
            raise ValueError("one of id and name is needed")
        return self

    @property
    def key(self) -> str:
        """What it is told apart by."""
        return self.id or self.name or ""


class _Tasks(Recorded):
    tasks: list[_Task]
    files: list[_SizedFile] | None = None


class _Workflow(Recorded):
    specification: _Tasks | None = None
    execution: _Tasks | None = None
    tasks: list[_Task] | None = None
    jobs: list[_Task] | None = None  # their name in some files up to 1.3


def read_wfformat(content: bytes, name: str, where: str) -> TaskGraph:
    """Reads one workflow.

    Tasks are told apart by their ids, or by their names where they have none. `parents` and
    `children` are ids, or names that only one task has. An edge that only one of them states
    counts; the two are merged.

    Args:
        content: of the file, uncompressed.
        name: what to call the workflow.
        where: the file, for errors.

    Raises:
        InputError: the content is no WfFormat, a task is unknown, not the only one of its name,
            declared twice or depends on itself, a number is negative or not finite, or two values
            are stated for one thing.
    """
    data = parse_json(content, where)
    if not isinstance(data, Mapping) or not isinstance(data.get("workflow"), Mapping):
        raise InputError(f"{where}: workflow: missing, required")
    workflow = validated(_Workflow, data["workflow"], f"{where}: workflow")
    specification = workflow.specification
    layouts = {
        "specification": None if specification is None else specification.tasks,
        "tasks": workflow.tasks,
        "jobs": workflow.jobs,
    }
    stated = {layout: tasks for layout, tasks in layouts.items() if tasks is not None}
    if len(stated) != 1:
        found = " and ".join(stated) or "none of them"
        raise InputError(f"{where}: workflow: found {found}, one of {', '.join(layouts)} is needed")
    (specified,) = stated.values()
    edges, counts = _edges(specified, where)
    executed = _executed(workflow, where)
    sizes: dict[str, float | None] = {}
    for file in () if specification is None else specification.files or ():
        what = f"{where}: sizeInBytes of file {short(file.id)}"
        sizes[file.id] = agreed(sizes.get(file.id), file.sizeInBytes, what)
    tasks = tuple(
        _task(task.model_copy(update=executed.pop(task.key, {})), sizes, where)
        for task in specified
    )
    graph = graph_from_files(name, where, tasks, edges, counts)
    return replace(graph, foreign_records=tuple(executed))


def _executed(workflow: _Workflow, where: str) -> dict[str, dict[str, Any]]:
    """Measurements by task, where they stand apart from the tasks."""
    executed: dict[str, dict[str, Any]] = {}
    for record in workflow.execution.tasks if workflow.execution else ():
        if record.key in executed:
            raise InputError(f"{where}: task {short(record.key)} has two execution records")
        executed[record.key] = {field: getattr(record, field) for field in MEASURED}
    return executed


def _edges(tasks: Sequence[_Task], where: str) -> tuple[set[tuple[int, int]], Counter[str]]:
    """Edges of `parents` and `children` merged, and how many only one of them states."""
    index = positions((task.key for task in tasks), where)
    of_name = Counter(task.name for task in tasks)
    named = {task.name: own for own, task in enumerate(tasks) if of_name[task.name] == 1}

    def position(reference: str, task: str, kind: str) -> int:
        found = index.get(reference, named.get(reference))
        if found is None:
            count = of_name[reference]
            what = f"the name of {count} tasks and the id of none" if count else "no such task"
            raise InputError(
                f"{where}: task {short(task)} has the {kind} {short(reference)}, {what}"
            )
        return found

    from_parents, from_children = set(), set()
    for own, (name, task) in enumerate(zip(index, tasks, strict=True)):
        from_parents |= {(position(parent, name, "parent"), own) for parent in task.parents or ()}
        from_children |= {(own, position(child, name, "child")) for child in task.children or ()}
    one_sided = from_parents ^ from_children if from_parents and from_children else ()
    return from_parents | from_children, Counter(
        {"edges stated by one end only, kept": len(one_sided)}
    )


def _task(task: _Task, sizes: Mapping[str, float | None], where: str) -> Task:
    place = f"{where}: task {short(task.key)}"
    exact = None if task.memoryInBytes is None else task.memoryInBytes / BYTES_PER_MB
    stated = None if task.memory is None else task.memory / KB_PER_MB
    if exact is not None and stated is not None and abs(exact - stated) * KB_PER_MB < 1:
        stated = None  # the same, rounded
    cores = agreed(task.coreCount, task.cores, f"{place}: coreCount, cores")
    if not cores and task.avgCPU is not None:
        cores = max(1, task.avgCPU / 100)
    reads, writes = (
        {named(file): sizes.get(file) for file in files or ()}
        for files in (task.inputFiles, task.outputFiles)
    )
    return Task(
        name=task.key,
        category=task.category or _category(task.name or task.key, task.command),
        runtime=agreed(task.runtimeInSeconds, task.runtime, f"{place}: runtimeInSeconds, runtime"),
        memory=agreed(exact, stated, f"{place}: memoryInBytes, memory, in MB"),
        cores=cores,
        reads=reads | _files(task, "input", place),
        writes=writes | _files(task, "output", place),
    )


def _category(name: str, command: _Command | None) -> str:
    program = command.program if command else None
    return program if program and PROGRAM.fullmatch(program) else NUMBERING.sub("", name) or name


def _files(task: _Task, link: str, place: str) -> dict[File, float | None]:
    """Files of one direction, in the older layout."""
    files: dict[File, float | None] = {}
    for file in task.files or ():
        if file.link == link:
            what = f"{place}: size of {link} {short(file.name)}"
            size = agreed(file.sizeInBytes, file.size, what)
            called = File(file.id, _place(file), file.name)
            files[called] = agreed(files.get(called), size, what)
    return files


def _place(file: _File) -> str | None:
    """Folder and name, however the folder is written."""
    if not file.path:
        return None
    return posixpath.normpath(f"{file.path}/{file.name}").replace("//", "/")
