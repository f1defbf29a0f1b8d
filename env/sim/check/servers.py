"""Checks what a finished schedule says of its servers: starts, data, work, leases and rent.

A part of `env.sim.check.validate`; uses nothing of the engine.
"""

import math
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from env.sim.check.rounding import check_close, close, slack
from env.sim.check.schedule import Run, Schedule
from env.sim.declared.rules import Lease
from env.sim.episode.rows import ServerLeaseModel

SECONDS_PER_HOUR = 3600
Place = tuple[str, int, int]
"""(server type, server, NUMA node)."""


def check_servers(schedule: Schedule) -> Iterator[str]:
    """Every server and every run on it."""
    yield from _check_work(schedule)
    ends: dict[Place, list[float]] = defaultdict(list)
    of_server: dict[tuple[str, int], list[Run]] = defaultdict(list)
    for run in schedule.runs:
        ends[run.row.place].append(run.row.end_time)
        of_server[run.row.place[:2]].append(run)
    for name, declared in schedule.types.items():
        for server_id in range(declared.count):
            yield from _check_server(schedule, (name, server_id), of_server[name, server_id], ends)


def _check_server(
    schedule: Schedule, server: tuple[str, int], runs: list[Run], ends: dict[Place, list[float]]
) -> Iterator[str]:
    """The starts of a server, its leases and its rent.

    A lease covers, in whole steps, all that is dispatched before it ends. Where float64 leaves open
    how many those are, or how far what was preempted has had it extended, the record decides.
    """
    rules, latency = schedule.episode.options.lease, schedule.types[server[0]].cold_start_latency
    always = rules.kind == "always"
    down = schedule.down_times(server)
    extended = not all(run.completed for run in runs) or bool(down)
    begin, up, earlier, steps = 0.0, 0.0, np.zeros(2, int), np.zeros(2, int)
    end = np.full(2, math.inf if always else 0.0)
    yield from _check_service(schedule, server, runs)
    for run in runs:
        row, time = run.row, run.row.dispatch_time
        if down and down[0] <= time:
            end = np.minimum(end, max(each for each in down if each <= time))
        over = bool(end[0] <= time + slack(time))
        if over and (extended or end[1] > time - slack(time)):
            over = row.server_start_time > 0 if latency > 0 else not row.warm
            extended = extended or latency == 0  # nobody can tell when its lease began
        if over:
            begin, up, earlier, steps = time, time + latency, earlier + steps, np.zeros(2, int)
            if row.warm:
                yield f"{run}: starts warm on a server that was off"
        if run.started:
            due = latency if over else 0.0
            yield from check_close(f"{run}: server_start_time", row.server_start_time, due)
            yield from _check_start(schedule, run, up, ends[row.place])
        if not always:
            steps = np.maximum(steps, _steps(row.end_time - begin, rules, row.end_time))
            end = begin + steps * rules.step
    if always and rules.charged:
        last = max(run.row.end_time for run in schedule.runs)
        steps = _steps(last, rules, last)
        steps = steps + any(close(run.row.dispatch_time, steps[0] * rules.step) for run in runs)
        end = steps * rules.step
    yield from _check_lease(schedule, server, runs, earlier + steps, end, extended)


def _check_service(schedule: Schedule, server: tuple[str, int], runs: list[Run]) -> Iterator[str]:
    """Nothing new comes to a server that is out of service, nothing runs on where it is down."""
    for run in runs:
        possible: list[str] = ["in service"]  # what it can have been at that moment
        for change in schedule.changes_of(server):
            if change.time < run.row.dispatch_time:
                possible = [change.condition]
            elif change.time == run.row.dispatch_time:
                possible.append(change.condition)
        if "in service" not in possible:
            yield f"{run}: dispatched to a server that is {possible[0]}"
        for down in schedule.down_times(server):
            if run.row.dispatch_time < down < run.row.end_time:
                yield f"{run}: ends at {run.row.end_time}, the server goes down at {down}"


def _steps(seconds: float, lease: Lease, late: float) -> np.ndarray:
    """(2,) the fewest and the most whole steps of a lease that cover seconds up to a time."""
    exact = (seconds + np.array([-1, 1]) * slack(late)) / lease.step
    return np.maximum(lease.least, np.ceil(exact).astype(int))


def _check_lease(
    schedule: Schedule,
    server: tuple[str, int],
    runs: list[Run],
    possible: np.ndarray,
    ends: np.ndarray,
    extended: bool,
) -> Iterator[str]:
    """What is recorded of a server; (2,) steps that are possible, and ends of the last lease."""
    rules, shown = schedule.episode.options.lease, f"server {server[0]} {server[1]}"
    if rules.kind == "always" and schedule.changes_of(server):
        return  # it is leased anew whenever it comes back
    name, index = server
    row = schedule.leases.get(server) or ServerLeaseModel(
        server_type=name, server_index=index, lease_seconds=0.0, lease_expiration_time=0.0, rent=0.0
    )
    stated_end = math.inf if row.lease_expiration_time is None else row.lease_expiration_time
    steps = round(row.lease_seconds / rules.step)
    if not extended or (rules.kind == "always" and steps <= possible[1]):
        steps = int(np.clip(steps, *possible))
        if possible[1] or rules.kind == "always":
            end = min(ends, key=lambda each: abs(each - stated_end) if each < math.inf else 0.0)
            what = f"{shown}: lease_expiration_time"
            yield from check_close(what, stated_end, float(end), additions=steps)
    if not close(row.lease_seconds, steps * rules.step, additions=steps):
        yield (
            f"{shown}: {row.lease_seconds / SECONDS_PER_HOUR:g} hours rented, "
            f"{steps * rules.step / SECONDS_PER_HOUR:g} are due"
        )
    price = schedule.types[name].hourly_rate * (rules.step / SECONDS_PER_HOUR)
    yield from check_close(f"{shown}: rent", row.rent, steps * price, additions=steps)
    for run in runs:
        if run.row.end_time > stated_end:
            yield f"{run}: ends at {run.row.end_time}, after the lease ends at {stated_end}"


