"""Replays what a finished schedule says of its servers: leases, memory, CPU shares, transfers.

A part of `env.sim.check.validate`; uses nothing of the engine.
"""

import bisect
import itertools
import math
from collections import deque
from dataclasses import dataclass, field

from env.sim.cluster_file import ServerTypeModel
from env.sim.episode.episode_file import NodeStatusModel
from env.sim.episode.recorded_schedule import (
    Run,
    Schedule,
    check_close,
    close,
    placed_at,
)

SECONDS_PER_HOUR = 3600


@dataclass
class _Node:
    """A NUMA node during the replay of the record."""

    name: str
    declared: ServerTypeModel
    core_speed: int
    clock: float = 0.0
    admitted: list[Run] = field(default_factory=list)
    waiting: deque[Run] = field(default_factory=deque)
    work_left: dict[tuple[tuple[int, int], float], int] = field(default_factory=dict)

    def speed(self, run: Run, parallelism: int) -> int:
        """Operations/s of `run` while `parallelism` runs on the node."""
        cores = self.declared.cores_per_numa_node
        share = self.core_speed
        if parallelism > cores:
            share = cores * self.core_speed // parallelism
        ratio = min(1.0, run.action.memory_allocated_mb / run.declared.memory_required_mb)
        return max(1, int(ratio * share * run.declared.parallelism))

    def projected_ends(self) -> list[float]:
        """When each admitted run completes if nothing else comes; they start as recorded."""
        now = self.clock
        left = [run.left for run in self.admitted]
        ends = [math.inf] * len(left)
        while math.inf in ends:
            active = [
                position
                for position, run in enumerate(self.admitted)
                if run.times.start_time <= now and ends[position] == math.inf
            ]
            parallelism = sum(self.admitted[position].declared.parallelism for position in active)
            speeds = [self.speed(self.admitted[position], parallelism) for position in active]
            next_start = min(
                (run.times.start_time for run in self.admitted if run.times.start_time > now),
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
            if run.times.start_time <= time < end
        ]

    def free_memory_at(self, time: float) -> int:
        """MB projected to be free at `time`."""
        used = sum(run.action.memory_allocated_mb for run in self.running_at(time))
        return self.declared.memory_mb_per_numa_node - used

    def status_at(self, time: float) -> NodeStatusModel:
        """The projected use at `time`."""
        running = self.running_at(time)
        parallelism = sum(run.declared.parallelism for run in running)
        cores = self.declared.cores_per_numa_node
        memory = self.declared.memory_mb_per_numa_node
        used = sum(run.action.memory_allocated_mb for run in running)
        ends = self.projected_ends()
        speed = sum(self.speed(run, parallelism) for run in running)
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
        free = self.free_memory_at(time)
        given = run.action.memory_allocated_mb
        start = run.times.start_time
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

    def complete(self, run: Run) -> list[str]:
        """Takes `run` out at its recorded completion and tries those waiting, in order."""
        self.clock = run.times.completion_time
        self.admitted.remove(run)
        for other in self.admitted:
            other.left = self.work_left.get((other.function, self.clock), other.left)
        found = []
        while self.waiting:
            head = self.waiting[0]
            admitted, lines = self.try_to_admit(head, max(self.clock, head.times.creation_time))
            found += lines
            if not admitted:
                break
            self.waiting.popleft()
        return found


@dataclass
class _Lease:
    """What a server must have rented."""

    end: float = 0.0
    hours: int = 0


def check_servers(schedule: Schedule) -> list[str]:
    """Work, memory, leases and rent, server by server."""
    rents = [0.0] * len(schedule.runs)
    found = []
    stated = {(row.server_type, row.server_index): row for row in schedule.results.servers}
    used = {run.place[:2] for run in schedule.runs}
    for name, declared in schedule.types.items():
        for server_id in range(declared.server_count):
            row = stated.get((name, server_id))
            lease = _Lease()
            if (name, server_id) in used:
                lines, lease = _replay_server(schedule, name, server_id, rents)
                found += lines
            shown = f"server {name} {server_id}"
            hours = row.hours_rented if row else 0
            if hours != lease.hours:
                found.append(f"{shown}: {hours} hours rented, {lease.hours} are due")
            if row is None:
                continue
            found += check_close(f"{shown}: rent", row.rent, lease.hours * declared.hourly_rate)
            if lease.hours:
                found += check_close(
                    f"{shown}: lease_expiration_time", row.lease_expiration_time, lease.end
                )
                found += [
                    f"{run}: completes at {run.times.completion_time}, after the lease ends at "
                    f"{row.lease_expiration_time}"
                    for run in schedule.runs
                    if run.place[:2] == (name, server_id)
                    and run.times.completion_time > row.lease_expiration_time
                ]
    for run, rent in zip(schedule.runs, rents, strict=True):
        found += check_close(f"decision {run.index}: rent", run.decision.rent, rent)
    return found


