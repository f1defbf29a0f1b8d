"""The logical DAG of a workflow that is declared in code: `python -m report.workflow FILE.py`.

It is printed, and written as an option of config group `workflow` (-o) or drawn (--draw).
"""

from argparse import SUPPRESS, ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import networkx as nx
import pandas as pd

from env.base.errors import InputError
from env.base.files import written_whole
from env.base.pipes import until_reader_leaves
from env.workloads.code.analysis import read_code
from env.workloads.code.configuration import read_configuration
from env.workloads.code.logical import KINDS, LogicalDag, logical_dag, workflow_file
from report.drawing import Spec, draw
from report.figures import CONFIG
from report.palette import SERIES
from report.vega import by_name, mark, quantity, values, word
from run.command import refuse

ACROSS, DOWN = 220, 60
"""Pixels from a node to the next."""
BOW = 5 / 8
"""By how much a line is bent for each column between its ends; nodes are at multiples of 1/2."""
COLOURS = dict(zip(KINDS.values(), SERIES, strict=False))
DASHES = {"certain": [1, 0], "conditional": [6, 4]}
"""How the lines of calls are dashed."""


def printed(dag: LogicalDag) -> str:
    """The nodes, and below each whom it calls."""
    lines = [f"{dag.code.name} {dag.code.version}"]
    for at, node in enumerate(dag.nodes):
        lines.append(f"{node.name} ({node.kind})")
        for edge in dag.edges:
            if edge.source == at:
                chance = "" if edge.probability == 1 else f", probability {edge.probability:g}"
                name = dag.nodes[edge.target].name
                lines.append(f"  -> {name}{chance}{' (assumed)' if edge.assumed else ''}")
    return "\n".join(lines)


def picture_of(dag: LogicalDag) -> Spec:
    """The chart: nodes from left to right, each behind all that call it, and lines for calls."""
    graph = nx.DiGraph(edge[:2] for edge in dag.edges)
    graph.add_node(0)
    columns = [sorted(each) for each in nx.topological_generations(graph)]
    places: dict[int, dict[str, Any]] = {}
    for x, stack in enumerate(columns):
        for row, index in enumerate(stack):
            node = dag.nodes[index]
            place = {"x": x, "y": row - len(stack) / 2}
            places[index] = {**place, "text": node.name, "kind": node.kind}
    lines, chances = [], []
    for source, target in graph.edges:
        first, last = places[source], places[target]
        middle = {key: (first[key] + last[key]) / 2 for key in ("x", "y")}
        middle["y"] += BOW * (last["x"] - first["x"] - 1)  # around nodes in columns between
        calls = [edge.probability for edge in dag.edges if edge[:2] == (source, target)]
        kind = {"call": f"{source} {target}", "kind": "certain" if 1 in calls else "conditional"}
        lines += [{**place, **kind} for place in (first, middle, last)]
        if calls != [1]:
            chances.append({**middle, "text": ", ".join(f"{each:g}" for each in calls)})
    scale = {"zero": False, "padding": 40}
    at = {key: quantity(key, axis=None, scale=scale) for key in ("x", "y")}
    text, call = word("text"), word("call")
    dashes = by_name("kind", DASHES, {"title": "call"})
    colours = by_name("kind", COLOURS, {"title": "node"})
    look = {"interpolate": "monotone", "color": "silver"}
    layers = (
        (lines, mark("line", look, **at, detail=call, strokeDash=dashes)),
        (places.values(), mark("circle", {"size": 200, "opacity": 1}, **at, color=colours)),
        (places.values(), mark("text", {"dy": -16}, **at, text=text)),
        (chances, mark("text", {"dy": 8}, **at, text=text)),
    )
    return {
        "title": f"{dag.code.name} {dag.code.version}",
        "width": ACROSS * len(columns),
        "height": DOWN * (1 + max(len(columns), *map(len, columns))),
        "layer": [{"data": values(pd.DataFrame(rows)), **layer} for rows, layer in layers],
        "config": CONFIG,
    }


@until_reader_leaves()
def main(arguments: Sequence[str] | None = None) -> None:
    """The command; bad input gets a line for each fault and exit code 2."""
    parser = ArgumentParser(
        usage=SUPPRESS,
        prog="python -m report.workflow",
        description="Print the logical DAG of a workflow in code; config.yml beside has numbers.",
    )
    parser.add_argument("code", metavar="FILE.py", type=Path, help="the code, not executed")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="DIR/workflow/NAME.yaml")
    parser.add_argument("--draw", metavar="FILE", type=Path, help="picture, a .png")
    options = parser.parse_args(arguments)
    made: dict[Path, bytes] = {}
    try:
        for file, suffix in ((options.output, ".yaml"), (options.draw, ".png")):
            if file and file.suffix != suffix:  # so neither takes the place of the code
                raise InputError(f"{file}: a name that ends in {suffix} is needed")
        code, beside = read_code(options.code), options.code.with_name("config.yml")
        given = read_configuration(beside, code) if options.output or beside.exists() else None
        dag = logical_dag(code, given)
        if options.output and given:
            made[options.output] = workflow_file(dag, given, str(beside)).encode()
        if options.draw:
            made[options.draw] = draw({"dag": picture_of(dag)})["dag"]["png"]
        for path, content in made.items():
            with written_whole(path) as temporary:
                path.parent.mkdir(parents=True, exist_ok=True)
                temporary.write_bytes(content)
    except InputError as error:
        refuse(error)
    print(printed(dag), *(f"written: {path}" for path in made), sep="\n")


if __name__ == "__main__":
    main()
