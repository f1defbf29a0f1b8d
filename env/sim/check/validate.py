"""Checks a finished schedule without the simulator: `python -m env.sim.check.validate FILE...`.

Takes an episode file's results as a claim and recomputes, from the recorded times, what the rules
of the simulation make of them. Uses nothing of the engine.
"""

import argparse
import itertools
import math
import sys
from collections.abc import Sequence

from env.base.errors import InputError, located
from env.base.pipes import until_reader_leaves
from env.base.schema import one_line
from env.sim.check.rounding import check_close
from env.sim.check.validate_plain import check_plain, check_plain_accounts
from env.sim.check.validate_servers import check_servers
from env.sim.check.validate_world import check_world, check_world_accounts
from env.sim.episode.episode_file import read_episode
from env.sim.episode.episode_parts import EpisodeFile, named
from env.sim.episode.plain_episode import PlainEpisode, Results
from env.sim.episode.recorded_schedule import Schedule
from env.sim.episode.world_episode import RunResults, WorldEpisode


def violations(episode: EpisodeFile) -> list[str]:
    """One line for each rule that the results of `episode` break; empty if the schedule is right.

    Every function must be accounted for exactly once before anything else can be told.

    Raises:
        InputError: the episode has no results to check.
    """
    if isinstance(episode, PlainEpisode) and episode.expected is not None:
        if found := check_plain_accounts(episode, episode.expected):
            return found
        schedule = Schedule(episode)
        return [*check_plain(episode.expected, schedule), *_check_rules(episode.expected, schedule)]
    if isinstance(episode, WorldEpisode) and episode.expected is not None:
        if found := check_world_accounts(episode, episode.expected):
            return found
        schedule = Schedule(episode)
        return [*check_world(episode, episode.expected), *_check_rules(episode.expected, schedule)]
    raise InputError("expected: missing, only a finished schedule can be checked")


@until_reader_leaves()
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


def _check_rules(results: Results | RunResults, schedule: Schedule) -> list[str]:
    """What holds in every world."""
    return [
        *_check_precedence(schedule),
        *([] if schedule.queued else _check_decision_order(schedule)),
        *check_servers(schedule),
        *_check_totals(results, schedule),
    ]


def _check_decision_order(schedule: Schedule) -> list[str]:
    """Decisions are ordered by (submission time, workflow, function)."""
    return [
        f"decisions {first.index} and {second.index}: {named(first.function)}, submitted at "
        f"{first.submission_time}, comes before {named(second.function)}, submitted at "
        f"{second.submission_time}"
        for first, second in itertools.pairwise(schedule.runs)
        if (first.submission_time, first.function) > (second.submission_time, second.function)
    ]


def _check_precedence(schedule: Schedule) -> list[str]:
    """A function is submitted when the last of its predecessors completes, or at the arrival."""
    found = []
    for run in schedule.runs:
        arrival = schedule.workflows[run.function[0]].arrival_time
        ends = [before.end_time for before, _ in schedule.predecessors(run)]
        due = max(ends, default=arrival)
        found += check_close(f"{run}: submission_time", run.submission_time, due)
    return found


def _check_totals(results: Results | RunResults, schedule: Schedule) -> list[str]:
    """The sums at the end of the file."""
    rent = sum(row.rent for row in results.servers)
    leases = math.ceil(sum(row.seconds for row in schedule.leases.values()) / schedule.lease.step)
    found = check_close("total_rent", results.total_rent, rent, additions=leases)
    ends: list[list[float]] = [[] for _ in schedule.workflows]
    for run in schedule.runs:
        ends[run.function[0]].append(run.end_time)
    found += check_close("last_completion_time", results.last_completion_time, max(map(max, ends)))
    stated = results.workflow_completion_times
    if len(stated) != len(ends):
        return [*found, f"workflow_completion_times: {len(stated)} found, {len(ends)} are needed"]
    for wf_id, (time, own) in enumerate(zip(stated, ends, strict=True)):
        found += check_close(f"workflow_completion_times.{wf_id}", time, max(own))
    return found


if __name__ == "__main__":
    sys.exit(main())
