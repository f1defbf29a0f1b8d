"""A logical DAG as an option of config group `workflow`, as conf/workflow/inline.yaml is one."""

import json
import math

from env.base.errors import InputError
from env.workloads.code.configuration import Configuration
from env.workloads.code.logical import ASSUMED, Edge, LogicalDag


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
        numbers = inline.model_dump(exclude_defaults=True, exclude_none=True)
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