def _check_start(schedule: Schedule, run: Run, up: float, ends: list[float]) -> Iterator[str]:
    """Container, data and start of a run.

    Args:
        schedule: that it is part of.
        run: dispatched to a server.
        up: when that was up (s).
        ends: of all runs on the NUMA node (s).
    """
    row = run.row
    cold, most = row.container_cold_start_time, run.container_cold_start
    if not row.warm:
        yield from check_close(f"{run}: container_cold_start_time", cold, most)
    # Of one that is started ahead, what is left is a difference of times.
    elif cold > most + slack(row.dispatch_time):
        yield (
            f"{run}: container_cold_start_time is {cold} in a warm container, at most {most} is "
            "possible"
        )
    transfer = 0.0
    for before, data_bytes in schedule.predecessors(run):
        transfer += data_bytes / _bandwidth(schedule, before.place, row.place)
    yield from check_close(f"{run}: data_transfer_time", row.data_transfer_time, transfer)
    ready = max(up, row.dispatch_time) + cold + transfer
    if not close(row.start_time, ready):
        if row.start_time < ready:
            yield f"{run}: starts at {row.start_time}, it is ready at {ready}"
        elif row.start_time not in ends:
            yield (
                f"{run}: starts at {row.start_time}, when no container makes room; it is ready at "
                f"{ready}"
            )


def _bandwidth(schedule: Schedule, source: Place, target: Place) -> float:
    cluster = schedule.episode.cluster
    if source == target:
        return cluster.memory_bandwidth
    if source[:2] == target[:2]:
        return cluster.numa_bandwidth
    return cluster.network_bandwidth


def _check_work(schedule: Schedule) -> Iterator[str]:
    """Every run that completes executes what is left of its function between start and end.

    Where a function is preempted, its next run begins with what is left; where it is killed, anew.
    """
    left = [run.left for run in schedule.runs]
    next_of: dict[int, Run] = {}
    last_of: dict[tuple[int, int], Run] = {}
    for run in schedule.runs:
        if run.row.function in last_of:
            next_of[last_of[run.row.function].index] = run
        last_of[run.row.function] = run
    running: dict[Place, list[Run]] = defaultdict(list)
    clock: dict[Place, float] = defaultdict(float)
    events = [(run.row.end_time, False, run.index) for run in schedule.runs]
    events += [(run.row.start_time, True, run.index) for run in schedule.runs]
    for time, starts, index in sorted(events):
        run = schedule.runs[index]
        together, now = running[run.row.place], clock[run.row.place]
        if time > now:
            for one, speed in zip(together, _speeds(schedule, together), strict=True):
                due = now + left[one.index] / speed
                if one.completed and one.row.end_time == time and not close(due, time):
                    yield (
                        f"{one}: completes at {time}, its {one.left} operations are done at {due}"
                    )
                left[one.index] = max(0, left[one.index] - int(speed * (time - now)))
            clock[run.row.place] = time
        if starts:
            alone = time + run.left / _speeds(schedule, [run])[0]
            end = run.row.end_time
            if run.completed and end < alone and not close(end, alone):
                yield f"{run}: completes at {end}, at full speed it cannot before {alone}"
            if end > time:
                together.append(run)
        else:
            if run in together:
                together.remove(run)
            if index in next_of and run.row.outcome == "preempted":
                next_of[index].left = left[next_of[index].index] = max(1, left[index])


def _speeds(schedule: Schedule, together: list[Run]) -> list[int]:
    """Operations/s of each of the runs that are on a NUMA node together (rule 7)."""
    if not together:
        return []
    server_type = together[0].row.server_type
    cores = schedule.types[server_type].cpu
    core_speed = schedule.core_speed(server_type)
    parallelism = sum(run.declared.parallelism for run in together)
    share = core_speed if parallelism <= cores else cores * core_speed // parallelism
    shares = [share] * len(together)
    if schedule.by_tickets is not None:
        threads: dict[int, int] = defaultdict(int)
        for run in together:
            threads[run.row.workflow_id] += run.declared.parallelism
        of_thread = schedule.by_tickets.thread_speeds(threads, cores, core_speed)
        shares = [of_thread[run.row.workflow_id] for run in together]
    speeds = []
    for run, own in zip(together, shares, strict=True):
        ratio = min(1.0, run.row.memory_allocated_mb / run.declared.memory_required_mb)
        speeds.append(max(1, int(ratio * own * run.declared.parallelism)))
    return speeds
