"""Checks finished schedules without the simulator: `python -m env.sim.check.validate FILE...`.

Takes an episode file's results as a claim and recomputes, from the recorded times, what the rules
of the simulation make of them. Uses nothing of the engine. Prints one line for each violation;
exit code 1 if there is one. Bad input: one line, exit 2.
"""

import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

from env.base.errors import InputError
from env.base.pipes import until_reader_leaves
from env.sim.check.runs import check_containers, check_runs
from env.sim.check.schedule import Schedule, check_close
from env.sim.check.servers import check_servers
from env.sim.check.work import check_work
from env.sim.episode.episode_file import check_files
from env.sim.episode.model import EpisodeFile, Results, named


def violations(episode: EpisodeFile) -> list[str]:
    """One line for each rule that the results of `episode` break; empty if the schedule is right.

    Nothing else is checked as long as a function is not accounted for exactly once.

    Raises:
        InputError: the episode has no results to check.
    """
    if episode.expected is None:
        raise InputError("expected: missing, only a finished schedule can be checked")
    if unaccounted := list(_check_accounts(episode, episode.expected)):
        return unaccounted
    schedule = Schedule(episode, episode.expected)
    return [
        *check_runs(schedule),
        *check_containers(schedule),
        *check_work(schedule),
        *check_servers(schedule),
        *_check_totals(schedule),
    ]


@until_reader_leaves()
def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    return check_files("env.sim.check.validate", __doc__, arguments, violations, sys.stdout)


def _check_accounts(episode: EpisodeFile, results: Results) -> Iterator[str]:
    """Each function ends once or again; all is on nodes and of images that exist, and fits.

    It completes, fails or is not called. Where data are lost, functions complete again.
    """
    functions, kinds = episode.functions, {kind.name: kind for kind in episode.cluster.server_types}
    memory = {place: kinds[place[0]].memory for place in episode.cluster.places}
    queued = episode.options.queue is not None
    completed = Counter(run.function for run in results.runs if run.outcome == "completed")
    unfinished = Counter(row.function for row in results.unfinished)
    recovery = episode.options.recovery
    again = recovery is not None and recovery.data_durability == "server"
    for function in functions:
        times, failures = completed[function], unfinished[function]
        if (times + failures != 1) and not (again and times >= 1 and failures <= 1):
            also = f" and fails {failures} times" if failures else ""
            yield f"{named(function)} is finished {times} times{also}, exactly once is needed"
    yield from _check_reasons(episode, results)
    for run in results.runs:
        if run.function not in functions:
            yield f"{named(run.function)} is unknown, but runs"
        elif run.place not in memory:
            yield f"{run}, which does not exist"
        elif run.memory_allocated_mb > memory[run.place]:
            yield f"{run} has {run.memory_allocated_mb} MB, its node has {memory[run.place]}"
        if any((number is not None) != queued for number in (run.joined, run.dispatched)):
            yield f"{run}: events joined and dispatched are numbered with a queue, and only there"
    for index, warm in enumerate(results.warm_containers):
        if warm.place not in memory:
            yield f"warm_containers.{index}: {warm} does not exist"
        elif warm.image >= len(episode.images):
            yield f"warm_containers.{index}: there is no image {warm.image}"
    servers = Counter(row.server for row in results.servers)
    for server, times in servers.items():
        if (*server, 0) not in memory:
            yield f"servers: {server[0]} {server[1]} does not exist"
        elif times > 1:
            yield f"servers: {server[0]} {server[1]} stands {times} times"


def _check_reasons(episode: EpisodeFile, results: Results) -> Iterator[str]:
    """Functions fail where they can, and for the reason that is given."""
    recovery = episode.options.recovery
    failed = {row.function for row in results.unfinished if row.reason != "not called"}
    killed = Counter(run.function for run in results.runs if run.outcome == "killed")
    behind_failed = {
        (workflow.workflow_id, edge.target)
        for workflow in episode.workflows
        for edge in workflow.edges
        if (workflow.workflow_id, edge.source) in failed
    }
    last = max((run.end_time for run in results.runs), default=0.0)
    for row in results.unfinished:
        line = f"{named(row.function)} fails at {row.time} s by '{row.reason}'"
        if row.function in episode.functions and row.reason == "not called":
            continue  # see check/runs.py
        if row.function not in episode.functions or recovery is None:
            yield f"{line}, which is not possible"
        elif row.reason == "retries" and killed[row.function] != (recovery.retries or 0) + 1:
            yield f"{line}, it was killed {killed[row.function]} times"
        elif row.reason == "predecessor" and row.function not in behind_failed:
            yield f"{line}, none of them has failed"
        elif row.reason == "no server" and row.time < last:
            yield f"{line}, a run ends at {last} s"


def _check_totals(schedule: Schedule) -> Iterator[str]:
    """The sums at the end of the file."""
    results, step = schedule.results, schedule.episode.options.lease.step
    rent = sum(row.rent + (row.egress or 0.0) for row in results.servers)
    leases = math.ceil(sum(row.lease_seconds for row in results.servers) / step)
    yield from check_close("total_rent", results.total_rent, rent, additions=leases)
    ends = [0.0] * len(schedule.episode.workflows)
    for row in results.runs:
        ends[row.workflow_id] = max(ends[row.workflow_id], row.end_time)
    for failed in results.unfinished:
        ends[failed.workflow_id] = max(ends[failed.workflow_id], failed.time)
    yield from check_close("last_completion_time", results.last_completion_time, max(ends))
    stated = results.workflow_completion_times
    if len(stated) != len(ends):
        yield f"workflow_completion_times: {len(stated)} found, {len(ends)} are needed"
    for wf_id, (time, due) in enumerate(zip(stated, ends, strict=False)):
        yield from check_close(f"workflow_completion_times.{wf_id}", time, due)


if __name__ == "__main__":
    sys.exit(main())
