"""Checks what has run by its RUN records, without the simulator.

`queued_violations` is for functions that wait centrally for servers that are always up; the other
checks also for the runs of an episode file. Uses nothing of the engine.
"""

import heapq
import itertools
from collections import defaultdict

import numpy as np

from env.sim.check.rounding import close, slack
from env.sim.records import COMPLETED, KILLED


def queued_violations(
    runs: np.ndarray,
    memory: np.ndarray,
    rank: np.ndarray | None = None,
    prewarmed: bool = False,
    least: np.ndarray | None = None,
) -> list[str]:
    """One line for each rule that the runs break; empty if the schedule is right.

    Args:
        runs: RUN records of a whole episode, in the order of their ends.
        memory: (N,) MB of the NUMA nodes.
        rank: (D,) of the declared functions, if the order goes by one; None leaves the order of
            dispatch unchecked.
        prewarmed: whether containers were started ahead or warm at the beginning, so that a warm
            start needs no run before it.
        least: (D,) seconds at full speed, below which none of the declared functions completes;
            None leaves unchecked that one that was killed begins anew.
    """
    return [
        *run_violations(runs, least),
        *_check_sums(runs),
        *memory_violations(runs, memory),
        *([] if prewarmed else _check_warm_starts(runs)),
        *([] if rank is None else order_violations(runs, rank)),
    ]


def run_violations(runs: np.ndarray, least: np.ndarray | None = None) -> list[str]:
    """What holds of runs in every world; arguments as of `queued_violations`."""
    return [*_check_times(runs), *_check_requests(runs), *_check_execution(runs, least)]


def _name(run: np.void) -> str:
    return f"function {run['fn_id']} of workflow {run['wf_id']}"


def _check_times(runs: np.ndarray) -> list[str]:
    """Submission <= joining <= dispatch <= start <= end."""
    steps = ("submission_time", "joined_time", "dispatch_time", "start_time", "end_time")
    return [
        f"{_name(run)}: {early} {run[early]} is after {late} {run[late]}"
        for early, late in itertools.pairwise(steps)
        for run in runs[runs[early] > runs[late]]
    ]


def _of_functions(runs: np.ndarray) -> list[list[np.void]]:
    """The runs of each function, in the order of their ends."""
    found: dict[tuple[int, int], list[np.void]] = defaultdict(list)
    for run in runs:
        found[int(run["wf_id"]), int(run["fn_id"])].append(run)
    return list(found.values())


def _check_requests(runs: np.ndarray) -> list[str]:
    """Each function waits, runs, waits again where it was preempted or killed, and ends once."""
    found = []
    for own in _of_functions(runs):
        name = _name(own[0])
        outcomes = [int(run["outcome"]) for run in own]
        if COMPLETED in outcomes[:-1] or outcomes[-1] != COMPLETED:
            found.append(f"{name}: outcomes of its runs are {outcomes}, the last alone completes")
        joined = [own[0]["submission_time"], *(run["end_time"] for run in own[:-1])]
        waited = 0.0
        for count, (run, since) in enumerate(zip(own, joined, strict=True)):
            if run["joined_time"] != since:
                found.append(f"{name}: joins the queue at {run['joined_time']}, not at {since}")
            waited += run["dispatch_time"] - since
            if not close(run["queueing_time"], waited, run["end_time"], count):
                found.append(f"{name}: queueing_time is {run['queueing_time']}, it waited {waited}")
    return found


def _check_sums(runs: np.ndarray) -> list[str]:
    """On servers that are up a completion time has these parts; others wait for servers, too."""
    found = []
    for own in _of_functions(runs):
        last = own[-1]
        total = sum(
            last[key]
            for key in ("cold_start_time", "data_transfer_time", "execution_time", "queueing_time")
        )
        completion = last["end_time"] - last["submission_time"]
        if not close(total, completion, last["end_time"], len(own)):
            found.append(
                f"{_name(last)}: the parts of its completion time {completion} sum to {total}"
            )
    return found


def _check_execution(runs: np.ndarray, least: np.ndarray | None) -> list[str]:
    """It executes from start to end; killed before its start not at all, and then all of it anew.

    What is killed before its start is said to start when it ends.
    """
    found = []
    for own in _of_functions(runs):
        executed = served = 0.0
        for count, run in enumerate(own):
            seconds = float(run["end_time"] - run["start_time"])
            executed += seconds
            served = 0.0 if run["outcome"] == KILLED else served + seconds
            if not close(run["execution_time"], executed, run["end_time"], count):
                found.append(
                    f"{_name(run)}: execution_time is {run['execution_time']} at {run['end_time']} "
                    f"s, it executed {executed}"
                )
        last = own[-1]
        less = slack(last["end_time"], len(own))
        if least is not None and served < least[last["declared"]] - less:
            found.append(
                f"{_name(last)}: completes after {served} s since it began anew, "
                f"at least {least[last['declared']]} are needed"
            )
    return found


def memory_violations(runs: np.ndarray, memory: np.ndarray) -> list[str]:
    """Containers at work and starting up never hold more than a node has.

    Args:
        runs: RUN records; of what is held from dispatch to end.
        memory: (N,) MB of the NUMA nodes.
    """
    found = []
    for node, size in enumerate(memory):
        own = runs[runs["node"] == node]
        times = np.concatenate([own["end_time"], own["dispatch_time"]])
        changes = np.concatenate([-own["memory_alloc"], own["memory_alloc"]])
        # Of one moment, ends come first: they stand in front.
        order = np.argsort(times, kind="stable")
        used = np.cumsum(changes[order])
        found += [
            f"node {node}: {used[at]} MB are in use at {times[order][at]} s, it has {size}"
            for at in np.flatnonzero(used > size)
        ]
    return found


def _check_warm_starts(runs: np.ndarray) -> list[str]:
    """A warm container was left by an earlier run of its image on its node: W is never below 0.

    One that is killed leaves none.
    """
    found = []
    events = [(run["end_time"], 0, 0, run) for run in runs if run["outcome"] != KILLED]
    events += [
        (run["dispatch_time"], 1, int(run["dispatched"]), run) for run in runs if run["warm"]
    ]
    warm: dict[tuple[int, int], int] = defaultdict(int)
    for time, is_start, _, run in sorted(events, key=lambda event: event[:3]):
        place = int(run["node"]), int(run["image"])
        warm[place] += -1 if is_start else 1
        if warm[place] < 0:
            found.append(f"{_name(run)}: starts warm at {time} s where nothing is warm")
    return found


def order_violations(runs: np.ndarray, rank: np.ndarray) -> list[str]:
    """Whoever starts has the smallest rank of all that wait; of equal ones, joined first."""
    found = []
    events = [(int(run["joined"]), 0, run) for run in runs]
    events += [(int(run["dispatched"]), 1, run) for run in runs]
    waiting: list[tuple[float, int]] = []
    started: set[int] = set()
    for _, is_start, run in sorted(events, key=lambda event: event[:2]):
        joined = int(run["joined"])
        if not is_start:
            heapq.heappush(waiting, (float(rank[run["declared"]]), joined))
            continue
        while waiting[0][1] in started:
            heapq.heappop(waiting)
        if waiting[0][1] != joined:
            found.append(f"{_name(run)}: starts at {run['dispatch_time']} s before its turn")
        started.add(joined)
    return found
