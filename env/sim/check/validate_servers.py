"""Replays what a finished schedule says of its servers: leases, memory, CPU shares, transfers.

A part of `env.sim.check.validate`; uses nothing of the engine.
"""

import bisect
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from env.sim.check.cores_by_tickets import CoresByTickets
from env.sim.check.rounding import check_close, close, slack
from env.sim.cluster_file import ServerTypeModel
from env.sim.episode.plain_episode import NodeStatusModel
from env.sim.episode.recorded_schedule import (
    SECONDS_PER_HOUR,
    LeaseRecord,
    Run,
    Schedule,
    placed_at,
)


@dataclass
class _Node:
    """A NUMA node during the replay of the record."""

    name: str
    declared: ServerTypeModel
    core_speed: int
    work_left: dict[tuple[int, float], int] = field(default_factory=dict)
    by_tickets: CoresByTickets | None = None
    clock: float = 0.0
    admitted: list[Run] = field(default_factory=list)
    waiting: deque[Run] = field(default_factory=deque)

    def speeds(self, together: Sequence[Run]) -> list[int]:
        """Operations/s of each of the runs that are on the node together."""
        cores = self.declared.cores_per_numa_node
        parallelism = sum(run.declared.parallelism for run in together)
        share = self.core_speed
        if parallelism > cores:
            share = cores * self.core_speed // parallelism
        shares = [share] * len(together)
        if self.by_tickets is not None:
            threads: dict[int, int] = {}
            for run in together:
                workflow = run.function[0]
                threads[workflow] = threads.get(workflow, 0) + run.declared.parallelism
            of_thread = self.by_tickets.thread_speeds(threads, cores, self.core_speed)
            shares = [of_thread[run.function[0]] for run in together]
        return [
            max(
                1,
                int(
                    min(1.0, run.memory_mb / run.declared.memory_required_mb)
                    * own
                    * run.declared.parallelism
                ),
            )
            for run, own in zip(together, shares, strict=True)
        ]

    def projected_ends(self) -> list[float]:
        """When each admitted run completes if nothing else comes; they start as recorded."""
        now = self.clock
        left = [run.left for run in self.admitted]
        ends = [math.inf] * len(left)
        while math.inf in ends:
            active = [
                position
                for position, run in enumerate(self.admitted)
                if run.start_time <= now and ends[position] == math.inf
            ]
            speeds = self.speeds([self.admitted[position] for position in active])
            next_start = min(
                (run.start_time for run in self.admitted if run.start_time > now),
                default=math.inf,
            )
            next_end, ending = min(
                (
                    (now + left[position] / speed, position)
                    for position, speed in zip(active, speeds, strict=True)
                ),
                default=(math.inf, -1),
            )
            event = min(next_start, next_end)
            for position, speed in zip(active, speeds, strict=True):
                left[position] = max(0, left[position] - int(speed * (event - now)))
            if next_end < next_start:
                ends[ending] = next_end
            now = event
        return ends

    def running_at(self, time: float) -> list[Run]:
        """The runs projected to run at `time`, starts and completions of that moment done."""
        return [
            run
            for run, end in zip(self.admitted, self.projected_ends(), strict=True)
            if run.start_time <= time < end
        ]

    def free_memory_at(self, time: float) -> int:
        """MB projected to be free at `time`."""
        used = sum(run.memory_mb for run in self.running_at(time))
        return self.declared.memory_mb_per_numa_node - used

    def status_at(self, time: float) -> NodeStatusModel:
        """The projected use at `time`."""
        running = self.running_at(time)
        parallelism = sum(run.declared.parallelism for run in running)
        cores = self.declared.cores_per_numa_node
        memory = self.declared.memory_mb_per_numa_node
        used = sum(run.memory_mb for run in running)
        ends = self.projected_ends()
        speed = sum(self.speeds(running))
        return NodeStatusModel(
            cpu_utilisation=speed / (cores * self.core_speed),
            memory_utilisation=used / memory,
            load=parallelism / cores,
            total_parallelism=parallelism,
            free_memory_mb=memory - used,
            time_to_first_completion=max(0.0, min(ends) - time) if ends else 0.0,
            time_to_last_completion=max(0.0, max(ends) - time) if ends else 0.0,
        )

    def try_to_admit(self, run: Run, time: float) -> tuple[bool, list[str]]:
        """Admits `run` if its memory fits at `time`; says so if the record has another start."""
        given = run.memory_mb
        free = self.declared.memory_mb_per_numa_node - sum(one.memory_mb for one in self.admitted)
        if free < given:  # what ends before `time` leaves more
            free = self.free_memory_at(time)
        start = run.start_time
        shown = f"{run}: starts at {start}, "
        if free >= given:
            self.admitted.append(run)
            if not close(start, time):
                return True, [f"{shown}its {given} MB fit at {time}, where {free} MB are free"]
            return True, []
        # A container that waits may do so for an instant, so only the very moment is too early.
        if start == time:
            self.admitted.append(run)
            return True, [f"{shown}where {free} MB are free, it was given {given} MB"]
        return False, []

    def ending_as(self, run: Run) -> Run | None:
        """`run` if it is admitted; of equal completions the one admitted first."""
        equal = [
            one
            for one in self.admitted
            if one is run or (one.completed and run.completed and one.end_time == run.end_time)
        ]
        return next(iter(equal), None)

    def remove(self, run: Run) -> list[str]:
        """Takes `run` out at its recorded end and tries those waiting, in order."""
        self.clock = run.end_time
        self.admitted.remove(run)
        for other in self.admitted:
            other.left = self.work_left.get((other.index, self.clock), other.left)
        found = []
        while self.waiting:
            head = self.waiting[0]
            assert head.creation_time is not None
            admitted, lines = self.try_to_admit(head, max(self.clock, head.creation_time))
            found += lines
            if not admitted:
                break
            self.waiting.popleft()
        return found


