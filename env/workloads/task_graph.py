"""The common form every source is read into: tasks with what the source states, and edges.

What a source does not state stays `None` here; `annotation` fills it in.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import networkx as nx

from env.base.errors import InputError
from env.base.schema import short

Files = Mapping[str, float | None]
"""File name to size in bytes, None where the source does not state it."""


@dataclass(frozen=True)
class Task:
    """One task as its source describes it.

    Attributes:
        name: unique in its workflow.
        category: what kind of task it is; tasks of a category are annotated alike.
        runtime: seconds on `cores` cores of the reference speed.
        computation: operations; takes the place of `runtime`.
        memory: MB; None or 0 where it was not measured.
        cores: cores it kept busy; None or 0 where it was not measured.
        reads: files it reads.
        writes: files it writes.
    """

    name: str
    category: str
    runtime: float | None = None
    computation: int | None = None
    memory: float | None = None
    cores: float | None = None
    reads: Files = field(default_factory=dict)
    writes: Files = field(default_factory=dict)


@dataclass(frozen=True)
class TaskGraph:
    """A workflow as its source describes it.

    Attributes:
        name: what errors and reports call it.
        where: the file or the config key it came from.
        tasks: T tasks.
        edge_bytes: (source, target) positions in `tasks` to bytes moved.
        measured: whether the numbers are measurements, which the annotation rules may scale, clip
            and round up, or a person's own, which are taken as they are.
        assumptions: how often a rule had to decide, by what it decided.
        foreign_records: names of measurements that belong to no task.
    """

    name: str
    where: str
    tasks: tuple[Task, ...]
    edge_bytes: Mapping[tuple[int, int], int]
    measured: bool = True
    assumptions: Mapping[str, int] = field(default_factory=dict)
    foreign_records: tuple[str, ...] = ()


def note_file(files: dict[str, float | None], name: str, size: float | None) -> None:
    """Adds a file of one task; of the sizes one task gives to one file the largest counts."""
    sizes = [known for known in (files.get(name), size) if known is not None]
    files[name] = max(sizes, default=None)


def positions(names: Iterable[str], where: str) -> dict[str, int]:
    """Task name to position.

    Raises:
        InputError: a name is used twice, or there is no name.
    """
    found: dict[str, int] = {}
    for name in names:
        if name in found:
            raise InputError(f"{where}: task {short(name)} is declared twice")
        found[name] = len(found)
    if not found:
        raise InputError(f"{where}: no tasks, at least 1 is needed")
    return found


def graph_from_files(
    name: str,
    where: str,
    tasks: tuple[Task, ...],
    declared: Iterable[tuple[int, int]],
    assumptions: Mapping[str, int],
) -> TaskGraph:
    """A measured workflow whose edges carry the files its tasks exchange.

    - An edge carries the files its source writes and its target reads.
    - A file's size is its writer's, else its reader's, else 0; each unknown one is counted, and so
      is each file that is given more than one size.
    - A task that reads a file with exactly one writer waits for that writer, declared or not. With
      several writers the declared edges tell which one is meant. Where the declared edges put the
      reader before the writer they win: the reader found an older version of the file.

    Args:
        name: of the workflow.
        where: the file it came from.
        tasks: T tasks.
        declared: (source, target) positions in `tasks`.
        assumptions: what the loader already counted.

    Raises:
        InputError: a task depends on itself.
    """
    counts = Counter(assumptions)
    edges = set(declared)
    for source, target in edges:
        if source == target:
            raise InputError(f"{where}: task {short(tasks[source].name)} depends on itself")
    implied = _implied_by_files(tasks) - edges
    if implied:
        order = nx.DiGraph(edges)
        against = {
            (writer, reader)
            for writer, reader in implied
            if order.has_node(writer)
            and order.has_node(reader)
            and nx.has_path(order, reader, writer)
        }
        edges |= implied - against
        counts["edges added for a file that is read"] += len(implied - against)
        counts["file dependencies against the declared order left out"] += len(against)
    edge_bytes = {}
    unknown: set[str] = set()
    for source, target in sorted(edges):
        writes, reads = tasks[source].writes, tasks[target].reads
        total = 0.0
        for file in writes.keys() & reads.keys():
            size = reads[file] if writes[file] is None else writes[file]
            if size is None:
                unknown.add(file)
            else:
                total += size
        edge_bytes[source, target] = round(total)
    counts["file sizes missing, taken as 0"] += len(unknown)
    counts["files with several sizes, the writer's taken"] += _conflicting(tasks)
    return TaskGraph(name, where, tasks, edge_bytes, assumptions=+counts)


def _implied_by_files(tasks: tuple[Task, ...]) -> set[tuple[int, int]]:
    writers: dict[str, list[int]] = {}
    for position, task in enumerate(tasks):
        for file in task.writes:
            writers.setdefault(file, []).append(position)
    return {
        (writers[file][0], reader)
        for reader, task in enumerate(tasks)
        for file in task.reads
        if len(writers.get(file, ())) == 1 and writers[file][0] != reader
    }


def _conflicting(tasks: tuple[Task, ...]) -> int:
    sizes: dict[str, set[float]] = {}
    for task in tasks:
        for files in (task.reads, task.writes):
            for file, size in files.items():
                if size is not None:
                    sizes.setdefault(file, set()).add(size)
    return sum(len(found) > 1 for found in sizes.values())
