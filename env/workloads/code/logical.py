"""The logical DAG of a workflow in code: a node for each call of a function, or for all of them.

Kinds and names of nodes are those of Caribou's design document. As text it is an option of config
group `workflow`, as conf/workflow/inline.yaml is one.
"""

import json
import math
from collections.abc import Sequence
from contextlib import suppress
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


class Node(NamedTuple):
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

    def indices(self, names: Sequence[str]) -> list[int]:
        """The nodes of names that are all in the document's form, or all in the published code's.

        There, synchronization nodes have no index, but each call of one advances that of later
        nodes.
        """
        published = any(name.endswith(":sync:") for name in names)
        known = [each.published if published else each.name for each in self.nodes]
        return [known.index(name) for name in names]


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
    found = [(code.functions[entry], 0, 0)]  # nodes, who calls each first, and in which call
    counted: list[int | str] = [0]  # their indices in the published code
    single: dict[str, int] = {}  # places of synchronization nodes
    calls: list[tuple[int, int, int, Call]] = []  # places, and which of the caller's it is
    for place, (function, *_) in enumerate(found):  # which grows
        for successor, call in enumerate(function.calls):
            if call.condition == 0:
                continue
            called, new = code.functions[call.target], len(found)
            target = single.setdefault(call.target, new) if called.waits else new
            calls.append((place, target, successor, call))
            if target == new:
                found.append((called, place, successor))
                counted.append("" if called.waits else len(calls))
        if len(calls) > MOST_CALLS:
            raise InputError(f"{code.where}:{code.line}: more than {MOST_CALLS:,} calls of nodes")
    graph = nx.DiGraph(each[:2] for each in calls)
    graph.add_node(0)
    order = list(nx.lexicographical_topological_sort(graph))
    index = sorted(range(len(order)), key=order.__getitem__)  # of places in the order

    def name(place: int, indices: Sequence[int | str]) -> str:
        function, source, successor = found[place]
        if place == 0:
            return f"{function.name}:entry_point:0"
        caller = f"{found[source][0].name}_{indices[source]}_{successor}"
        return f"{function.name}:{'sync' if function.waits else caller}:{indices[place]}"

    nodes = [Node(found[at][0], name(at, index), name(at, counted)) for at in order]
    edges = []
    for source, target, successor, call in sorted(calls, key=lambda each: index[each[0]]):
        names = found[source][0].name, found[target][0].name
        said = given.of_call(*names, successor) if given else {}
        probability = said.get("probability") if call.condition is None else call.condition
        numbers = said.get("data_bytes", 0), ASSUMED if probability is None else probability
        edges.append(Edge(index[source], index[target], *numbers, assumed=probability is None))
    return LogicalDag(code, tuple(nodes), tuple(edges))


def _check_circle(code: Code, entry: str) -> None:
    """Refuses functions that call each other in a circle, or that nobody calls."""
    graph, counted = nx.MultiDiGraph(), nx.DiGraph()
    graph.add_node(entry)
    counted.add_node(entry)
    for key, function in code.functions.items():
        counted.add_edges_from((key, call.target) for call in function.calls)
        made = (call for call in function.calls if call.condition != 0)
        graph.add_edges_from((key, call.target, {"line": call.line}) for call in made)
    reached = {entry, *nx.descendants(counted, entry)}
    for function in (each for key, each in code.functions.items() if key not in reached):
        raise InputError(f"{code.where}:{function.line}: '{function.name}' is never called")
    with suppress(nx.NetworkXNoCycle):
        *_, last = nx.find_cycle(graph, entry)
        caller, again = (code.functions[key].name for key in last[:2])
        raise InputError(
            f"{code.where}:{graph.edges[last]['line']}: '{caller}' calls '{again}', which is "
            "visited again: functions must not call each other in a circle"
        )


def workflow_file(dag: LogicalDag, given: Configuration, where: str) -> str:
    """The text of a file whose only workflow is that of a DAG.

    Raises:
        InputError: the configuration `where` says nothing of a function.
    """
    lines = [
        f"# The logical DAG of {dag.code.name} {dag.code.version}, by python -m report.workflow.",
        "# Units as in inline.yaml; probability: of a call, which is certain without one.",
        *("defaults:", "  - annotation: default", "mix:", f"  {json.dumps(dag.code.workflow_id)}:"),
        "    functions:",
    ]
    for node in dag.nodes:
        if node.function.name not in given.functions:
            raise InputError(f"{where}: functions.{node.function.name}: missing, required")
        inline = given.inline(node.function)
        numbers = inline.model_dump(by_alias=True, exclude_defaults=True, exclude_none=True)
        lines.append(f"      {json.dumps(node.name)}: {json.dumps(numbers)}")
    between: dict[tuple[int, int], list[Edge]] = {}
    for edge in dag.edges:
        between.setdefault((edge.source, edge.target), []).append(edge)
    lines.append("    edges:" if between else "    edges: []")
    lines += [f"      - {_edge(dag, calls)}" for calls in between.values()]
    return "\n".join([*lines, ""])


def _edge(dag: LogicalDag, calls: list[Edge]) -> str:
    """Calls from one node to the same other: all bytes, and whether any is made, drawn apart."""
    numbers: dict[str, str | float] = {
        "from": dag.nodes[calls[0].source].name,
        "to": dag.nodes[calls[0].target].name,
        "bytes": sum(call.data_bytes for call in calls),
    }
    if all(call.probability < 1 for call in calls):
        none = math.prod(1 - call.probability for call in calls)
        numbers["probability"] = 1 - none if len(calls) > 1 else calls[0].probability
    assumed = (
        f"  # {ASSUMED} is assumed of its condition" if any(call.assumed for call in calls) else ""
    )
    return json.dumps(numbers) + assumed
