"""A finished schedule as its episode file records it, indexed for those who check it.

Uses nothing of the engine.
"""

import math
from dataclasses import dataclass

from env.sim.episode.episode_file import (
    ActionModel,
    DecisionModel,
    EpisodeFile,
    FunctionModel,
    FunctionTimesModel,
    Results,
)

# The order of float64 additions is not part of the rules, and costs the last digits: of a number of
# any size, and of a difference of times as many as the times have (seconds, USD).
RELATIVE_TOLERANCE = 1e-12
TOLERANCE = 1e-9


@dataclass
class Run:
    """One function's run as recorded. `left` is the work left at its node's clock (operations)."""

    index: int
    declared: FunctionModel
    action: ActionModel
    decision: DecisionModel
    times: FunctionTimesModel
    left: int = 0

    def __post_init__(self) -> None:
        self.left = self.declared.computation

    @property
    def function(self) -> tuple[int, int]:
        """(workflow, function)."""
        return self.action.workflow_id, self.action.function_id

    @property
    def place(self) -> tuple[str, int, int]:
        """(server type, server, NUMA node)."""
        return self.action.server_type, self.action.server_index, self.action.numa_node_index

    def __str__(self) -> str:
        return f"{named(self.function)} on {placed_at(*self.place)}"


class Schedule:
    """The claim, indexed. `runs` is in the order of the decisions."""

    def __init__(self, episode: EpisodeFile, results: Results) -> None:
        self.results = results
        self.cluster = episode.cluster
        self.workflows = episode.workflows
        self.types = {declared.name: declared for declared in episode.cluster.server_types}
        times = {(row.workflow_id, row.function_id): row for row in results.functions}
        self.runs = [
            Run(
                index=index,
                declared=self.workflows[action.workflow_id].functions[action.function_id],
                action=action,
                decision=decision,
                times=times[action.workflow_id, action.function_id],
            )
            for index, (action, decision) in enumerate(
                zip(episode.actions, results.decisions, strict=True)
            )
        ]
        self.run_of = {run.function: run for run in self.runs}

    def speed(self, server_type: str) -> int:
        """Operations/s of one core."""
        own = self.types[server_type].single_core_speed_ops_per_s
        return own or self.cluster.single_core_speed_ops_per_s

    def predecessors(self, run: Run) -> list[tuple[Run, int]]:
        """(run, bytes) in ascending function id."""
        wf_id, fn_id = run.function
        edges = sorted(
            (edge.source, edge.data_bytes)
            for edge in self.workflows[wf_id].edges
            if edge.target == fn_id
        )
        return [(self.run_of[wf_id, source], data_bytes) for source, data_bytes in edges]


def close(first: float, second: float) -> bool:
    """Whether two sums of seconds or USD are the same but for rounding."""
    return math.isclose(first, second, rel_tol=RELATIVE_TOLERANCE, abs_tol=TOLERANCE)


def check_close(what: str, stated: float, due: float) -> list[str]:
    """A line if a number of the record is not the one that is due."""
    return [] if close(stated, due) else [f"{what} is {stated}, {due} is due"]


def named(function: tuple[int, int]) -> str:
    """What lines call a function."""
    return f"workflow {function[0]} function {function[1]}"


def placed_at(server_type: str, server_index: int, numa_node_index: int) -> str:
    """What lines call a NUMA node."""
    return f"{server_type} {server_index} node {numa_node_index}"
