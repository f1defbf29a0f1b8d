"""A finished schedule as its episode file records it, indexed for those who check it.

Uses nothing of the engine.
"""

import math
from collections import defaultdict
from dataclasses import dataclass

from env.sim.check.cores_by_tickets import CoresByTickets
from env.sim.episode.episode_parts import EpisodeFile, FunctionModel, named
from env.sim.episode.plain_episode import NodeStatusModel, PlainEpisode, Results
from env.sim.episode.world_episode import PARTS, RunResults, WorldEpisode
from env.sim.rules import HOURLY

SECONDS_PER_HOUR = 3600


@dataclass(eq=False)
class Run:
    """A function's time in one container, as recorded; moments and what they are made of in s.

    Attributes:
        index: in the order of dispatch.
        function: (workflow, function).
        place: (server type, server, NUMA node).
        declared: what the function needs.
        memory_mb: that it was given.
        left: operations left at its node's clock.
        cold_start: of its container; `container_cold_start` is that of its image.
        completed: whether it was not preempted.
        so_far: what all runs of the function up to here are made of, summed; where there are
            several, the parts of each are differences of such sums.
        creation_time, rent, node_before: what format 1 says besides: USD up to the next decision,
            and the node just before.
    """

    index: int
    function: tuple[int, int]
    place: tuple[str, int, int]
    declared: FunctionModel
    memory_mb: int
    left: int
    submission_time: float
    dispatch_time: float
    start_time: float
    end_time: float
    server_start: float
    transfer: float
    cold_start: float = 0.0
    container_cold_start: float = 0.0
    warm: bool = False
    completed: bool = True
    so_far: float = 0.0
    creation_time: float | None = None
    rent: float | None = None
    node_before: NodeStatusModel | None = None

    @property
    def server(self) -> tuple[str, int]:
        """(server type, server)."""
        return self.place[:2]

    def __str__(self) -> str:
        return f"{named(self.function)} on {placed_at(*self.place)}"


@dataclass(frozen=True)
class LeaseRecord:
    """What is recorded of a server: seconds leased, end of the last lease (s), rent (USD)."""

    seconds: float
    end: float
    rent: float


class Schedule:
    """The claim, indexed.

    Attributes:
        runs: in the order of dispatch.
        run_of: the last run of each function.
        queued: whether functions wait centrally.
        lease: when servers are up, and how they are paid.
        leases: of the servers that the record names.
        server_start_key: what the file calls the start of a server.
        by_tickets: how tenants share cores; None where all threads share alike.
    """

    def __init__(self, episode: EpisodeFile) -> None:
        self.cluster = episode.cluster
        self.workflows = episode.workflows
        self.types = {declared.name: declared for declared in episode.cluster.server_types}
        self.lease = HOURLY
        self.queued = False
        self.server_start_key = "cold_start_time"
        self.by_tickets: CoresByTickets | None = None
        if isinstance(episode, WorldEpisode) and episode.expected is not None:
            if episode.funding is not None and episode.cluster.cpu_share == "tickets":
                owners = tuple(str(workflow.tenant) for workflow in episode.workflows)
                self.by_tickets = CoresByTickets(episode.funding, owners)
            self.lease = episode.options.lease
            self.queued = episode.options.queue is not None
            self.server_start_key = "server_start_time"
            self.runs = _runs_of_world(episode, episode.expected)
            self.leases = {
                (row.server_type, row.server_index): LeaseRecord(
                    row.lease_seconds,
                    math.inf if row.lease_expiration_time is None else row.lease_expiration_time,
                    row.rent,
                )
                for row in episode.expected.servers
            }
        elif isinstance(episode, PlainEpisode) and episode.expected is not None:
            self.runs = _runs_of_plain(episode, episode.expected)
            self.leases = {
                (row.server_type, row.server_index): LeaseRecord(
                    row.hours_rented * SECONDS_PER_HOUR, row.lease_expiration_time, row.rent
                )
                for row in episode.expected.servers
            }
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


def _runs_of_plain(episode: PlainEpisode, results: Results) -> list[Run]:
    times = {(row.workflow_id, row.function_id): row for row in results.functions}
    functions = episode.functions
    runs = []
    for index, (action, decision) in enumerate(
        zip(episode.actions, results.decisions, strict=True)
    ):
        own, declared = times[action.function], functions[action.function]
        runs.append(
            Run(
                index=index,
                function=action.function,
                place=action.place,
                declared=declared,
                memory_mb=action.memory_allocated_mb,
                left=declared.computation,
                submission_time=own.submission_time,
                dispatch_time=own.submission_time,
                start_time=own.start_time,
                end_time=own.completion_time,
                server_start=decision.cold_start_time,
                transfer=decision.data_transfer_time,
                creation_time=own.creation_time,
                rent=decision.rent,
                node_before=decision.target_node_before,
            )
        )
    return runs


def _runs_of_world(episode: WorldEpisode, results: RunResults) -> list[Run]:
    runs = []
    so_far: defaultdict[tuple[int, int], float] = defaultdict(float)
    for index, row in enumerate(results.runs):
        so_far[row.function] += sum(getattr(row, part) for part in PARTS)
        workflow = episode.workflows[row.workflow_id]
        declared = workflow.functions[row.function_id]
        image = None if declared.image is None else episode.images[declared.image]
        runs.append(
            Run(
                index=index,
                function=row.function,
                place=row.place,
                declared=declared,
                memory_mb=row.memory_allocated_mb,
                left=workflow.work or declared.computation,
                submission_time=row.submission_time,
                dispatch_time=row.dispatch_time,
                start_time=row.start_time,
                end_time=row.end_time,
                server_start=row.server_start_time,
                transfer=row.data_transfer_time,
                cold_start=row.container_cold_start_time,
                container_cold_start=image.container_cold_start if image else 0.0,
                warm=row.warm,
                completed=row.outcome == "completed",
                so_far=so_far[row.function],
            )
        )
    return runs


def placed_at(server_type: str, server_index: int, numa_node_index: int) -> str:
    """What lines call a NUMA node."""
    return f"{server_type} {server_index} node {numa_node_index}"
