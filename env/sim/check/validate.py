"""Checks finished schedules without the simulator: `python -m env.sim.check.validate FILE...`.

Takes an episode file's results as a claim and recomputes, from the recorded times, what the rules
of the simulation make of them. Uses nothing of the engine. Prints one line for each violation;
exit code 1 if there is one. Bad input: one line, exit 2.
"""

import math
import sys
from collections.abc import Iterator, Sequence

from env.base.errors import InputError
from env.base.pipes import until_reader_leaves
from env.sim.check.accounts import check_accounts
from env.sim.check.containers import check_containers
from env.sim.check.rounding import check_close
from env.sim.check.runs import check_runs
from env.sim.check.schedule import Schedule
from env.sim.check.servers import check_servers
from env.sim.check.work import check_work
from env.sim.episode.episode_file import check_files
from env.sim.episode.model import EpisodeFile


def violations(episode: EpisodeFile) -> list[str]:
    """One line for each rule that the results of `episode` break; empty if the schedule is right.

    Nothing else is checked as long as a function is not accounted for exactly once.

    Raises:
        InputError: the episode has no results to check.
    """
    if episode.expected is None:
        raise InputError("expected: missing, only a finished schedule can be checked")
    if unaccounted := list(check_accounts(episode, episode.expected)):
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
