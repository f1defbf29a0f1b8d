"""Checks a finished schedule without the simulator: `python -m env.sim.check.validate FILE...`.

Takes an episode file's results as a claim and recomputes, from the recorded times, what the rules
of the simulation make of them. Uses nothing of the engine.
"""

import argparse
import bisect
import itertools
import sys
from collections import Counter
from collections.abc import Sequence

from env.base.errors import InputError, located
from env.base.schema import one_line
from env.sim.check.validate_servers import check_servers
from env.sim.episode.episode_file import (
    EpisodeFile,
    Results,
    read_episode,
)
from env.sim.episode.recorded_schedule import Schedule, check_close, named, placed_at


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
    schedule = Schedule(episode, results)
    return [
        *_check_times(schedule),
        *_check_decision_order(schedule),
        *_check_precedence(schedule),
        *_check_completed_sets(schedule),
        *check_servers(schedule),
        *_check_totals(schedule),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(
        usage=argparse.SUPPRESS,
        prog="python -m env.sim.check.validate",
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
        found += [f"{named(one)} is unknown, but {what}" for one in sorted(counts.keys() - known)]
        found += [
            f"{named(one)} is {what} {counts[one]} times, exactly once is needed"
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
        where = placed_at(row.server_type, row.server_index, row.numa_node_index)
        shown = f"{named((row.workflow_id, row.function_id))} is placed on {where}"
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


def _check_times(schedule: Schedule) -> list[str]:
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
            found += check_close(
                f"{run}: {key} of the decision", getattr(run.decision, key), getattr(run.times, key)
            )
    return found


def _check_decision_order(schedule: Schedule) -> list[str]:
    """Decisions are ordered by (submission time, workflow, function)."""
    return [
        f"decisions {first.index} and {second.index}: {named(first.function)}, submitted at "
        f"{first.times.submission_time}, comes before {named(second.function)}, submitted at "
        f"{second.times.submission_time}"
        for first, second in itertools.pairwise(schedule.runs)
        if (first.times.submission_time, first.function)
        > (second.times.submission_time, second.function)
    ]


def _check_precedence(schedule: Schedule) -> list[str]:
    """A function is submitted when the last of its predecessors completes, or at the arrival."""
    found = []
    for run in schedule.runs:
        arrival = schedule.workflows[run.function[0]].arrival_time
        ends = [before.times.completion_time for before, _ in schedule.predecessors(run)]
        due = max(ends, default=arrival)
        found += check_close(f"{run}: submission_time", run.times.submission_time, due)
    return found


def _check_completed_sets(schedule: Schedule) -> list[str]:
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


def _check_totals(schedule: Schedule) -> list[str]:
    """The sums at the end of the file."""
    results = schedule.results
    found = check_close("total_rent", results.total_rent, sum(row.rent for row in results.servers))
    ends: list[list[float]] = [[] for _ in schedule.workflows]
    for run in schedule.runs:
        ends[run.function[0]].append(run.times.completion_time)
    found += check_close("last_completion_time", results.last_completion_time, max(map(max, ends)))
    stated = results.workflow_completion_times
    if len(stated) != len(ends):
        return [*found, f"workflow_completion_times: {len(stated)} found, {len(ends)} are needed"]
    for wf_id, (time, own) in enumerate(zip(stated, ends, strict=True)):
        found += check_close(f"workflow_completion_times.{wf_id}", time, max(own))
    return found


if __name__ == "__main__":
    sys.exit(main())