def _replay_server(
    schedule: Schedule, name: str, server_id: int, rents: list[float]
) -> tuple[list[str], _Lease]:
    """Goes through the record of one server; adds to `rents` (USD) by decision."""
    declared = schedule.types[name]
    runs = [run for run in schedule.runs if run.place[:2] == (name, server_id)]
    nodes = [
        _Node(placed_at(name, server_id, node_id), declared, schedule.speed(name))
        for node_id in range(declared.numa_nodes_per_server)
    ]
    found = []
    for node_id, node in enumerate(nodes):
        lines, node.work_left = _check_work(node, [run for run in runs if run.place[2] == node_id])
        found += lines
    lease = _Lease()
    decided = [run.times.submission_time for run in schedule.runs]
    last_end = [0.0] * len(nodes)
    # A completion comes before a placement at the same time.
    events = sorted(
        [(run.times.completion_time, 0, run.index) for run in runs]
        + [(run.times.submission_time, 1, run.index) for run in runs]
    )
    for time, kind, index in events:
        run = schedule.runs[index]
        node = nodes[run.place[2]]
        if kind == 1:
            found += _place_run(schedule, run, nodes, lease)
        else:
            # Of equal completions the one admitted first.
            ending = [one for one in node.admitted if one.times.completion_time == time]
            if not ending:
                found.append(f"{run}: completes at {time}, while it still waits for memory")
                continue
            index = max(0, bisect.bisect_left(decided, time) - 1)
            found += node.complete(ending[0])
        last_end[run.place[2]] = max(node.projected_ends(), default=0.0)
        hours = _renew(lease, time, max(last_end))
        rents[index] += hours * declared.hourly_rate
    found += [
        f"{run}: never starts, its memory never fits" for node in nodes for run in node.waiting
    ]
    return found, lease


def _place_run(schedule: Schedule, run: Run, nodes: list[_Node], lease: _Lease) -> list[str]:
    """Cold start, transfer, creation and the start of one placement."""
    node = nodes[run.place[2]]
    submission = run.times.submission_time
    found = _check_status(run, node.status_at(submission))
    cold_start = 0.0
    if lease.end <= submission:
        cold_start = node.declared.cold_start_latency
        for one in nodes:
            one.clock = submission + cold_start
    found += check_close(f"{run}: cold_start_time", run.decision.cold_start_time, cold_start)
    transfer = 0.0
    for before, data_bytes in schedule.predecessors(run):
        transfer += data_bytes / _bandwidth(schedule, before.place, run.place)
    found += check_close(f"{run}: data_transfer_time", run.decision.data_transfer_time, transfer)
    due = max(node.clock, submission) + transfer
    found += check_close(f"{run}: creation_time", run.times.creation_time, due)
    admitted, lines = node.try_to_admit(run, run.times.creation_time)
    if not admitted:
        node.waiting.append(run)
    return found + lines


def _check_work(
    node: _Node, runs: list[Run]
) -> tuple[list[str], dict[tuple[tuple[int, int], float], int]]:
    """Every run executes its computation between its recorded start and completion.

    Returns:
        The violations, and what is left of each running function (operations) after each start
        and completion on the node, by (function, time).
    """
    found = []
    work_left = {}
    left = {run.function: run.declared.computation for run in runs}
    events = sorted(
        {time for run in runs for time in (run.times.start_time, run.times.completion_time)}
    )
    for run in runs:
        alone = run.times.start_time + left[run.function] / node.speed(run, 0)
        end = run.times.completion_time
        if end < alone and not close(end, alone):
            found.append(f"{run}: completes at {end}, at full speed it cannot before {alone}")
    for now, event in itertools.pairwise(events):
        active = [run for run in runs if run.times.start_time <= now < run.times.completion_time]
        parallelism = sum(run.declared.parallelism for run in active)
        for run in active:
            speed = node.speed(run, parallelism)
            due = now + left[run.function] / speed
            if run.times.completion_time == event and not close(due, event):
                found.append(
                    f"{run}: completes at {event}, its {run.declared.computation} operations are "
                    f"done at {due}"
                )
            left[run.function] = max(0, left[run.function] - int(speed * (event - now)))
            work_left[run.function, event] = left[run.function]
    return found, work_left


def _check_status(run: Run, due: NodeStatusModel) -> list[str]:
    stated = run.decision.target_node_before
    return [
        line
        for key in NodeStatusModel.model_fields
        for line in check_close(
            f"{run}: target_node_before.{key}", getattr(stated, key), getattr(due, key)
        )
    ]


def _renew(lease: _Lease, time: float, last_end: float) -> int:
    """Extends `lease` by whole hours to cover `last_end`; returns the hours."""
    if last_end <= lease.end:
        return 0
    start = max(time, lease.end)
    hours = math.ceil((last_end - start) / SECONDS_PER_HOUR)
    lease.end = start + hours * SECONDS_PER_HOUR
    lease.hours += hours
    return hours


def _bandwidth(
    schedule: Schedule, source: tuple[str, int, int], target: tuple[str, int, int]
) -> float:
    if source == target:
        return schedule.cluster.same_node_bandwidth_bytes_per_s
    if source[:2] == target[:2]:
        return schedule.cluster.between_nodes_of_one_server_bandwidth_bytes_per_s
    return schedule.cluster.between_servers_bandwidth_bytes_per_s
