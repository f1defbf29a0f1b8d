"""Checks the runs of a finished schedule: their order, and what the central queue does with them.

A part of `env.sim.check.validate`; uses nothing of the engine.
"""

import heapq
import itertools
from collections import defaultdict
from collections.abc import Iterator

from env.sim.check.rounding import check_close
from env.sim.check.schedule import Run, Schedule
from env.sim.episode.rows import MOMENTS, named


def check_runs(schedule: Schedule) -> Iterator[str]:
    """Moments in order, each function anew where it was preempted, and what was decided is done."""
    queue = schedule.episode.options.queue
    for run in schedule.runs:
        yield from _check_run(schedule, run)
    yield from _check_functions(schedule)
    yield from _check_actions(schedule)
    if queue is None:
        yield from _check_decision_order(schedule)
        return
    misnumbered = list(_check_events(schedule))
    yield from misnumbered
    yield from _check_memory(schedule)
    # A function that no server in service holds waits aside.
    if queue.order == "by_rank" and not misnumbered and not schedule.episode.changes:
        owners = [workflow.tenant for workflow in schedule.episode.workflows]
        together: dict[str | None, list[Run]] = defaultdict(list)
        for run in schedule.runs:
            together[None if queue.sharing is None else owners[run.row.workflow_id]].append(run)
        for runs in together.values():
            yield from _check_order(runs)


def _check_run(schedule: Schedule, run: Run) -> Iterator[str]:
    """It is submitted when the last of its predecessors completes, or at the arrival.

    The placement rules of the engine give the memory of the image.
    """
    row, queue, image = run.row, schedule.episode.options.queue, run.declared.image
    for early, late in itertools.pairwise(MOMENTS):
        if getattr(row, early) > getattr(row, late):
            yield f"{run}: {early} {getattr(row, early)} is after {late} {getattr(row, late)}"
    arrival = schedule.episode.workflows[row.workflow_id].arrival_time
    due = max((before.end_time for before, _ in schedule.predecessors(run)), default=arrival)
    yield from check_close(f"{run}: submission_time", row.submission_time, due)
    if queue is not None and queue.placement != "asked":
        memory = None if image is None else schedule.episode.images[image].memory_mb
        if row.memory_allocated_mb != memory:
            yield f"{run}: has {row.memory_allocated_mb} MB, its image has {memory}"


def _check_functions(schedule: Schedule) -> Iterator[str]:
    """Each function waits, runs, waits again where it did not complete, and does so in the end."""
    of_function: dict[tuple[int, int], list[Run]] = defaultdict(list)
    for run in schedule.runs:
        of_function[run.row.function].append(run)
    for function, own in of_function.items():
        if [run.completed for run in own] != [False] * (len(own) - 1) + [True]:
            outcomes = [run.row.outcome for run in own]
            yield f"{named(function)}: its runs are {outcomes}, the last alone completes"
        since = own[0].row.submission_time
        for run in own:
            row = run.row
            placed_again = run is not own[0] and schedule.episode.options.queue is None
            if placed_again:
                since = row.joined_time
            if row.joined_time != since:
                yield f"{run}: joined_time is {row.joined_time}, {since} is due"
            waited, executed = row.dispatch_time - since, row.end_time - row.start_time
            end = row.end_time
            yield from check_close(f"{run}: queueing_time", row.queueing_time, waited, end)
            yield from check_close(f"{run}: execution_time", row.execution_time, executed, end)
            since = row.end_time


def _check_actions(schedule: Schedule) -> Iterator[str]:
    """What was decided is what ran."""
    actions, runs = schedule.episode.actions, schedule.runs
    if actions and len(actions) != len(runs):
        yield f"actions: {len(actions)} found, there are {len(runs)} runs"
        return
    for index, (action, run) in enumerate(zip(actions, runs, strict=False)):
        decided = str(action), action.memory_allocated_mb
        if decided != (str(run.row), run.row.memory_allocated_mb):
            yield f"runs.{index}: {run} is not what action {index} says"
        elif action.dispatch_time not in (None, run.row.dispatch_time):
            yield (f"{run}: dispatched at {run.row.dispatch_time}, {action.dispatch_time} is due")


def _check_decision_order(schedule: Schedule) -> Iterator[str]:
    """Without a queue, decisions are ordered by (submission time, workflow, function).

    Where servers are out of service functions can wait for them, and are submitted again.
    """
    if schedule.episode.changes:
        return
    for run in schedule.runs:
        submitted, dispatched = run.row.submission_time, run.row.dispatch_time
        if dispatched != submitted:
            yield f"{run}: is submitted at {submitted}, but dispatched at {dispatched}"
    for first, second in itertools.pairwise(run.row for run in schedule.runs):
        if (first.submission_time, first.function) > (second.submission_time, second.function):
            yield (
                f"{first}, submitted at {first.submission_time}, comes before {second}, submitted "
                f"at {second.submission_time}"
            )


def _check_events(schedule: Schedule) -> Iterator[str]:
    """Events of the queue are counted from 0, and none comes before one with a smaller number."""
    events = [(run.row.joined or 0, run.row.joined_time, run) for run in schedule.runs]
    events += [(run.row.dispatched or 0, run.row.dispatch_time, run) for run in schedule.runs]
    last = 0.0
    for due, (number, time, run) in enumerate(sorted(events, key=lambda event: event[0])):
        if number != due:
            yield f"{run}: event {number} of the queue, {due} is due"
            return
        if time < last:
            yield f"{run}: event {number} at {time} comes after one at {last}"
        last = time
    dispatched = 0
    for run in schedule.runs:
        number = run.row.dispatched or 0
        if (run.row.joined or 0) > number:
            yield f"{run}: dispatched before it joined the queue"
        if number < dispatched:
            yield f"{run}: stands behind a run that was dispatched later"
        dispatched = number


def _check_memory(schedule: Schedule) -> Iterator[str]:
    """Where functions wait centrally, containers never hold more than a node has.

    They hold memory from their dispatch to their end, warm ones as long as they are warm.
    """
    changes: dict[tuple[str, int, int], list[tuple[float, int]]] = defaultdict(list)
    for row in schedule.results.runs:
        changes[row.place].append((row.dispatch_time, row.memory_allocated_mb))
        changes[row.place].append((row.end_time, -row.memory_allocated_mb))
    for warm in schedule.results.warm_containers:
        changes[warm.place].append((warm.begin_time, warm.memory_mb))
        changes[warm.place].append((warm.end, -warm.memory_mb))
    for place, size in schedule.episode.node_memory.items():
        used = 0
        # Of one moment, what is given back comes first.
        for time, memory in sorted(changes[place]):
            used += memory
            if used > size:
                yield f"{place}: {used} MB are in use at {time} s, it has {size}"


def _check_order(runs: list[Run]) -> Iterator[str]:
    """Of the runs that wait, the one with the smallest rank starts; of equal ones, joined first."""
    events = [(run.row.joined or 0, False, run) for run in runs]
    events += [(run.row.dispatched or 0, True, run) for run in runs]
    waiting: list[tuple[float, int]] = []
    started: set[int] = set()
    for number, is_start, run in sorted(events, key=lambda event: event[0]):
        if not is_start:
            heapq.heappush(waiting, (run.declared.rank or 0.0, number))
            continue
        joined = run.row.joined or 0
        while waiting[0][1] in started:
            heapq.heappop(waiting)
        if waiting[0][1] != joined:
            yield f"{run}: starts at {run.row.dispatch_time} s before its turn"
        started.add(joined)
