"""Ray's demand scheduler: which nodes to launch and to terminate for the demands that wait.

All rules are those of `python/ray/autoscaler/v2/scheduler.py` of Ray 2.60.0. Left out are gang
requests, label selectors, priorities of types, nodes of an outdated configuration, resizing in
place, and the idle time-out of pending nodes. Quantities are integers in 1/10,000.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from env.resources.quantity import UNIT

Resources = Mapping[str, int]
Score = tuple[bool, int, float, float]
"""See `score_of`; the larger one is better."""


class NodeType(NamedTuple):
    """What may be launched: its resources, and how many nodes there are at most and at least."""

    total: Resources
    most: int
    least: int = 0


@dataclass(frozen=True, eq=False)
class Node:
    """A node that runs or is pending; of one that is pending all is available."""

    type: str  # name of its type
    total: Resources
    available: Resources
    idle: float = 0.0  # seconds
    running: bool = True


class Plan(NamedTuple):
    """What is to be done: types to launch, nodes to terminate, demands that no node can take."""

    launches: list[str]
    terminations: list[Node]
    infeasible: list[Resources]
    constrained: bool  # whether the constraint can be met


def plan(
    types: Mapping[str, NodeType],
    nodes: Iterable[Node],
    demands: Iterable[Resources],
    most: int | None = None,
    idle_timeout: float | None = None,
    constraint: Iterable[Resources] = (),
) -> Plan:
    """Fills the nodes that are there with the demands, then launches the best types for the rest.

    Args:
        types: by name; of equally good ones the first is launched.
        nodes: those there are.
        demands: sets of resources that wait.
        most: nodes at most, of all types; None or 0 terminates none.
        idle_timeout: seconds; who is idle longer and not needed is terminated; None: nobody is.
        constraint: sets of resources that the nodes have to hold when they are empty.
    """
    given = list(nodes)
    counts = Counter(node.type for node in given)
    missing = [
        _new(types, name) for name, kind in types.items() for _ in range(kind.least - counts[name])
    ]
    ends, staying = list[Node](), list[Node]()
    for name in dict.fromkeys(node.type for node in missing + given):
        of_type = [node for node in missing + given if node.type == name]
        surplus, kept = _limited(of_type, types[name].most)
        ends, staying = ends + surplus, staying + kept
    surplus, staying = _limited(staying, most or len(staying))
    ends += surplus
    limited = ends + staying
    filled, unmet, needed = _fill(types, limited, constraint, most, empty=True)
    if unmet:
        filled, needed = limited, []
    planned, infeasible, taking = _fill(types, filled, demands, most, empty=False)
    if idle_timeout is not None:
        counts = Counter(node.type for node in planned if node not in ends)
        for node in sorted(planned, key=_least_useful):
            busy = not node.running or node in ends or node in needed or node in taking
            if not busy and node.idle > idle_timeout and counts[node.type] > types[node.type].least:
                ends.append(node)
                counts[node.type] -= 1
    launches = [node.type for node in planned if node not in given and node not in ends]
    return Plan(launches, [node for node in ends if node in given], infeasible, not unmet)


def score_of(total: Resources, left: Resources, taken: Sequence[Resources]) -> Score:
    """How well a node suits the demands it takes, of which it has so much left.

    Whether no GPU lies idle, how many of its resources they need, its smallest utilisation, and the
    mean: the terms of both are total * utilisation ** 3.
    """
    wanted = {name for asked in taken for name, amount in asked.items() if amount > 0}
    spared = total.get("GPU", 0) == 0 or any("GPU" in asked for asked in taken)
    terms = [
        amount / UNIT * ((amount - left[name]) / amount) ** 3
        for name, amount in total.items()
        if amount > 0
    ]
    mean = sum(terms) / len(terms) if terms else 0.0
    return spared, len(wanted & total.keys()), min(terms, default=0.0), mean


def _limited(nodes: list[Node], most: int) -> tuple[list[Node], list[Node]]:
    """The nodes that end where there are too many, and the others."""
    if len(nodes) <= most:
        return [], nodes
    nodes = sorted(nodes, key=_least_useful)
    return nodes[: len(nodes) - most], nodes[len(nodes) - most :]


def _least_useful(node: Node) -> tuple[bool, float, float]:
    """Pending nodes end first, then those that are idle for longest, then the least used."""
    used = [
        (total - node.available[name]) / total for name, total in node.total.items() if total > 0
    ]
    return node.running, -node.idle, sum(used) / len(used) if used else 0.0


def _fill(
    types: Mapping[str, NodeType],
    nodes: Sequence[Node],
    demands: Iterable[Resources],
    most: int | None,
    empty: bool,
) -> tuple[list[Node], list[Resources], list[Node]]:
    """Puts demands on nodes, node by node the best one, on new ones at last.

    With `empty` on nodes as if they were. Ray does not leave out nodes that are to end.

    Returns:
        the nodes with new ones, the demands that are left, and the nodes that take some.
    """
    left = sorted(
        demands,
        key=lambda asked: (len(asked), sum(asked.values()), sorted(asked.items())),
        reverse=True,
    )
    full = [
        node
        for node in nodes
        if left and node.running and not any(_fits(_room(node, empty), each) for each in left)
    ]
    others, needed = [node for node in nodes if node not in full], list[Node]()
    while (best := _best(others, left, empty)) is not None:
        place, left = best
        needed.append(others.pop(place))
    all_nodes = needed + others + full
    spare = {name: kind.most - sum(n.type == name for n in nodes) for name, kind in types.items()}
    pool = [_new(types, name) for name, count in spare.items() if count > 0]
    while most is None or len(all_nodes) < most:
        if (best := _best(pool, left, empty)) is None:
            break
        place, left = best
        needed.append(node := pool.pop(place))
        all_nodes.append(node)
        spare[node.type] -= 1
        if spare[node.type] > 0:
            pool.append(_new(types, node.type))
    return all_nodes, left, needed


def _new(types: Mapping[str, NodeType], name: str) -> Node:
    return Node(name, types[name].total, types[name].total, running=False)


def _room(node: Node, empty: bool) -> Resources:
    return node.total if empty else node.available


def _fits(room: Resources, asked: Resources) -> bool:
    return all(amount <= room.get(name, 0) for name, amount in asked.items())


def _best(
    nodes: Sequence[Node], demands: Sequence[Resources], empty: bool
) -> tuple[int, list[Resources]] | None:
    """The node with the best score, and the demands that it leaves; None if it takes none."""
    best: tuple[Score, int, list[Resources]] | None = None
    for place, node in enumerate(nodes):
        room, taken, left = dict(_room(node, empty)), list[Resources](), list[Resources]()
        for asked in demands:
            if _fits(room, asked):
                room |= {name: room.get(name, 0) - amount for name, amount in asked.items()}
                taken.append(asked)
            else:
                left.append(asked)
        if taken:
            score = score_of(node.total, room, taken)
            if best is None or score > best[0]:
                best = score, place, left
    return best and best[1:]