MOST_RENEWALS = 1_000_000
"""Of a lease, that are counted one by one as the engine does: a time so much later is damage."""


@dataclass
class _Lease:
    """What a server must have leased."""

    step: float
    end: float = 0.0
    steps: int = 0

    def extend(self, time: float, last_end: float) -> int:
        """Adds the fewest whole steps that cover `last_end`; returns them."""
        if last_end <= self.end:
            return 0
        start = max(time, self.end)
        steps = max(1, math.ceil((last_end - start) / self.step))
        if start + steps * self.step < last_end:  # rounded, that many end just before
            steps += 1
        self.end = start + steps * self.step
        self.steps += steps
        return steps

    def renew_until(self, time: float, closed: bool) -> None:
        """Adds a step at each end before `time`, or, if `closed`, also at `time`."""
        missing = (time - self.end) / self.step
        if missing > MOST_RENEWALS:
            self.end = time
            self.steps += int(missing)
        while self.end < time or (closed and self.end == time):
            self.end += self.step
            self.steps += 1


# What comes first at a moment: completions, then time slices that end, leases, and placements.
_ENDS, _PLACEMENT = {True: 0, False: 1}, 3


def check_servers(schedule: Schedule) -> list[str]:
    """Work, memory, leases and rent, server by server."""
    rents = [0.0] * len(schedule.runs)
    found, work_left = _check_work(schedule)
    for name, declared in schedule.types.items():
        price = declared.hourly_rate * (schedule.lease.step / SECONDS_PER_HOUR)
        for server_id in range(declared.server_count):
            shown = f"server {name} {server_id}"
            row = schedule.leases.get((name, server_id), LeaseRecord(0.0, 0.0, 0.0))
            lines, lease = _replay_server(schedule, (name, server_id), work_left, rents)
            found += lines
            seconds = lease.steps * lease.step
            if not close(row.seconds, seconds, additions=lease.steps):
                found.append(
                    f"{shown}: {row.seconds / SECONDS_PER_HOUR:g} hours rented, "
                    f"{seconds / SECONDS_PER_HOUR:g} are due"
                )
            rent = lease.steps * price
            found += check_close(f"{shown}: rent", row.rent, rent, additions=lease.steps)
            if lease.steps or schedule.lease.kind == "always":
                end = f"{shown}: lease_expiration_time"
                found += check_close(end, row.end, lease.end, additions=lease.steps)
                found += [
                    f"{run}: ends at {run.end_time}, after the lease ends at {row.end}"
                    for run in schedule.runs
                    if run.server == (name, server_id) and run.end_time > row.end
                ]
    for run, rent in zip(schedule.runs, rents, strict=True):
        if run.rent is not None:
            found += check_close(f"decision {run.index}: rent", run.rent, rent)
    return found


