"""Checks a finished schedule without the simulator: `python -m env.sim.validate FILE...`.

Takes an episode file's results as a claim and recomputes, from the recorded times, what the rules
of the simulation make of them. Uses nothing of the engine.
"""

import argparse
import bisect
import itertools
import math
import sys
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from env.schema import one_line
from env.sim.cluster_file import ServerTypeModel
from env.sim.episode_file import (
    ActionModel,
    DecisionModel,
    EpisodeFile,
    FunctionModel,
    FunctionTimesModel,
    NodeStatusModel,
    Results,
    read_episode,
)
from env.sim.errors import InputError, located

# Seconds and USD: the order of float64 additions is not part of the rules.
TOLERANCE = 1e-9
SECONDS_PER_HOUR = 3600


def violations(episode: EpisodeFile) -> list[str]:
    """One line for each rule that the results of `episode` break; empty if the schedule is right.

    Every function must be accounted for exactly once before anything else can be told.

    Raises:
        InputError: the episode has no results to check.
    """
    results = episode.expected
    if results is None:
        raise InputError("expected: missing, only a finished schedule can be checked")
    found = _check_accounts(episode, results)
    if found:
        return found
    schedule = _Schedule(episode, results)
    return [
        *_check_times(schedule),
        *_check_decision_order(schedule),
        *_check_precedence(schedule),
        *_check_completed_sets(schedule),
        *_check_servers(schedule),
        *_check_totals(schedule),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(
        usage=argparse.SUPPRESS,
        prog="python -m env.sim.validate",
        description="Check the results in episode files without the simulator. Prints one line for "
        "each violation; exit code 1 if there is one.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="episode file, plain or .gz")
    found: list[str] = []
    try:
        for file in parser.parse_args(arguments).files:
            episode = read_episode(file)
            with located(file):
                found += [f"{file}: {line}" for line in violations(episode)]
    except InputError as error:
        print(one_line(str(error)), file=sys.stderr)
        return 2
    for line in found:
        print(line)
    return 1 if found else 0


@dataclass
class _Run:
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
        return self.action.workflow_id, self.action.function_id

    @property
    def place(self) -> tuple[str, int, int]:
        return self.action.server_type, self.action.server_index, self.action.numa_node_index

    def __str__(self) -> str:
        return f"{_name(self.function)} on {_place(*self.place)}"


class _Schedule:
    """The claim, indexed. `runs` is in the order of the decisions."""

    def __init__(self, episode: EpisodeFile, results: Results) -> None:
        self.results = results
        self.cluster = episode.cluster
        self.workflows = episode.workflows
        self.types = {declared.name: declared for declared in episode.cluster.server_types}
        times = {(row.workflow_id, row.function_id): row for row in results.functions}
        self.runs = [
            _Run(
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

    def predecessors(self, run: _Run) -> list[tuple[_Run, int]]:
        """(run, bytes) in ascending function id."""
        wf_id, fn_id = run.function
        edges = sorted(
            (edge.source, edge.data_bytes)
            for edge in self.workflows[wf_id].edges
            if edge.target == fn_id
        )
        return [(self.run_of[wf_id, source], data_bytes) for source, data_bytes in edges]


def _check_accounts(episode: EpisodeFile, results: Results) -> list[str]:
    """Every function placed once, on a node that exists and could hold it, and finished once."""
    known = {
        (workflow.workflow_id, function.function_id)
        for workflow in episode.workflows
        for function in workflow.functions
    }
    placed = Counter((row.workflow_id, row.function_id) for row in episode.actions)
    finished = Counter((row.workflow_id, row.function_id) for row in results.functions)
    found = []
    for what, counts in (("placed", placed), ("finished", finished)):
        found += [f"{_name(one)} is unknown, but {what}" for one in sorted(counts.keys() - known)]
        found += [
            f"{_name(one)} is {what} {counts[one]} times, exactly once is needed"
            for one in sorted(known)
            if counts[one] != 1
        ]
    for what, count in (
        ("decision_count", results.decision_count),
        ("rows of decisions", len(results.decisions)),
    ):
        if count != len(episode.actions):
            found.append(f"{what}: {count} found, there are {len(episode.actions)} actions")
    types = {declared.name: declared for declared in episode.cluster.server_types}
    for row in episode.actions:
        where = _place(row.server_type, row.server_index, row.numa_node_index)
        shown = f"{_name((row.workflow_id, row.function_id))} is placed on {where}"
        declared = types.get(row.server_type)
        if (
            declared is None
            or row.server_index >= declared.server_count
            or row.numa_node_index >= declared.numa_nodes_per_server
        ):
            found.append(f"{shown}, which does not exist")
        elif not 1 <= row.memory_allocated_mb <= declared.memory_mb_per_numa_node:
            found.append(
                f"{shown} with {row.memory_allocated_mb} MB, "
                f"1 to {declared.memory_mb_per_numa_node} MB are possible"
            )
    for server, count in Counter(
        (row.server_type, row.server_index) for row in results.servers
    ).items():
        if server[0] not in types or server[1] >= types[server[0]].server_count:
            found.append(f"servers: {server[0]} {server[1]} does not exist")
        elif count > 1:
            found.append(f"servers: {server[0]} {server[1]} stands {count} times")
    return found


def _check_times(schedule: _Schedule) -> list[str]:
    """Submission <= creation <= start <= completion, and both tables say the same."""
    found = []
    for run in schedule.runs:
        steps = [
            (key, getattr(run.times, key))
            for key in ("submission_time", "creation_time", "start_time", "completion_time")
        ]
        for (early_key, early), (late_key, late) in itertools.pairwise(steps):
            if early > late:
                found.append(f"{run}: {early_key} {early} is after {late_key} {late}")
        for key in ("submission_time", "creation_time"):
            found += _check_close(
                f"{run}: {key} of the decision", getattr(run.decision, key), getattr(run.times, key)
            )
    return found


def _check_decision_order(schedule: _Schedule) -> list[str]:
    """Decisions are ordered by (submission time, workflow, function)."""
    return [
        f"decisions {first.index} and {second.index}: {_name(first.function)}, submitted at "
        f"{first.times.submission_time}, comes before {_name(second.function)}, submitted at "
        f"{second.times.submission_time}"
        for first, second in itertools.pairwise(schedule.runs)
        if (first.times.submission_time, first.function)
        > (second.times.submission_time, second.function)
    ]


def _check_precedence(schedule: _Schedule) -> list[str]:
    """A function is submitted when the last of its predecessors completes, or at the arrival."""
    found = []
    for run in schedule.runs:
        arrival = schedule.workflows[run.function[0]].arrival_time
        ends = [before.times.completion_time for before, _ in schedule.predecessors(run)]
        due = max(ends, default=arrival)
        found += _check_close(f"{run}: submission_time", run.times.submission_time, due)
    return found


def _check_completed_sets(schedule: _Schedule) -> list[str]:
    """What completes after a decision and no later than the next one's submission."""
    decided = [run.times.submission_time for run in schedule.runs]
    due: list[list[tuple[float, int, int]]] = [[] for _ in schedule.runs]
    for run in schedule.runs:
        after = bisect.bisect_left(decided, run.times.completion_time) - 1
        if after >= 0:
            due[after].append((run.times.completion_time, *run.function))
    found = []
    for run, completed in zip(schedule.runs, due, strict=True):
        wanted = [function for _, *function in sorted(completed)]
        stated = [list(function) for function in run.decision.completed_before_next_decision]
        if stated != wanted:
            found.append(
                f"decision {run.index}: completed_before_next_decision is {stated}, by the "
                f"completion times it is {wanted}"
            )
    return found


@dataclass
class _Node:
    """A NUMA node during the replay of the record."""

    name: str
    declared: ServerTypeModel
    core_speed: int
    clock: float = 0.0
    admitted: list[_Run] = field(default_factory=list)
    waiting: deque[_Run] = field(default_factory=deque)
    work_left: dict[tuple[tuple[int, int], float], int] = field(default_factory=dict)

    def speed(self, run: _Run, parallelism: int) -> int:
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

    def running_at(self, time: float) -> list[_Run]:
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

    def try_to_admit(self, run: _Run, time: float) -> tuple[bool, list[str]]:
        """Admits `run` if its memory fits at `time`; says so if the record has another start."""
        free = self.free_memory_at(time)
        given = run.action.memory_allocated_mb
        start = run.times.start_time
        shown = f"{run}: starts at {start}, "
        if free >= given:
            self.admitted.append(run)
            if not _close(start, time):
                return True, [f"{shown}its {given} MB fit at {time}, where {free} MB are free"]
            return True, []
        if _close(start, time):
            self.admitted.append(run)
            return True, [f"{shown}where {free} MB are free, it was given {given} MB"]
        return False, []

    def complete(self, run: _Run) -> list[str]:
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


def _check_servers(schedule: _Schedule) -> list[str]:
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
            found += _check_close(f"{shown}: rent", row.rent, lease.hours * declared.hourly_rate)
            if lease.hours:
                found += _check_close(
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
        found += _check_close(f"decision {run.index}: rent", run.decision.rent, rent)
    return found


def _replay_server(
    schedule: _Schedule, name: str, server_id: int, rents: list[float]
) -> tuple[list[str], _Lease]:
    """Goes through the record of one server; adds to `rents` (USD) by decision."""
    declared = schedule.types[name]
    runs = [run for run in schedule.runs if run.place[:2] == (name, server_id)]
    nodes = [
        _Node(_place(name, server_id, node_id), declared, schedule.speed(name))
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


def _place_run(schedule: _Schedule, run: _Run, nodes: list[_Node], lease: _Lease) -> list[str]:
    """Cold start, transfer, creation and the start of one placement."""
    node = nodes[run.place[2]]
    submission = run.times.submission_time
    found = _check_status(run, node.status_at(submission))
    cold_start = 0.0
    if lease.end <= submission:
        cold_start = node.declared.cold_start_latency
        for one in nodes:
            one.clock = submission + cold_start
    found += _check_close(f"{run}: cold_start_time", run.decision.cold_start_time, cold_start)
    transfer = 0.0
    for before, data_bytes in schedule.predecessors(run):
        transfer += data_bytes / _bandwidth(schedule, before.place, run.place)
    found += _check_close(f"{run}: data_transfer_time", run.decision.data_transfer_time, transfer)
    due = max(node.clock, submission) + transfer
    found += _check_close(f"{run}: creation_time", run.times.creation_time, due)
    admitted, lines = node.try_to_admit(run, run.times.creation_time)
    if not admitted:
        node.waiting.append(run)
    return found + lines


def _check_work(
    node: _Node, runs: list[_Run]
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
        if run.times.completion_time < alone - TOLERANCE:
            found.append(
                f"{run}: completes at {run.times.completion_time}, at full speed it cannot before "
                f"{alone}"
            )
    for now, event in itertools.pairwise(events):
        active = [run for run in runs if run.times.start_time <= now < run.times.completion_time]
        parallelism = sum(run.declared.parallelism for run in active)
        for run in active:
            speed = node.speed(run, parallelism)
            due = now + left[run.function] / speed
            if run.times.completion_time == event and not _close(due, event):
                found.append(
                    f"{run}: completes at {event}, its {run.declared.computation} operations are "
                    f"done at {due}"
                )
            left[run.function] = max(0, left[run.function] - int(speed * (event - now)))
            work_left[run.function, event] = left[run.function]
    return found, work_left


def _check_status(run: _Run, due: NodeStatusModel) -> list[str]:
    stated = run.decision.target_node_before
    return [
        line
        for key in NodeStatusModel.model_fields
        for line in _check_close(
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
    schedule: _Schedule, source: tuple[str, int, int], target: tuple[str, int, int]
) -> float:
    if source == target:
        return schedule.cluster.same_node_bandwidth_bytes_per_s
    if source[:2] == target[:2]:
        return schedule.cluster.between_nodes_of_one_server_bandwidth_bytes_per_s
    return schedule.cluster.between_servers_bandwidth_bytes_per_s


def _check_totals(schedule: _Schedule) -> list[str]:
    """The sums at the end of the file."""
    results = schedule.results
    found = _check_close("total_rent", results.total_rent, sum(row.rent for row in results.servers))
    ends: list[list[float]] = [[] for _ in schedule.workflows]
    for run in schedule.runs:
        ends[run.function[0]].append(run.times.completion_time)
    found += _check_close("last_completion_time", results.last_completion_time, max(map(max, ends)))
    stated = results.workflow_completion_times
    if len(stated) != len(ends):
        return [*found, f"workflow_completion_times: {len(stated)} found, {len(ends)} are needed"]
    for wf_id, (time, own) in enumerate(zip(stated, ends, strict=True)):
        found += _check_close(f"workflow_completion_times.{wf_id}", time, max(own))
    return found


def _close(first: float, second: float) -> bool:
    return math.isclose(first, second, rel_tol=0.0, abs_tol=TOLERANCE)


def _check_close(what: str, stated: float, due: float) -> list[str]:
    return [] if _close(stated, due) else [f"{what} is {stated}, {due} is due"]


def _name(function: tuple[int, int]) -> str:
    return f"workflow {function[0]} function {function[1]}"


def _place(server_type: str, server_index: int, numa_node_index: int) -> str:
    return f"{server_type} {server_index} node {numa_node_index}"


if __name__ == "__main__":
    sys.exit(main())
