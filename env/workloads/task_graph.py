"""The common form every source is read into: tasks with what the source states, and edges.

What a source does not state stays `None` here; `annotation` fills it in.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import networkx as nx

from env.base.errors import InputError
from env.base.schema import short
from env.sim.declared.regions import ANYWHERE, Regions

Value = TypeVar("Value")

NO_TASK = "execution records of no task"
"""What is counted where measurements belong to no task."""

Files = Mapping[str, float | None]
"""Name of a file to its size in bytes, None where the source does not state it."""


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
        resources: of named ones (env/sim/declared/resources.py), in 1/10,000.
        regions: where it may run.
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
    regions: Regions = ANYWHERE
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
        probability: of the calls that these edges are; 1 where none is stated.
        measured: whether the numbers are measurements, which the annotation rules may scale, clip
            and round up, or a person's, which are taken as they are.
        assumptions: how often a rule had to decide, by what it decided.
    """

    name: str
    where: str
    tasks: tuple[Task, ...]
    edge_bytes: Mapping[tuple[int, int], int]
    probability: Mapping[tuple[int, int], float] = field(default_factory=dict)
    measured: bool = True
    assumptions: Mapping[str, int] = field(default_factory=dict)


def agreed(one: Value | None, other: Value | None, what: str) -> Value | None:
    """The value of something that may be stated in two places; None where it is in neither.

    Raises:
        InputError: the two values of `what`, file, place and keys, differ.
    """
    if one is not None and other is not None and one != other:
        raise InputError(f"{what}: found {short(one)} and {short(other)}, one is needed")
    return other if one is None else one


def sized_files(stated: Iterable[tuple[str, float | None]], where: str) -> dict[str, float | None]:
    """Files with their sizes; a file may be stated several times.

    Raises:
        InputError: two sizes are stated for one file.
    """
    files: dict[str, float | None] = {}
    for name, size in stated:
        files[name] = agreed(files.get(name), size, f"{where}: size of {short(name)}")
    return files


def positions(names: Iterable[str], where: str) -> dict[str, int]:
    """Task name to position.

    Raises:
        InputError: a name is used twice, or there is no name.
    """
    index: dict[str, int] = {}
    for name in names:
        if name in index:
            raise InputError(f"{where}: task {short(name)} is declared twice")
        index[name] = len(index)
    if not index:
        raise InputError(f"{where}: no tasks, at least 1 is needed")
    return index


def position(reference: str, index: Mapping[str, int], what: str) -> int:
    """Position of the task that something refers to; errors call that `what`.

    Raises:
        InputError: there is no such task.
    """
    if reference not in index:
        raise InputError(f"{what} {short(reference)}, no such task")
    return index[reference]


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
      several writers the declared edges decide which one is meant. Where the declared edges put the
      reader before the writer they win: the reader read an older version of the file.

    Edges are (source, target) positions in `tasks`; `assumptions` is what the loader counted.
    """
    counts = Counter(assumptions)
    edges = set(declared)
    writers: dict[str, list[int]] = defaultdict(list)
    sizes: dict[str, set[float]] = defaultdict(set)
    for number, task in enumerate(tasks):
        for file in task.writes:
            writers[file].append(number)
        for file, size in (*task.reads.items(), *task.writes.items()):
            if size is not None:
                sizes[file].add(size)
    implied = {
        (writers[file][0], reader)
        for reader, task in enumerate(tasks)
        for file in task.reads
        if len(writers[file]) == 1 and writers[file] != [reader]
    } - edges
    order = nx.DiGraph(edges)
    against = {  # whose reader comes before the writer by the declared ones
        (writer, reader)
        for writer, reader in implied
        if reader in order and writer in order and nx.has_path(order, reader, writer)
    }
    edges |= implied - against
    edge_bytes = {}
    unknown: set[str] = set()
    for source, target in sorted(edges):
        writes, reads = tasks[source].writes, tasks[target].reads
        total = 0.0
        for file in min(writes, reads, key=len):
            if file in writes and file in reads:
                size = reads[file] if writes[file] is None else writes[file]
                if size is None:
                    unknown.add(file)
                total += size or 0.0
        edge_bytes[source, target] = round(total)
    counts["edges added for a file that is read"] += len(implied - against)
    counts["file dependencies against the declared order left out"] += len(against)
    counts["file sizes missing, taken as 0"] += len(unknown)
    several = sum(len(stated) > 1 for stated in sizes.values())
    counts["files with several sizes, the writer's taken"] += several
    return TaskGraph(name, where, tasks, edge_bytes, assumptions=+counts)