def _replay_server(
    schedule: Schedule,
    server: tuple[str, int],
    work_left: dict[tuple[int, float], int],
    rents: list[float],
) -> tuple[list[str], _Lease]:
    """Goes through the record of one server; adds to `rents` (USD) by decision."""
    declared = schedule.types[server[0]]
    runs = [run for run in schedule.runs if run.server == server]
    nodes = [
        _Node(
            placed_at(*server, node_id),
            declared,
            schedule.speed(server[0]),
            work_left,
            schedule.by_tickets,
        )
        for node_id in range(declared.numa_nodes_per_server)
    ]
    always, charged = schedule.lease.kind == "always", schedule.lease.charged
    lease = _Lease(schedule.lease.step, math.inf if always and not charged else 0.0)
    renewed = always and charged
    price = declared.hourly_rate * (lease.step / SECONDS_PER_HOUR)
    decided = [run.dispatch_time for run in schedule.runs]
    last_end = [0.0] * len(nodes)
    found = []
    events = deque(
        sorted(
            [(run.end_time, _ENDS[run.completed], run.index) for run in runs]
            + [(run.dispatch_time, _PLACEMENT, run.index) for run in runs]
        )
    )
    while events:
        position = _next_of(events, schedule.runs, nodes)
        time, kind, index = events[position]
        del events[position]
        run = schedule.runs[index]
        node = nodes[run.place[2]]
        if renewed:
            lease.renew_until(time, closed=kind == _PLACEMENT)
        if kind == _PLACEMENT:
            found += _place_run(schedule, run, nodes, lease)
        else:
            ending = node.ending_as(run)
            if ending is None:
                found.append(f"{run}: ends at {time}, while it still waits for memory")
                continue
            index = max(ending.index, bisect.bisect_left(decided, time) - 1)
            found += node.remove(ending)
        if lease.end < math.inf:
            last_end[run.place[2]] = max(node.projected_ends(), default=0.0)
            rents[index] += lease.extend(time, max(last_end)) * price
    if renewed:
        lease.renew_until(max(run.end_time for run in schedule.runs), closed=False)
    found += [
        f"{run}: never starts, its memory never fits" for node in nodes for run in node.waiting
    ]
    return found, lease


def _next_of(
    events: Sequence[tuple[float, int, int]], runs: Sequence[Run], nodes: Sequence[_Node]
) -> int:
    """Position of the first event that is possible.

    Work may take no time that a late clock could tell. Such a run ends after the events of the same
    moment with which it gets its place and its memory.
    """
    for position, (time, kind, index) in enumerate(events):
        if time > events[0][0]:
            break
        run = runs[index]
        if kind == _PLACEMENT or nodes[run.place[2]].ending_as(run) is not None:
            return position
    return 0


