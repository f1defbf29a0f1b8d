"""Checks the runs of a finished schedule, the central queue, and the containers that are warm."""

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from env.resources.quantity import UNIT, as_number
from env.sim.check.schedule import Function, Place, Schedule, check_close, slack
from env.sim.declared.keep_alive_policy import Fixed
from env.sim.declared.server_changes import Recovery
from env.sim.episode.model import MOMENTS, RunModel, WarmModel, named

QueueEvent = tuple[int, bool, float, RunModel]
"""Number, whether it is a dispatch (or a joining), seconds, and whose it is."""
Containers = tuple[Place, int | None]
"""Where containers are, and of what image."""


def check_runs(schedule: Schedule) -> Iterator[str]:
    """Moments in order, each function anew where it was preempted, and what was decided is done."""
    queue, runs = schedule.episode.options.queue, schedule.results.runs
    for run in runs:
        yield from _check_run(schedule, run)
    for function, of_function in schedule.runs_of.items():
        yield from _check_function(schedule, function, of_function)
    yield from _check_calls(schedule)
    yield from _check_actions(schedule)
    yield from _check_held(schedule)
    if queue is None:
        if not schedule.episode.changes:
            yield from _check_decision_order(runs)
        return
    events = [(run.joined or 0, False, run.joined_time, run) for run in runs]
    events += [(run.dispatched or 0, True, run.dispatch_time, run) for run in runs]
    events.sort(key=lambda event: event[:2])
    misnumbered = list(_check_events(events, runs))
    yield from misnumbered
    # A function that no server in service holds waits aside.
    if queue.order == "by_rank" and not misnumbered and not schedule.episode.changes:
        together: dict[str | None, list[QueueEvent]] = defaultdict(list)
        for event in events:
            together[None if queue.sharing is None else schedule.tenant(event[3])].append(event)
        for of_one_tenant in together.values():
            yield from _check_order(schedule, of_one_tenant)


def _check_run(schedule: Schedule, run: RunModel) -> Iterator[str]:
    """It is submitted when the last of its predecessors has ended, or at the arrival.

    The placement rules of the engine give the memory of the image.
    """
    queue, image = schedule.episode.options.queue, schedule.declared[run.function].image
    for early, late in pairwise(MOMENTS):
        if getattr(run, early) > getattr(run, late):
            yield f"{run}: {early} {getattr(run, early)} is after {late} {getattr(run, late)}"
    arrival = schedule.episode.workflows[run.workflow_id].arrival_time
    before = schedule.predecessors(run, run.submission_time)
    ends = [each.end_time for each, _ in before] + schedule.skipped_before(run.function)
    due = max(ends, default=arrival)
    # Who is needed again is submitted when its data are lost.
    if not (schedule.loses_data and run.submission_time in schedule.losses):
        yield from check_close(f"{run}: submission_time", run.submission_time, due)
    if queue is not None and queue.placement != "asked":
        memory = None if image is None else schedule.episode.images[image].memory_mb
        if run.memory_allocated_mb != memory:
            yield f"{run}: has {run.memory_allocated_mb} MB, its image has {memory}"


def _check_function(
    schedule: Schedule, function: Function, runs: Sequence[RunModel]
) -> Iterator[str]:
    """It waits, runs, waits again where it did not complete, and completes in the end."""
    outcomes, recovery = [run.outcome for run in runs], schedule.episode.options.recovery
    if "completed" in outcomes[:-1] and not schedule.loses_data:
        yield f"{named(function)}: its runs are {outcomes}, the last alone completes"
    if recovery is not None:
        yield from _check_again(schedule, recovery, runs)
    since = runs[0].submission_time
    for run in runs:
        if run is not runs[0] and (schedule.episode.options.queue is None or recovery is not None):
            since = run.joined_time  # it was placed again
        if run.joined_time != since:
            yield f"{run}: joined_time is {run.joined_time}, {since} is due"
        waited, end = run.dispatch_time - since, run.end_time
        executed, since = end - run.start_time, end
        yield from check_close(f"{run}: queueing_time", run.queueing_time, waited, end)
        yield from check_close(f"{run}: execution_time", run.execution_time, executed, end)


