"""Checks that the runs of a finished schedule do their work in the time that they take."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np

from env.sim.check.schedule import Function, Place, Schedule, close
from env.sim.episode.model import RunModel
from env.sim.state.queue_records import ON_NODE
from env.tickets.cpu_share import cpu_share


def check_work(schedule: Schedule) -> Iterator[str]:
    """Every run that completes executes what is left of its function between start and end.

    Where a function is preempted, its next run begins with what is left; where it is killed, anew,
    or where it was last saved.
    """
    runs, workflows = schedule.results.runs, schedule.episode.workflows
    operations = [
        workflows[run.workflow_id].work or schedule.declared[run.function].computation
        for run in runs
    ]
    left = list(operations)
    next_of: dict[int, int] = {}
    last_of: dict[Function, int] = {}
    for index, run in enumerate(runs):
        if run.function in last_of:
            next_of[last_of[run.function]] = index
        last_of[run.function] = index
    running: dict[Place, list[int]] = defaultdict(list)
    clock: dict[Place, float] = defaultdict(float)
    events = [(run.end_time, False, index) for index, run in enumerate(runs)]
    events += [(run.start_time, True, index) for index, run in enumerate(runs)]
    for time, starts, index in sorted(events):
        run = runs[index]
        together, now = running[run.place], clock[run.place]
        if time > now:
            speeds = _speeds(schedule, [runs[one] for one in together])
            for one, speed in zip(together, speeds, strict=True):
                ends, due = runs[one].end_time == time, now + left[one] / speed
                if ends and runs[one].outcome == "completed" and not close(due, time):
                    yield f"{runs[one]}: {operations[one]} operations end at {time}, {due} is due"
                left[one] = max(0, left[one] - int(speed * (time - now)))
            clock[run.place] = time
        if not starts:
            if index in together:
                together.remove(index)
            if index in next_of and run.outcome == "preempted":
                operations[next_of[index]] = left[next_of[index]] = max(1, left[index])
            elif index in next_of and run.outcome == "killed":
                kept = _left(schedule, run, left[index])
                operations[next_of[index]] = left[next_of[index]] = kept
        elif run.end_time > time:
            together.append(index)
        elif run.outcome == "completed":
            alone = time + left[index] / _speeds(schedule, [run])[0]
            if not close(time, alone):
                yield f"{run}: completes at {time}, at full speed it cannot before {alone}"


def _left(schedule: Schedule, run: RunModel, left: int) -> int:
    """Operations that a function begins with after it was killed with some left to do."""
    declared, recovery = schedule.declared[run.function], schedule.episode.options.recovery
    operations = schedule.episode.workflows[run.workflow_id].work or declared.computation
    if recovery is None or recovery.checkpoint is None:
        return operations
    largest = max(kind.cpu for kind in schedule.cluster.server_types if kind.count)
    threads = min(declared.parallelism, largest)
    best = declared.computation / (schedule.cluster.single_core_speed * threads)
    step = declared.computation * recovery.checkpoint / best
    return max(1, operations - int(math.floor((operations - left) / step) * step))


def _speeds(schedule: Schedule, together: list[RunModel]) -> list[int]:
    """Operations/s of each of the runs that are on a NUMA node together (rule 7)."""
    speeds = []
    for run, speed in zip(together, _thread_speeds(schedule, together), strict=True):
        declared = schedule.declared[run.function]
        ratio = min(1.0, run.memory_allocated_mb / declared.memory_required_mb)
        speeds.append(max(1, int(ratio * speed * declared.parallelism)))
    return speeds


def _thread_speeds(schedule: Schedule, together: list[RunModel]) -> list[int]:
    """Operations/s of a thread of each of the runs."""
    if not together:
        return []
    kind = schedule.types[together[0].server_type]
    core_speed = schedule.cluster.speed_of(kind)
    threads: Counter[str] = Counter()
    for run in together:
        threads[str(schedule.tenant(run))] += schedule.declared[run.function].parallelism
    if schedule.tickets is None:
        share = min(core_speed, kind.cpu * core_speed // threads.total())
        return [share] * len(together)
    tickets = schedule.tickets(frozenset(threads))
    rows = np.zeros(len(threads), ON_NODE)
    rows["weight"] = [tickets[tenant] for tenant in threads]
    rows["threads"] = list(threads.values())
    cpu_share(rows, len(rows), kind.cpu, core_speed)
    speeds = dict(zip(threads, (rows["speed"] // rows["threads"]).tolist(), strict=True))
    return [speeds[str(schedule.tenant(run))] for run in together]
