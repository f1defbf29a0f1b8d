"""Checks the runs of a finished schedule: their order, and what the central queue does with them.

A part of `env.sim.check.validate`; uses nothing of the engine.
"""

import heapq
import itertools
from collections import defaultdict

from env.sim.check.rounding import check_close
from env.sim.check.schedule import Run, Schedule
from env.sim.episode.rows import MOMENTS, named


def check_runs(schedule: Schedule) -> list[str]:
    """Moments in order, each function anew where it was preempted, and what was decided is done."""
    found = [
        f"{run}: {early} {getattr(run.row, early)} is after {late} {getattr(run.row, late)}"
        for run in schedule.runs
        for early, late in itertools.pairwise(MOMENTS)
        if getattr(run.row, early) > getattr(run.row, late)
    ]
    found += _check_precedence(schedule)
    found += _check_functions(schedule)
    found += _check_actions(schedule)
    queue = schedule.episode.options.queue
    if queue is None:
        return found + _check_decision_order(schedule)
    misnumbered = _check_events(schedule)
    found += misnumbered
    found += _check_memory(schedule)
    if queue.placement != "asked":
        found += _check_memory_of_images(schedule)
    if queue.order == "by_rank" and not misnumbered:
        owners = [workflow.tenant for workflow in schedule.episode.workflows]
        together: dict[str | None, list[Run]] = defaultdict(list)
        for run in schedule.runs:
            together[None if queue.sharing is None else owners[run.row.workflow_id]].append(run)
        for runs in together.values():
            found += _check_order(runs)
    return found


def _check_precedence(schedule: Schedule) -> list[str]:
    """A function is submitted when the last of its predecessors completes, or at the arrival."""
    found = []
    for run in schedule.runs:
        arrival = schedule.episode.workflows[run.row.workflow_id].arrival_time
        due = max((before.end_time for before, _ in schedule.predecessors(run)), default=arrival)
        found += check_close(f"{run}: submission_time", run.row.submission_time, due)
    return found


def _check_functions(schedule: Schedule) -> list[str]:
    """Each function waits, runs, waits again where it did not complete, and does so in the end."""
    of_function: dict[tuple[int, int], list[Run]] = defaultdict(list)
    for run in schedule.runs:
        of_function[run.row.function].append(run)
    found = []
    for function, own in of_function.items():
        if [run.completed for run in own] != [False] * (len(own) - 1) + [True]:
            outcomes = [run.row.outcome for run in own]
            found.append(f"{named(function)}: its runs are {outcomes}, the last alone completes")
        since = own[0].row.submission_time
        for run in own:
            row = run.row
            placed_again = run is not own[0] and schedule.episode.options.queue is None
            if placed_again:
                since = row.joined_time
            if row.joined_time != since:
                found.append(f"{run}: joined_time is {row.joined_time}, {since} is due")
            waited, executed = row.dispatch_time - since, row.end_time - row.start_time
            end = row.end_time
            found += check_close(f"{run}: queueing_time", row.queueing_time, waited, end)
            found += check_close(f"{run}: execution_time", row.execution_time, executed, end)
            since = row.end_time
    return found


def _check_actions(schedule: Schedule) -> list[str]:
    """What was decided is what ran."""
    actions, runs = schedule.episode.actions, schedule.runs
    if not actions:
        return []
    if len(actions) != len(runs):
        return [f"actions: {len(actions)} found, there are {len(runs)} runs"]
    found = []
    for index, (action, run) in enumerate(zip(actions, runs, strict=True)):
        decided = str(action), action.memory_allocated_mb
        if decided != (str(run.row), run.row.memory_allocated_mb):
            found.append(f"runs.{index}: {run} is not what action {index} says")
        elif action.dispatch_time not in (None, run.row.dispatch_time):
            found.append(
                f"{run}: dispatched at {run.row.dispatch_time}, {action.dispatch_time} is due"
            )
    return found


def _check_decision_order(schedule: Schedule) -> list[str]:
    """Without a queue, decisions are ordered by (submission time, workflow, function).

    Where servers are out of service functions can wait for them, and are submitted again.
    """
    if schedule.episode.changes:
        return []
    found = [
        f"{run}: is submitted at {run.row.submission_time}, but dispatched at "
        f"{run.row.dispatch_time}"
        for run in schedule.runs
        if run.row.dispatch_time != run.row.submission_time
    ]
    for first, second in itertools.pairwise(run.row for run in schedule.runs):
        if (first.submission_time, first.function) > (second.submission_time, second.function):
            found.append(
                f"{first}, submitted at {first.submission_time}, comes before {second}, submitted "
                f"at {second.submission_time}"
            )
    return found


def _check_events(schedule: Schedule) -> list[str]:
    """Events of the queue are counted from 0, and none comes before one with a smaller number."""
    events = [(run.row.joined or 0, run.row.joined_time, run) for run in schedule.runs]
    events += [(run.row.dispatched or 0, run.row.dispatch_time, run) for run in schedule.runs]
    found: list[str] = []
    last = 0.0
    for due, (number, time, run) in enumerate(sorted(events, key=lambda event: event[0])):
        if number != due:
            return [*found, f"{run}: event {number} of the queue, {due} is due"]
        if time < last:
            found.append(f"{run}: event {number} at {time} comes after one at {last}")
        last = time
    dispatched = 0
    for run in schedule.runs:
        number = run.row.dispatched or 0
        if (run.row.joined or 0) > number:
            found.append(f"{run}: dispatched before it joined the queue")
        if number < dispatched:
            found.append(f"{run}: stands behind a run that was dispatched later")
        dispatched = number
    return found


def _check_memory(schedule: Schedule) -> list[str]:
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
    found = []
    for place, size in schedule.episode.node_memory.items():
        used = 0
        # Of one moment, what is given back comes first.
        for time, memory in sorted(changes[place]):
            used += memory
            if used > size:
                found.append(f"{place}: {used} MB are in use at {time} s, it has {size}")
    return found


def _check_memory_of_images(schedule: Schedule) -> list[str]:
    """The placement rules of the engine give the memory of the image."""
    found = []
    for run in schedule.runs:
        image = run.declared.image
        due = None if image is None else schedule.episode.images[image].memory_mb
        if run.row.memory_allocated_mb != due:
            found.append(f"{run}: has {run.row.memory_allocated_mb} MB, its image has {due}")
    return found


def _check_order(runs: list[Run]) -> list[str]:
    """Of the runs that wait, the one with the smallest rank starts; of equal ones, joined first."""
    found = []
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
            found.append(f"{run}: starts at {run.row.dispatch_time} s before its turn")
        started.add(joined)
    return found