def _check_again(schedule: Schedule, recovery: Recovery, runs: Sequence[RunModel]) -> Iterator[str]:
    """Who is killed waits its back-off, not too often; who has finished runs again for its data."""
    kills = 0
    for before, run in pairwise(runs):
        if before.outcome == "killed":
            kills += 1
            least = recovery.backoff.least(kills)
            inputs = schedule.predecessors(run, run.dispatch_time)
            # Who waits for data that are made again waits for these in place of the back-off.
            made_again = any(before.end_time < each.end_time for each, _ in inputs)
            early = run.dispatch_time < before.end_time + least - slack(run.dispatch_time)
            if early and not made_again:
                yield f"{run}: dispatched at {run.dispatch_time}, retry {kills} waits {least} s"
        elif before.outcome == "completed" and not any(
            change.server == before.server
            and change.condition == "down"
            and before.end_time <= change.time <= run.dispatch_time
            for change in schedule.episode.changes
        ):
            yield f"{run}: runs again, though the data of the run before were not lost"
    if recovery.retries is not None and kills > recovery.retries:
        yield f"{runs[-1]}: is retry {kills}, at most {recovery.retries} are allowed"


def _check_calls(schedule: Schedule) -> Iterator[str]:
    """Where calls are conditional, who runs was called by a function that has finished.

    Who was not called was called by nobody, which was known when the last caller had ended.
    """
    for function in sorted(schedule.not_called.keys() | schedule.runs_of.keys()):
        wf_id, edges = function[0], schedule.edges_to(function)
        done = [edge for edge in edges if schedule.completed.get((wf_id, edge.source))]
        called = not edges or any(schedule.is_taken(wf_id, edge) for edge in done)
        if function in schedule.runs_of and not called:
            yield f"{named(function)}: runs, but no function that has finished calls it"
        if function not in schedule.not_called:
            continue
        if called:
            yield f"{named(function)}: has to run, but is said not to be called"
            continue
        ends = [schedule.completed[wf_id, edge.source][-1].end_time for edge in done]
        ends += schedule.skipped_before(function)
        if not schedule.loses_data:
            what = f"{named(function)}: not called"
            yield from check_close(what, schedule.not_called[function], max(ends, default=0.0))


def _check_actions(schedule: Schedule) -> Iterator[str]:
    """What was decided is what ran."""
    actions, runs = schedule.episode.actions, schedule.results.runs
    if actions and len(actions) != len(runs):
        yield f"actions: {len(actions)} found, there are {len(runs)} runs"
        return
    for index, (action, run) in enumerate(zip(actions, runs, strict=False)):
        decided = str(action), action.memory_allocated_mb
        if decided != (str(run), run.memory_allocated_mb):
            yield f"runs.{index}: {run} is not what action {index} says"
        elif action.dispatch_time not in (None, run.dispatch_time):
            yield f"{run}: dispatched at {run.dispatch_time}, {action.dispatch_time} is due"


def _check_decision_order(runs: Sequence[RunModel]) -> Iterator[str]:
    """Without a queue, decisions are ordered by (submission time, workflow, function).

    Where servers are out of service functions can wait for them, and are submitted again.
    """
    for run in runs:
        submitted, dispatched = run.submission_time, run.dispatch_time
        if dispatched != submitted:
            yield f"{run}: is submitted at {submitted}, but dispatched at {dispatched}"
    for first, second in pairwise(runs):
        if (first.submission_time, first.function) > (second.submission_time, second.function):
            yield f"{first} comes before {second}, which is decided first"


def _check_events(events: Sequence[QueueEvent], runs: Sequence[RunModel]) -> Iterator[str]:
    """They are counted from 0, and none comes before one with a smaller number; so do the runs."""
    last, dispatches = 0.0, 0
    for due, (number, dispatched, time, run) in enumerate(events):
        if number != due:
            yield f"{run}: event {number} of the queue, {due} is due"
            return
        if time < last:
            yield f"{run}: event {number} at {time} comes after one at {last}"
        last = time
        if dispatched:
            if (run.joined or 0) > number:
                yield f"{run}: dispatched before it joined the queue"
            if run is not runs[dispatches]:
                yield f"{run}: runs are in the order of dispatch, it is number {dispatches} in that"
            dispatches += 1


