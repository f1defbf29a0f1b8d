"""A finished schedule as its episode file records it, indexed, and how its numbers are compared."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache, cached_property, partial
from operator import attrgetter, itemgetter

import numpy as np

from env.sim.declared.funding import Funding
from env.sim.episode.model import EdgeModel, EpisodeFile, Results, RunModel, ServerLeaseModel
from env.sim.state.draws import calls
from env.sim.state.records import MB_PER_GB

Function = tuple[int, int]
"""(workflow, function)."""
Server = tuple[str, int]
"""(server type, server)."""
Place = tuple[str, int, int]
"""(server type, server, NUMA node)."""

UNUSED = {"lease_seconds": 0.0, "lease_expiration_time": 0.0, "rent": 0.0}
"""What is recorded of a server that was never leased; the record may leave it out."""

# The order of float64 additions is not part of the rules, and costs the last digits: of numbers of
# any size, and of a small difference of late times as many as the times have (seconds, USD).
TOLERANCE = 1e-9
RELATIVE_TOLERANCE = 1e-12
OF_ONE_ADDITION = 2.0**-53


class Schedule:
    """The claim, indexed.

    Attributes:
        episode: the file.
        results: its `expected`.
        cluster: its cluster.
        types: of the servers, by name.
        declared: what each function needs.
        runs_of: the runs of each function, in the order of dispatch.
        completed: those of them that completed.
        not_called: functions that nobody has called, and when that was known (s).
        leases: of every server.
        loses_data: whether data of functions that have finished can be lost.
        losses: when data may be lost, or be needed again by one that is preempted (s).
        tickets: whole tickets of the tenants that run on a node, as they are worth without others;
            None where all threads share cores alike.
    """

    def __init__(self, episode: EpisodeFile, results: Results) -> None:
        self.episode, self.results = episode, results
        self.cluster, self.declared = episode.cluster, episode.functions
        self.types = {kind.name: kind for kind in self.cluster.server_types}
        self.runs_of: dict[Function, list[RunModel]] = defaultdict(list)
        self.completed: dict[Function, list[RunModel]] = defaultdict(list)
        for run in results.runs:
            self.runs_of[run.function].append(run)
            if run.outcome == "completed":
                self.completed[run.function].append(run)
        self.leases: dict[Server, ServerLeaseModel] = {
            (name, server): ServerLeaseModel(server_type=name, server_index=server, **UNUSED)
            for name, server, _ in self.cluster.places
        } | {row.server: row for row in results.servers}
        self.not_called = {
            row.function: row.time for row in results.unfinished if row.reason == "not called"
        }
        recovery = episode.options.recovery
        self.loses_data = recovery is not None and recovery.data_durability == "server"
        self.losses = {change.time for change in episode.changes if change.condition == "down"}
        self.losses |= {run.end_time for run in results.runs if run.outcome == "preempted"}
        self.tickets = None
        if episode.funding is not None and self.cluster.cpu_share == "tickets":
            self.tickets = cache(partial(_tickets, episode.funding))

    def tenant(self, run: RunModel) -> str | None:
        """Whose a run is; None without tenants."""
        return self.episode.workflows[run.workflow_id].tenant

    def edges_to(self, function: Function) -> list[EdgeModel]:
        """Those of its workflow that lead to a function."""
        edges = self.episode.workflows[function[0]].edges
        return [edge for edge in edges if edge.target == function[1]]

    def skipped_before(self, function: Function) -> list[float]:
        """When it was known of callers of a function that nobody calls them (s)."""
        callers = [(function[0], edge.source) for edge in self.edges_to(function)]
        return [self.not_called[caller] for caller in callers if caller in self.not_called]

    def is_taken(self, wf_id: int, edge: EdgeModel) -> bool:
        """Whether the source of an edge, once it ends, calls the target."""
        seed, probability = np.uint64(self.episode.options.seed), edge.probability or 1.0
        return bool(calls(seed, wf_id, edge.source, edge.target, probability))

    @cached_property
    def uses(self) -> Mapping[Server, float]:
        """What the runs on each server pay per use (USD), those that end first the free ones."""
        paid: dict[Server, float] = defaultdict(float)
        requests, gb_seconds, places = 0, 0.0, list(self.cluster.places)
        use = self.episode.options.lease.use
        if use is None:
            return paid
        order = [
            (run.end_time, run.outcome != "completed", places.index(run.place), run)
            for run in self.results.runs
            if run.outcome == "completed" or run.start_time < run.end_time
        ]
        for *_, run in sorted(order, key=itemgetter(0, 1, 2)):
            more = run.memory_allocated_mb / MB_PER_GB * run.execution_time
            billed = min(more, max(0.0, gb_seconds + more - use.free_gb_seconds))
            kind = self.types[run.server_type]
            price = billed * getattr(use.gb_second, kind.architecture)
            price += use.request if requests >= use.free_requests else 0.0
            paid[run.server] += price * self.cluster.price_of(kind)
            requests, gb_seconds = requests + 1, gb_seconds + more
        return paid

    def inputs(self, run: RunModel) -> list[tuple[RunModel, int]]:
        """Those of `predecessors` at its dispatch that have called a function."""
        wf_id, edges = run.workflow_id, self.edges_to(run.function)
        callers = {edge.source for edge in edges if self.is_taken(wf_id, edge)}
        before = self.predecessors(run, run.dispatch_time)
        return [(source, size) for source, size in before if source.function_id in callers]

    def predecessors(self, run: RunModel, by: float) -> list[tuple[RunModel, int]]:
        """(last run of a predecessor that was done by a time, bytes) in ascending function id.

        There are no bytes from one that did not call the function.
        """
        edges = sorted(
            (edge.source, edge.data_bytes * self.is_taken(run.workflow_id, edge))
            for edge in self.edges_to(run.function)
        )
        latest = []
        for source, size in edges:
            of_source = self.runs_of.get((run.workflow_id, source), [])
            done = self.completed.get((run.workflow_id, source), []) or of_source[-1:]
            if done:
                # Where none was done by then, the last of all.
                latest.append((done[bisect_right(done, by, key=attrgetter("end_time")) - 1], size))
        return latest


def _tickets(funding: Funding, there: frozenset[str]) -> Mapping[str, int]:
    rights = funding.rights()
    for tenant in funding.tenants:
        if tenant not in there:
            rights.stop(tenant)
    return rights.whole_tickets(funding.rough)


def slack(size: float, additions: int = 0) -> float:
    """By how much a number may be off.

    Args:
        size: the largest number that it was computed from (s, USD).
        additions: that made it, beyond a few.
    """
    return max(TOLERANCE, (RELATIVE_TOLERANCE + additions * OF_ONE_ADDITION) * size)


def close(first: float, second: float, size: float = 0.0, additions: int = 0) -> bool:
    """Whether two numbers are the same; arguments as of `slack`, a size below theirs is theirs."""
    largest = max(abs(first), abs(second), size)
    return first == second or abs(first - second) <= slack(largest, additions) < float("inf")


def check_close(
    what: str, stated: float, due: float, size: float = 0.0, additions: int = 0
) -> Iterator[str]:
    """A line if a number of the record is not the one that is due."""
    if not close(stated, due, size, additions):
        yield f"{what} is {stated}, {due} is due"
