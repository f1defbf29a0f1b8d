"""The common form every source is read into: tasks with what the source states, and edges.

What a source does not state stays `None` here; `annotation` fills it in.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import networkx as nx

from env.base.errors import InputError
from env.base.schema import short

Stated = TypeVar("Stated")


class File(NamedTuple):
    """What a task calls a file.

    Two tasks mean the same file where the first of these that both state is the same.

    Attributes:
        id: None where it has none.
        place: folder and name; None where no folder is stated.
        name: of the file.
    """

    id: str | None
    place: str | None
    name: str

    @property
    def stated(self) -> tuple[bool, ...]:
        """Which of them are."""
        return tuple(label is not None for label in self)


Files = Mapping[File, float | None]
"""File to size in bytes, None where the source does not state it."""


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
        resources: units of named resources (env/sim/declared/resources.py).
        reads: files it reads.
        writes: files it writes.
    """

    name: str
    category: str
    runtime: float | None = None
    computation: int | None = None
    memory: float | None = None
    cores: float | None = None
    resources: Mapping[str, int] = field(default_factory=dict)
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


def named(name: str) -> File:
    """A file that is called by its name alone."""
    return File(None, None, name)


def agreed(known: Stated | None, other: Stated | None, what: str) -> Stated | None:
    """What is stated of one thing in two places; None where it is in neither.

    Args:
        known: in one place.
        other: in the other.
        what: is stated, for the error: file, place and keys.

    Raises:
        InputError: the two differ.
    """
    if known is not None and other is not None and known != other:
        raise InputError(f"{what}: found {short(known)} and {short(other)}, one is needed")
    return other if known is None else known


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
    written = dict.fromkeys(file for task in tasks for file in task.writes)
    read = dict.fromkeys(file for task in tasks for file in task.reads)
    readings, origins = _fits(written, read), _fits(read, written)
    implied = _implied_by_files(tasks, origins) - edges
    against = _against(implied, edges)
    edges |= implied - against
    counts["edges added for a file that is read"] += len(implied - against)
    counts["file dependencies against the declared order left out"] += len(against)
    edge_bytes = {}
    unknown: set[File] = set()
    for source, target in sorted(edges):
        writes, reads = tasks[source].writes, tasks[target].reads
        # From the side with fewer files: all others may be a thousand times as many.
        files: Iterable[File] = writes
        if len(reads) < len(writes):
            files = dict.fromkeys(file for other in reads for file in origins[other])
        total = 0.0
        for file in files:
            sizes = [reads[other] for other in readings[file] if other in reads]
            if file not in writes or not sizes:
                continue
            size = next((size for size in (writes[file], *sizes) if size is not None), None)
            if size is None:
                unknown.add(file)
            else:
                total += size
        edge_bytes[source, target] = round(total)
    counts["file sizes missing, taken as 0"] += len(unknown)
    counts["files with several sizes, the writer's taken"] += _conflicting(tasks, readings)
    return TaskGraph(name, where, tasks, edge_bytes, assumptions=+counts)


def _fits(files: Iterable[File], others: Iterable[File]) -> dict[File, list[File]]:
    """To each of `files` those of `others` that are the same."""
    index: dict[tuple[tuple[bool, ...], int, str | None], list[File]] = defaultdict(list)
    for other in others:
        form = other.stated
        for level, label in enumerate(other):
            index[form, level, label].append(other)
    forms = {form for form, _, _ in index}
    fits: dict[File, list[File]] = {}
    for file in files:
        fits[file] = []
        own = file.stated
        for form in forms:
            level = [*map(all, zip(own, form, strict=True))].index(True)
            fits[file] += index.get((form, level, file[level]), ())
    return fits


def _implied_by_files(
    tasks: tuple[Task, ...], origins: Mapping[File, Collection[File]]
) -> set[tuple[int, int]]:
    writers: dict[File, list[int]] = defaultdict(list)
    for position, task in enumerate(tasks):
        for file in task.writes:
            writers[file].append(position)
    # Whether there are more than one is told by two.
    found = {
        file: {writer for origin in several for writer in writers[origin][:2]}
        for file, several in origins.items()
    }
    return {
        (writer, reader)
        for reader, task in enumerate(tasks)
        for file in task.reads
        if len(found[file]) == 1
        for writer in found[file] - {reader}
    }


def _against(
    implied: Collection[tuple[int, int]], declared: Collection[tuple[int, int]]
) -> set[tuple[int, int]]:
    """Those of the implied edges whose reader comes before the writer by the declared ones."""
    order = nx.DiGraph(declared)
    try:
        ascending = list(nx.topological_sort(order))
    except nx.NetworkXUnfeasible:  # a cycle, which is refused when the template is built
        return set()
    place = {task: number for number, task in enumerate(ascending)}
    return {
        (writer, reader)
        for writer, reader in implied
        if place.get(reader, len(place)) < place.get(writer, -1)
        and nx.has_path(order, reader, writer)
    }


def _conflicting(tasks: tuple[Task, ...], readings: Mapping[File, Collection[File]]) -> int:
    """How many files are given several sizes, by whatever names."""
    sizes: dict[File, set[float]] = defaultdict(set)
    for task in tasks:
        for file, size in (*task.reads.items(), *task.writes.items()):
            if size is not None:
                sizes[file].add(size)
    groups = [(file, *readings[file]) for file in readings]
    met = {file for group in groups for file in group}
    groups += [(file,) for file in sizes if file not in met]
    return sum(len(set().union(*(sizes[file] for file in group))) > 1 for group in groups)