def _check_held(schedule: Schedule) -> Iterator[str]:
    """Containers never hold more of a node than it has: named resources, with a queue also memory.

    Where functions wait centrally they hold it from their dispatch to their end, elsewhere from
    their start at the latest. Warm containers hold memory.
    """
    queued = schedule.episode.options.queue is not None
    changes: dict[tuple[Place, str], list[tuple[float, int]]] = defaultdict(list)
    for run in schedule.results.runs:
        held: dict[str, int] = dict(schedule.declared[run.function].resources or {})
        if queued:
            held["MB"] = run.memory_allocated_mb * UNIT
        for unit, amount in held.items():
            begin = run.dispatch_time if queued else run.start_time
            changes[run.place, unit] += [(begin, amount), (run.end_time, -amount)]
    for warm in schedule.results.warm_containers if queued else ():
        changes[warm.place, "MB"] += [
            (warm.begin_time, warm.memory_mb * UNIT),
            (warm.end, -warm.memory_mb * UNIT),
        ]
    for (place, unit), times in changes.items():
        kind, used = schedule.types[place[0]], 0
        size = kind.memory * UNIT if unit == "MB" else kind.offered(unit)
        # Of one moment, what is given back comes first.
        for time, amount in sorted(times):
            used += amount
            if used > size:
                taken, has = as_number(used), as_number(size)
                yield f"{place}: {taken} {unit} are in use at {time} s, it has {has}"


def _check_order(schedule: Schedule, events: Sequence[QueueEvent]) -> Iterator[str]:
    """Of the runs that wait, the one with the smallest rank starts; of equal ones, joined first."""
    waiting: list[tuple[float, int]] = []
    for _, dispatches, time, run in events:
        turn = schedule.declared[run.function].rank or 0.0, run.joined or 0
        if not dispatches:
            insort(waiting, turn)
            continue
        if waiting[0] != turn:
            yield f"{run}: starts at {time} s before its turn"
        waiting.pop(bisect_left(waiting, turn))


def check_containers(schedule: Schedule) -> Iterator[str]:
    """Who starts warm ends the wait of a container of its image there; others find none.

    A container becomes idle where a run of its image ends, unless it is started ahead of requests.
    """
    policy = schedule.episode.options.keep_alive
    left: Counter[tuple[Containers, int, float]] = Counter()
    used: Counter[tuple[Containers, float]] = Counter()
    waiting: dict[Containers, list[WarmModel]] = defaultdict(list)
    for run in schedule.results.runs:
        where: Containers = run.place, schedule.declared[run.function].image
        left[where, run.memory_allocated_mb, run.end_time] += 1
    for index, warm in enumerate(schedule.results.warm_containers):
        where, shown = (warm.place, warm.image), f"warm_containers.{index}"
        begins = where, warm.memory_mb, warm.begin_time
        ahead = "hybrid_histogram", schedule.episode.images[warm.image].memory_mb
        used[where, warm.end] += 1
        waiting[where].append(warm)
        left[begins] -= 1
        if policy.policy == "none":
            yield f"{shown}: nothing stays warm with keep_alive 'none'"
        elif warm.end < warm.begin_time:
            yield f"{shown}: ends at {warm.end_time}, before it begins"
        elif left[begins] < 0 and (policy.policy, warm.memory_mb) != ahead:
            yield f"{shown}: no run of its image and memory ends on {warm} at {warm.begin_time}"
        end = min(warm.end, schedule.results.last_completion_time)
        if isinstance(policy, Fixed) and end - warm.begin_time > policy.keep + slack(end):
            yield f"{shown}: idle for more than {policy.keep} s"
    for run in schedule.results.runs:
        where, time = (run.place, schedule.declared[run.function].image), run.dispatch_time
        if run.warm:
            used[where, time] -= 1
            if used[where, time] < 0:
                yield f"{run}: starts warm at {time} s where nothing is warm"
        elif any(warm.begin_time < time < warm.end for warm in waiting[where]):
            yield f"{run}: starts cold at {time} s where a container is warm"