def _place_run(schedule: Schedule, run: Run, nodes: list[_Node], lease: _Lease) -> list[str]:
    """Cold starts, transfer, creation and the start of one placement."""
    node, time = nodes[run.place[2]], run.dispatch_time
    found = []
    if run.node_before is not None:
        found += _check_status(run, run.node_before, node.status_at(time))
    server_start = 0.0
    if lease.end <= time:
        server_start = node.declared.cold_start_latency
        for one in nodes:
            one.clock = time + server_start
        lease.end = -math.inf  # even work of no length begins a lease
        if run.warm:
            found.append(f"{run}: starts warm on a server that was off")
    what = f"{run}: {schedule.server_start_key}"
    found += check_close(what, run.server_start, server_start, run.so_far)
    if not run.warm:
        what, due = f"{run}: container_cold_start_time", run.container_cold_start
        found += check_close(what, run.cold_start, due, run.so_far)
    # Of one that is started ahead, what is left is a difference of times.
    elif run.cold_start > run.container_cold_start + slack(max(time, run.so_far)):
        found.append(
            f"{run}: container_cold_start_time is {run.cold_start} in a warm container, at most "
            f"{run.container_cold_start} is possible"
        )
    transfer = 0.0
    for before, data_bytes in schedule.predecessors(run):
        transfer += data_bytes / _bandwidth(schedule, before.place, run.place)
    found += check_close(f"{run}: data_transfer_time", run.transfer, transfer, run.so_far)
    due = max(node.clock, time) + run.cold_start + transfer
    if run.creation_time is None:
        run.creation_time = due
    found += check_close(f"{run}: creation_time", run.creation_time, due)
    admitted, lines = node.try_to_admit(run, run.creation_time)
    if not admitted:
        node.waiting.append(run)
    return found + lines


def _check_work(schedule: Schedule) -> tuple[list[str], dict[tuple[int, float], int]]:
    """Every run that completes executes what is left of its function between start and end.

    Where a function is preempted, the work that its next run begins with is set.

    Returns:
        The violations, and what is left of each running function (operations) after each start and
        end on its node, by (run, time).
    """
    found = []
    work_left: dict[tuple[int, float], int] = {}
    left = [run.left for run in schedule.runs]
    next_run = {}
    last_of: dict[tuple[int, int], Run] = {}
    for run in schedule.runs:
        if run.function in last_of:
            next_run[last_of[run.function].index] = run
        last_of[run.function] = run
    nodes = {
        run.place: _Node(
            "",
            schedule.types[run.place[0]],
            schedule.speed(run.place[0]),
            by_tickets=schedule.by_tickets,
        )
        for run in schedule.runs
    }
    events = sorted(
        [(run.end_time, 0, run.index) for run in schedule.runs]
        + [(run.start_time, 1, run.index) for run in schedule.runs]
    )
    for time, starts, index in events:
        run = schedule.runs[index]
        node = nodes[run.place]
        if time > node.clock:
            for one, speed in zip(node.admitted, node.speeds(node.admitted), strict=True):
                due = node.clock + left[one.index] / speed
                if one.completed and one.end_time == time and not close(due, time):
                    found.append(
                        f"{one}: completes at {time}, its {one.left} operations are done at {due}"
                    )
                left[one.index] = max(0, left[one.index] - int(speed * (time - node.clock)))
                work_left[one.index, time] = left[one.index]
            node.clock = time
        if starts:
            alone = time + run.left / node.speeds([run])[0]
            if run.completed and run.end_time < alone and not close(run.end_time, alone):
                found.append(
                    f"{run}: completes at {run.end_time}, at full speed it cannot before {alone}"
                )
            if run.end_time > time:
                node.admitted.append(run)
        else:
            if run in node.admitted:
                node.admitted.remove(run)
            if index in next_run:
                next_run[index].left = left[next_run[index].index] = max(1, left[index])
    return found, work_left


def _check_status(run: Run, stated: NodeStatusModel, due: NodeStatusModel) -> list[str]:
    return [
        line
        for key in NodeStatusModel.model_fields
        for line in check_close(
            f"{run}: target_node_before.{key}",
            getattr(stated, key),
            getattr(due, key),
            run.dispatch_time if key.startswith("time_") else 0.0,
        )
    ]


def _bandwidth(
    schedule: Schedule, source: tuple[str, int, int], target: tuple[str, int, int]
) -> float:
    if source == target:
        return schedule.cluster.same_node_bandwidth_bytes_per_s
    if source[:2] == target[:2]:
        return schedule.cluster.between_nodes_of_one_server_bandwidth_bytes_per_s
    return schedule.cluster.between_servers_bandwidth_bytes_per_s
