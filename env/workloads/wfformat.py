"""WfFormat, the JSON of WfCommons: version 1.5 and later, and the older layout.

https://github.com/wfcommons/WfFormat. The older layout (up to 1.4) has no `specification`: tasks
hold their own files and measurements; up to 1.3 they may be called `jobs`.
"""

import posixpath
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

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

LAYOUTS = ("specification", "tasks", "jobs")
"""Keys of a workflow, any of which holds all of its tasks."""

Amount = Annotated[float, Field(ge=0)]
Name = Annotated[str, Field(min_length=1)]


class _Command(Recorded):
    program: str | None = None


class _Measured(Recorded):
    """What both layouts measure of a task."""

    command: _Command | None = None
    avgCPU: Amount | None = None  # percent of one core
    memoryInBytes: Amount | None = None

    @property
    def megabytes(self) -> float | None:
        return None if self.memoryInBytes is None else self.memoryInBytes / BYTES_PER_MB


class _Linked(Recorded):
    """What both layouts say of the place of a task."""

    id: Name | None = None
    name: str | None = None
    parents: list[str] | None = None
    children: list[str] | None = None


class _SpecifiedTask(_Linked):
    id: Name
    inputFiles: list[str] | None = None
    outputFiles: list[str] | None = None


class _SpecifiedFile(Recorded):
    id: Name
    sizeInBytes: Amount | None = None


class _Specification(Recorded):
    tasks: list[_SpecifiedTask]
    files: list[_SpecifiedFile] | None = None


class _ExecutedTask(_Measured):
    id: Name
    runtimeInSeconds: Amount | None = None
    coreCount: Amount | None = None


class _Execution(Recorded):
    tasks: list[_ExecutedTask]


class _Workflow(Recorded):
    specification: _Specification
    execution: _Execution | None = None


class _OldFile(Recorded):
    name: Name
    id: Name | None = None
    path: str | None = None
    link: Annotated[Literal["input", "output"], LOWER_CASE]
    sizeInBytes: Amount | None = None
    size: Amount | None = None  # bytes, up to 1.3


class _OldTask(_Measured, _Linked):
    name: Name
    category: str | None = None
    runtimeInSeconds: Amount | None = None
    runtime: Amount | None = None  # seconds, up to 1.3
    memory: Amount | None = None  # kB, up to 1.3
    cores: Amount | None = None
    files: list[_OldFile] | None = None


class _OldWorkflow(Recorded):
    tasks: list[_OldTask] | None = None
    jobs: list[_OldTask] | None = None  # their name in some files up to 1.3


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
    workflow, key = data["workflow"], f"{where}: workflow"
    layouts = [key for key in LAYOUTS if workflow.get(key) is not None]
    if len(layouts) > 1:
        raise InputError(f"{key}: found {' and '.join(layouts)}, one of them is needed")
    if "specification" in workflow:
        return _read(validated(_Workflow, workflow, key), name, where)
    return _read_old(validated(_OldWorkflow, workflow, key), name, where)


def _read(workflow: _Workflow, name: str, where: str) -> TaskGraph:
    specified = workflow.specification.tasks
    edges, counts = _edges(specified, where)
    executed: dict[str, _ExecutedTask] = {}
    for record in workflow.execution.tasks if workflow.execution else ():
        if record.id in executed:
            raise InputError(f"{where}: task {short(record.id)} has two execution records")
        executed[record.id] = record
    sizes: dict[str, float | None] = {}
    for file in workflow.specification.files or ():
        what = f"{where}: sizeInBytes of file {short(file.id)}"
        sizes[file.id] = agreed(sizes.get(file.id), file.sizeInBytes, what)
    tasks = []
    for task in specified:
        record = executed.pop(task.id, _ExecutedTask(id=task.id))
        tasks.append(
            Task(
                name=task.id,
                category=_category(task.name or task.id, record.command),
                runtime=record.runtimeInSeconds,
                memory=record.megabytes,
                cores=_cores(record.coreCount, record.avgCPU),
                reads={named(file): sizes.get(file) for file in task.inputFiles or ()},
                writes={named(file): sizes.get(file) for file in task.outputFiles or ()},
            )
        )
    graph = graph_from_files(name, where, tuple(tasks), edges, counts)
    return replace(graph, foreign_records=tuple(executed))


def _read_old(workflow: _OldWorkflow, name: str, where: str) -> TaskGraph:
    specified = workflow.jobs if workflow.tasks is None else workflow.tasks
    if specified is None:
        raise InputError(
            f"{where}: workflow.specification: missing, required "
            "(the older layout has workflow.tasks or workflow.jobs in its place)"
        )
    edges, counts = _edges(specified, where)
    tasks = tuple(_old_task(task, where) for task in specified)
    return graph_from_files(name, where, tasks, edges, counts)


def _edges(tasks: Sequence[_Linked], where: str) -> tuple[set[tuple[int, int]], Counter[str]]:
    """Edges of `parents` and `children` merged, and how many only one of them states."""
    index = positions((task.id or task.name or "" for task in tasks), where)
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


def _category(name: str, command: _Command | None) -> str:
    program = command.program if command else None
    return program if program and PROGRAM.fullmatch(program) else NUMBERING.sub("", name) or name


def _cores(count: float | None, average_cpu: float | None) -> float | None:
    """The stated core count, else the cores that the average use of CPU (percent) fills."""
    if count:
        return count
    return None if average_cpu is None else max(1, average_cpu / 100)


def _old_task(task: _OldTask, where: str) -> Task:
    name = task.id or task.name
    place = f"{where}: task {short(name)}"
    exact, stated = task.megabytes, None if task.memory is None else task.memory / KB_PER_MB
    if exact is not None and stated is not None and abs(exact - stated) * KB_PER_MB < 1:
        stated = None  # the same, rounded
    return Task(
        name=name,
        category=task.category or _category(task.name, task.command),
        runtime=agreed(task.runtimeInSeconds, task.runtime, f"{place}: runtimeInSeconds, runtime"),
        memory=agreed(
            exact,
            stated,
            f"{place}: memoryInBytes, memory, in MB",
        ),
        cores=_cores(task.cores, task.avgCPU),
        reads=_old_files(task, "input", place),
        writes=_old_files(task, "output", place),
    )


def _old_files(task: _OldTask, link: str, place: str) -> dict[File, float | None]:
    """Files of one direction."""
    files: dict[File, float | None] = {}
    for file in task.files or ():
        if file.link == link:
            what = f"{place}: size of {link} {short(file.name)}"
            size = agreed(file.sizeInBytes, file.size, what)
            called = File(file.id, _place(file), file.name)
            files[called] = agreed(files.get(called), size, what)
    return files


def _place(file: _OldFile) -> str | None:
    """Folder and name, however the folder is written."""
    if not file.path:
        return None
    return posixpath.normpath(f"{file.path}/{file.name}").replace("//", "/")
