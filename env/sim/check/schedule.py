"""A finished schedule as its episode file records it, indexed for those who check it.

Uses nothing of the engine.
"""

from dataclasses import dataclass

from env.sim.check.cores_by_tickets import CoresByTickets
from env.sim.episode.model import EpisodeFile
from env.sim.episode.rows import (
    ChangeModel,
    FunctionModel,
    Results,
    RunModel,
    ServerLeaseModel,
)


@dataclass(eq=False)
class Run:
    """A function's time in one container.

    Attributes:
        index: in the order of dispatch.
        row: what is recorded.
        declared: what the function needs.
        left: operations left when it starts.
        container_cold_start: seconds, of its image.
    """

    index: int
    row: RunModel
    declared: FunctionModel
    left: int
    container_cold_start: float

    @property
    def completed(self) -> bool:
        """Whether it was neither preempted nor killed."""
        return self.row.outcome == "completed"

    @property
    def started(self) -> bool:
        """Whether it was not killed while its server, container, data or memory was to come."""
        return self.row.outcome != "killed" or self.row.start_time < self.row.end_time

    def __str__(self) -> str:
        return str(self.row)


class Schedule:
    """The claim, indexed.

    Attributes:
        episode: the file.
        results: its `expected`.
        runs: in the order of dispatch.
        run_of: the last run of each function.
        leases: of the servers that the record names, by (server type, server).
        types: of the servers, by name.
        by_tickets: how tenants share cores; None where all threads share alike.
    """

    def __init__(self, episode: EpisodeFile, results: Results) -> None:
        self.episode, self.results = episode, results
        self.runs = _runs(episode, results)
        self.run_of = {run.row.function: run for run in self.runs}
        self.leases: dict[tuple[str, int], ServerLeaseModel] = {
            (row.server_type, row.server_index): row for row in results.servers
        }
        self.types = {declared.name: declared for declared in episode.cluster.server_types}
        self.by_tickets: CoresByTickets | None = None
        if episode.funding is not None and episode.cluster.cpu_share == "tickets":
            owners = tuple(str(workflow.tenant) for workflow in episode.workflows)
            self.by_tickets = CoresByTickets(episode.funding, owners)

    def changes_of(self, server: tuple[str, int]) -> list[ChangeModel]:
        """Of a server, (server type, server), in their order."""
        return [
            change
            for change in self.episode.changes
            if (change.server_type, change.server_index) == server
        ]

    def down_times(self, server: tuple[str, int]) -> list[float]:
        """When a server goes down (s)."""
        return [change.time for change in self.changes_of(server) if change.condition == "down"]

    def core_speed(self, server_type: str) -> int:
        """Operations/s of one core."""
        own = self.types[server_type].single_core_speed
        return own or self.episode.cluster.single_core_speed

    def predecessors(self, run: Run) -> list[tuple[RunModel, int]]:
        """(last run of a predecessor, bytes) in ascending function id."""
        wf_id, fn_id = run.row.function
        edges = sorted(
            (edge.source, edge.data_bytes)
            for edge in self.episode.workflows[wf_id].edges
            if edge.target == fn_id
        )
        return [(self.run_of[wf_id, source].row, data_bytes) for source, data_bytes in edges]


def _runs(episode: EpisodeFile, results: Results) -> list[Run]:
    runs = []
    for index, row in enumerate(results.runs):
        workflow = episode.workflows[row.workflow_id]
        declared = workflow.functions[row.function_id]
        image = None if declared.image is None else episode.images[declared.image]
        runs.append(
            Run(
                index=index,
                row=row,
                declared=declared,
                left=workflow.work or declared.computation,
                container_cold_start=image.container_cold_start if image else 0.0,
            )
        )
    return runs
