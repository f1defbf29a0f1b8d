"""WfFormat, the JSON of WfCommons: version 1.5 and later, and the older layout.

https://github.com/wfcommons/WfFormat. The older layout (up to 1.4) has no `specification`: tasks
hold their own files and measurements; up to 1.3 they may be called `jobs`.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from env.base.errors import InputError
from env.base.files import parse_json
from env.base.schema import Recorded, short, validated
from env.workloads.task_graph import Task, TaskGraph, graph_from_files, note_file, positions

BYTES_PER_MB = 1_000_000
BYTES_PER_KB = 1_000
PROGRAM = re.compile(r"[A-Za-z][\w.+-]*")
"""A program's name. Nextflow records whole shell scripts instead, which say nothing of the kind."""
NUMBERING = re.compile(r"[_-]?(ID)?\d+$")
"""What makes the names of tasks of one kind differ: mProject_ID0000002."""

Amount = Annotated[float, Field(ge=0)]
Name = Annotated[str, Field(min_length=1)]


class _Command(Recorded):
    program: str | None = None


class _Measured(Recorded):
    """What both layouts measure of a task."""

    command: _Command | None = None
    avgCPU: Amount | None = None  # percent of one core
    memoryInBytes: Amount | None = None


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


class _Instance(Recorded):
    workflow: _Workflow


class _OldFile(Recorded):
    name: Name
    id: Name | None = None
    path: str | None = None
    link: str
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
    jobs: list[_OldTask] | None = None


class _OldInstance(Recorded):
    workflow: _OldWorkflow


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
            declared twice or depends on itself, or a number is negative or not finite.
    """
    data = parse_json(content, where)
    workflow = data.get("workflow") if isinstance(data, Mapping) else None
    if isinstance(workflow, Mapping) and "specification" in workflow:
        return _read(validated(_Instance, data, where).workflow, name, where)
    return _read_old(validated(_OldInstance, data, where).workflow, name, where)


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
        known = sizes.get(file.id)
        if known is not None and file.sizeInBytes not in (None, known):
            raise InputError(
                f"{where}: file {short(file.id)} is declared with {known} and "
                f"{file.sizeInBytes} bytes"
            )
        sizes[file.id] = known if file.sizeInBytes is None else file.sizeInBytes
    tasks = []
    for task in specified:
        record = executed.pop(task.id, _ExecutedTask(id=task.id))
        tasks.append(
            Task(
                name=task.id,
                category=_category(task.name or task.id, record.command),
                runtime=record.runtimeInSeconds,
                memory=_megabytes(record.memoryInBytes),
                cores=_cores(record.coreCount, record.avgCPU),
                reads={file: sizes.get(file) for file in task.inputFiles or ()},
                writes={file: sizes.get(file) for file in task.outputFiles or ()},
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
    tasks = tuple(
        Task(
            name=task.id or task.name,
            category=task.category or _category(task.name, task.command),
            runtime=task.runtime if task.runtimeInSeconds is None else task.runtimeInSeconds,
            memory=_old_memory(task),
            cores=_cores(task.cores, task.avgCPU),
            reads=_old_files(task, written=False),
            writes=_old_files(task, written=True),
        )
        for task in specified
    )
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
    return program if program and PROGRAM.fullmatch(program) else NUMBERING.sub("", name)


def _megabytes(memory: float | None) -> float | None:
    return None if memory is None else memory / BYTES_PER_MB


def _cores(count: float | None, average_cpu: float | None) -> float | None:
    """The stated core count, else the cores that the average use of CPU (percent) fills."""
    if count:
        return count
    return None if average_cpu is None else max(1, math.ceil(average_cpu / 100))


def _old_memory(task: _OldTask) -> float | None:
    if task.memoryInBytes is not None or task.memory is None:
        return _megabytes(task.memoryInBytes)
    return task.memory * BYTES_PER_KB / BYTES_PER_MB


def _old_files(task: _OldTask, *, written: bool) -> dict[str, float | None]:
    """Files of one direction; everything but an input is an output, as WfCommons reads it."""
    files: dict[str, float | None] = {}
    for file in task.files or ():
        if (file.link.lower() != "input") == written:
            size = file.size if file.sizeInBytes is None else file.sizeInBytes
            # Files of one name are told apart.
            note_file(files, file.id or f"{file.path or ''}/{file.name}", size)
    return files
