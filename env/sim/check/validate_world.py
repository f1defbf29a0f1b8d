"""Checks what format 2 says of a finished schedule: runs, the central queue, warm containers.

A part of `env.sim.check.validate`; uses nothing of the engine.
"""

import math
from collections import Counter, defaultdict

import numpy as np

from env.sim.check.accounts import check_accounts, place_exists
from env.sim.check.rounding import slack
from env.sim.check.validate_queued import memory_violations, order_violations, run_violations
from env.sim.episode.episode_parts import named
from env.sim.episode.recorded_schedule import placed_at
from env.sim.episode.world_episode import (
    PARTS,
    QueueModel,
    RunModel,
    RunResults,
    WarmModel,
    WorldEpisode,
)
from env.sim.keep_alive_policy import Fixed
from env.sim.queue_records import RUN
from env.sim.records import COMPLETED, PREEMPTED

Containers = tuple[tuple[str, int, int], int | None]
"""Where containers are, and of what image."""


def check_world_accounts(episode: WorldEpisode, results: RunResults) -> list[str]:
    """Every function completes once, all is on nodes and of images that exist, and all is said."""
    functions, queued = episode.functions, episode.options.queue is not None
    completed = Counter(run.function for run in results.runs if run.outcome == "completed")
    found = check_accounts(
        episode,
        {"finished": completed},
        [run for run in results.runs if run.function in functions],
        [(row.server_type, row.server_index) for row in results.servers],
    )
    for run in results.runs:
        if run.function not in functions:
            found.append(f"{named(run.function)} is unknown, but runs")
        elif any((number is not None) != queued for number in (run.joined, run.dispatched)):
            found.append(
                f"{named(run.function)}: joined {run.joined}, dispatched {run.dispatched}, "
                "numbers are needed with a queue and only there"
            )
    for index, warm in enumerate(results.warm_containers):
        if not place_exists(episode, warm.place):
            found.append(f"warm_containers.{index}: {placed_at(*warm.place)} does not exist")
        elif warm.image >= len(episode.images):
            found.append(f"warm_containers.{index}: there is no image {warm.image}")
    return found


def check_world(episode: WorldEpisode, results: RunResults) -> list[str]:
    """The order of events, the parts of times, the queue, and who starts in what container."""
    records = run_records(episode, results)
    found = [
        *run_violations(records),
        *_check_actions(episode, results),
        *_check_warm(episode, results),
    ]
    queue = episode.options.queue
    if queue is None:
        found += [
            f"{named(run.function)}: is submitted at {run.submission_time}, but dispatched at "
            f"{run.dispatch_time}"
            for run in results.runs
            if run.dispatch_time != run.submission_time
        ]
        return found
    if queue.placement != "asked":
        found += _check_memory_of_images(episode, results)
    misnumbered = _check_events(results)
    found += misnumbered
    held = np.concatenate([records, _warm_records(episode, results)])
    found += memory_violations(held, np.array([memory for memory in _nodes(episode).values()]))
    if queue.order == "by_rank" and not misnumbered:
        functions = [function for workflow in episode.workflows for function in workflow.functions]
        rank = np.array([function.rank for function in functions])
        for own in _ordered_together(episode, queue, records):
            found += order_violations(own, rank)
    return found


def _ordered_together(
    episode: WorldEpisode, queue: QueueModel, records: np.ndarray
) -> list[np.ndarray]:
    """The runs that the order of the queue puts in order: all, or those of each tenant."""
    if queue.sharing is None:
        return [records]
    owners = np.array([workflow.tenant for workflow in episode.workflows])[records["wf_id"]]
    return [records[owners == tenant] for tenant in np.unique(owners)]


def run_records(episode: WorldEpisode, results: RunResults) -> np.ndarray:
    """The runs as RUN records: parts of times are sums over all runs of a function up to here."""
    declared = {function: index for index, function in enumerate(episode.functions)}
    node_of = {place: index for index, place in enumerate(_nodes(episode))}
    so_far = np.zeros((len(declared), len(PARTS)))
    records = np.zeros(len(results.runs), RUN)
    for record, run in zip(records, results.runs, strict=True):
        own = so_far[declared[run.function]]
        own += [getattr(run, part) for part in PARTS]
        for key, value in zip(PARTS.values(), own, strict=True):
            record[key] = value
        for key in ("submission", "joined", "dispatch", "start", "end"):
            record[f"{key}_time"] = getattr(run, f"{key}_time")
        record["wf_id"], record["fn_id"] = run.function
        record["declared"] = declared[run.function]
        record["node"] = node_of[run.place]
        record["memory_alloc"] = run.memory_allocated_mb
        record["outcome"] = COMPLETED if run.outcome == "completed" else PREEMPTED
        record["joined"], record["dispatched"] = run.joined or 0, run.dispatched or 0
    return records


def _warm_records(episode: WorldEpisode, results: RunResults) -> np.ndarray:
    """Warm containers as RUN records, as far as they hold memory."""
    node_of = {place: index for index, place in enumerate(_nodes(episode))}
    records = np.zeros(len(results.warm_containers), RUN)
    for record, warm in zip(records, results.warm_containers, strict=True):
        record["node"], record["memory_alloc"] = node_of[warm.place], warm.memory_mb
        record["dispatch_time"], record["end_time"] = warm.begin_time, _end(warm)
    return records


