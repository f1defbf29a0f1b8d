"""The logical DAG of a workflow in code: a node for each call of a function, or for all of them.

Kinds and names of nodes are those of Caribou's design document.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import networkx as nx

from env.base.errors import InputError
from env.workloads.code.analysis import Call, Code, Function
from env.workloads.code.configuration import Configuration

MOST_CALLS = 10_000
"""Between nodes: functions that call each other twice double them with every step."""
ASSUMED = 0.5
"""Probability of a condition of which nothing is said."""

KINDS = {"entry_point": "initial", "sync": "synchronization", "": "intermediate"}
"""Of nodes, by the second part of their names; that of intermediate ones is the call."""


@dataclass(frozen=True)
class Node:
    """A node: its function, and its names in the document and in the published code."""

    function: Function
    name: str
    published: str

    @property
    def kind(self) -> str:
        """One of `KINDS`."""
        return KINDS.get(self.name.split(":")[1], "intermediate")


class Edge(NamedTuple):
    """A call from one node to another, by their indices, and whether its probability is assumed."""

    source: int
    target: int
    data_bytes: int
    probability: float
    assumed: bool


@dataclass(frozen=True)
class LogicalDag:
    """Nodes, each before those that it calls, and the calls, by caller and line."""

    code: Code
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    def indices(self, names: Iterable[str]) -> dict[str, int]:
        """The nodes of names that are all in the document's form, or all in the published code's.

        There, synchronization nodes have no index, but each call of one advances that of later
        nodes. Either may have the workflow and its version before functions, as in tables.
        """
        before = f"{self.code.name}-{self.code.version}-".replace(".", "_")
        plain = {name: name.replace(before, "") for name in names}
        published = any(name.endswith(":sync:") for name in plain.values())
        known = [each.published if published else each.name for each in self.nodes]
        return {name: known.index(each) for name, each in plain.items()}


class _Visit(NamedTuple):
    """A call, which is the how manieth of its node; the entry is called by itself."""

    call: Call
    source: int = 0
    successor: int = 0


def logical_dag(code: Code, given: Configuration | None) -> LogicalDag:
    """The logical DAG of a workflow, with the numbers of its calls as far as they are given.

    The successors of a node are counted by the lines of their calls. The indices of nodes are a
    topological order, in which of two that may come next the one goes first that calls reach first,
    breadth first. A call whose condition is False or 0 is counted, but is no edge.

    Raises:
        InputError: functions call each other in a circle, or there are too many calls.
    """
    entry = next(key for key, each in code.functions.items() if each.entry_point)
    _check_circle(code, entry)
    visited: list[_Visit] = []  # the first call of each node
    single: dict[str, int] = {}  # places of synchronization nodes in it
    counted: dict[int, int | str] = {}  # indices in the published code
    calls: list[tuple[int, _Visit]] = []  # with the place of the node that is called
    queue = deque([_Visit(Call(entry, 1.0, code.line))])
    while queue:
        visit = queue.popleft()
        function = code.functions[visit.call.target]
        place = single.get(visit.call.target, len(visited))
        if place == len(visited):
            counted[place] = "" if function.waits and place else len(calls)
            visited.append(visit)
            if function.waits:
                single[visit.call.target] = place
            for successor, call in enumerate(function.calls):
                if call.condition != 0:
                    queue.append(_Visit(call, place, successor))
        calls.append((place, visit))
        if len(calls) > MOST_CALLS:
            raise InputError(f"{code.where}:{code.line}: more than {MOST_CALLS:,} calls of nodes")
    graph = nx.DiGraph((visit.source, place) for place, visit in calls[1:])
    graph.add_node(0)
    order = list(nx.lexicographical_topological_sort(graph))
    index = {place: at for at, place in enumerate(order)}
    functions = [code.functions[visit.call.target] for visit in visited]

    def name(place: int, indices: Mapping[int, int | str]) -> str:
        function, first = functions[place].name, visited[place]
        if place == 0:
            return f"{function}:entry_point:0"
        if functions[place].waits:
            return f"{function}:sync:{indices[place]}"
        caller = f"{functions[first.source].name}_{indices[first.source]}_{first.successor}"
        return f"{function}:{caller}:{indices[place]}"

    nodes = [Node(functions[place], name(place, index), name(place, counted)) for place in order]
    edges = []
    for place, visit in sorted(calls[1:], key=lambda each: index[each[1].source]):
        called = nodes[index[visit.source]].function.name, functions[place].name, visit.successor
        edges.append(Edge(index[visit.source], index[place], *_numbers(visit.call, called, given)))
    return LogicalDag(code, tuple(nodes), tuple(edges))


def _numbers(
    call: Call, called: tuple[str, str, int], given: Configuration | None
) -> tuple[int, float, bool]:
    """Bytes and probability of a call, and whether that is assumed; the last given ones count."""
    data_bytes, probability = 0, call.condition
    for numbers in given.calls if given else ():
        if numbers.of(*called):
            data_bytes = data_bytes if numbers.data_bytes is None else numbers.data_bytes
            if call.condition is None:
                probability = numbers.probability or probability
    assumed = probability is None
    return data_bytes, ASSUMED if probability is None else probability, assumed


def _check_circle(code: Code, entry: str) -> None:
    """Refuses functions that call each other in a circle, as nodes would be visited again."""
    graph = nx.DiGraph()
    graph.add_node(entry)
    for key, function in code.functions.items():
        graph.add_edges_from((key, call.target) for call in function.calls if call.condition != 0)
    try:
        circle = [source for source, _ in nx.find_cycle(graph, entry)]
    except nx.NetworkXNoCycle:
        return
    again, last = code.functions[circle[0]], code.functions[circle[-1]]
    line = next(call.line for call in last.calls if call.target == circle[0])
    raise InputError(
        f"{code.where}:{line}: '{last.name}' calls '{again.name}', which is visited "
        "again: functions must not call each other in a circle"
    )