def _nodes(episode: WorldEpisode) -> dict[tuple[str, int, int], int]:
    """MB of every NUMA node."""
    return {
        (declared.name, server, node): declared.memory_mb_per_numa_node
        for declared in episode.cluster.server_types
        for server in range(declared.server_count)
        for node in range(declared.numa_nodes_per_server)
    }


def _end(warm: WarmModel) -> float:
    return math.inf if warm.end_time is None else warm.end_time


def _check_actions(episode: WorldEpisode, results: RunResults) -> list[str]:
    """What was decided is what ran."""
    if not episode.actions:
        return []
    if len(episode.actions) != len(results.runs):
        return [f"actions: {len(episode.actions)} found, there are {len(results.runs)} runs"]
    found = []
    for index, (action, run) in enumerate(zip(episode.actions, results.runs, strict=True)):
        decided = action.function, action.place, action.memory_allocated_mb
        if decided != (run.function, run.place, run.memory_allocated_mb):
            found.append(f"runs.{index}: {_shown(run)} is not what action {index} says")
        elif action.dispatch_time not in (None, run.dispatch_time):
            found.append(
                f"{_shown(run)}: dispatched at {run.dispatch_time}, {action.dispatch_time} is due"
            )
    return found


def _check_memory_of_images(episode: WorldEpisode, results: RunResults) -> list[str]:
    """The placement rules of the engine give the memory of the image."""
    found = []
    for run in results.runs:
        image = _container(episode, run)[1]
        due = None if image is None else episode.images[image].memory_mb
        if run.memory_allocated_mb != due:
            found.append(f"{_shown(run)}: has {run.memory_allocated_mb} MB, its image has {due}")
    return found


def _check_events(results: RunResults) -> list[str]:
    """Events of the queue are counted from 0, and none comes before one with a smaller number."""
    events = [(run.joined, run.joined_time, run) for run in results.runs]
    events += [(run.dispatched, run.dispatch_time, run) for run in results.runs]
    found: list[str] = []
    last = 0.0
    for due, (number, time, run) in enumerate(sorted(events, key=lambda event: event[0] or 0)):
        if number != due:
            return [*found, f"{_shown(run)}: event {number} of the queue, {due} is due"]
        if time < last:
            found.append(f"{_shown(run)}: event {number} at {time} comes after one at {last}")
        last = time
    for index, run in enumerate(results.runs):
        if (run.joined or 0) > (run.dispatched or 0):
            found.append(f"{_shown(run)}: dispatched before it joined the queue")
        if index and (results.runs[index - 1].dispatched or 0) > (run.dispatched or 0):
            found.append(f"{_shown(run)}: stands behind a run that was dispatched later")
    return found


def _check_warm(episode: WorldEpisode, results: RunResults) -> list[str]:
    """Who starts warm ends the wait of a container of its image there; others find none.

    A container becomes idle where a run of its image ends, unless it is started ahead of requests.
    """
    policy = episode.options.keep_alive
    found = []
    left: Counter[tuple[Containers, int, float]] = Counter()
    used: Counter[tuple[Containers, float]] = Counter()
    waiting: dict[Containers, list[WarmModel]] = defaultdict(list)
    for run in results.runs:
        left[_container(episode, run), run.memory_allocated_mb, run.end_time] += 1
    for index, warm in enumerate(results.warm_containers):
        where: Containers = warm.place, warm.image
        shown = f"warm_containers.{index}"
        used[where, _end(warm)] += 1
        waiting[where].append(warm)
        left[where, warm.memory_mb, warm.begin_time] -= 1
        if policy.policy == "none":
            found.append(f"{shown}: nothing stays warm with keep_alive 'none'")
        elif _end(warm) < warm.begin_time:
            found.append(f"{shown}: ends at {warm.end_time}, before it begins")
        elif left[where, warm.memory_mb, warm.begin_time] < 0 and not (
            policy.policy == "hybrid_histogram"
            and warm.memory_mb == episode.images[warm.image].memory_mb
        ):
            found.append(
                f"{shown}: no run of image {warm.image} with {warm.memory_mb} MB ends on "
                f"{placed_at(*warm.place)} at {warm.begin_time}"
            )
        end = min(_end(warm), results.last_completion_time)
        seconds = end - warm.begin_time
        if isinstance(policy, Fixed) and seconds > policy.keep + slack(end):
            found.append(f"{shown}: idle for more than {policy.keep} s")
    for run in results.runs:
        where, time = _container(episode, run), run.dispatch_time
        if run.warm:
            used[where, time] -= 1
            if used[where, time] < 0:
                found.append(f"{_shown(run)}: starts warm at {time} s where nothing is warm")
        elif any(warm.begin_time < time < _end(warm) for warm in waiting[where]):
            found.append(f"{_shown(run)}: starts cold at {time} s where a container is warm")
    return found


def _container(episode: WorldEpisode, run: RunModel) -> Containers:
    return run.place, episode.workflows[run.workflow_id].functions[run.function_id].image


def _shown(run: RunModel) -> str:
    return f"{named(run.function)} on {placed_at(*run.place)}"
