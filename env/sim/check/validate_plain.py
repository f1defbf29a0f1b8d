"""Checks what only format 1 says of a finished schedule: its decisions, and who has completed.

A part of `env.sim.check.validate`; uses nothing of the engine.
"""

import bisect
import itertools
from collections import Counter

from env.sim.check.accounts import check_accounts
from env.sim.check.rounding import check_close
from env.sim.episode.plain_episode import PlainEpisode, Results
from env.sim.episode.recorded_schedule import Schedule


def check_plain_accounts(episode: PlainEpisode, results: Results) -> list[str]:
    """Every function placed once, on a node that exists and could hold it, and finished once."""
    found = check_accounts(
        episode,
        {
            "placed": Counter(row.function for row in episode.actions),
            "finished": Counter((row.workflow_id, row.function_id) for row in results.functions),
        },
        episode.actions,
        [(row.server_type, row.server_index) for row in results.servers],
    )
    for what, count in (
        ("decision_count", results.decision_count),
        ("rows of decisions", len(results.decisions)),
    ):
        if count != len(episode.actions):
            found.append(f"{what}: {count} found, there are {len(episode.actions)} actions")
    return found


def check_plain(results: Results, schedule: Schedule) -> list[str]:
    """The times of functions and decisions, and the sets of what has completed."""
    return [*_check_times(results, schedule), *_check_completed_sets(results, schedule)]


def _check_times(results: Results, schedule: Schedule) -> list[str]:
    """Submission <= creation <= start <= completion, and both tables say the same."""
    found = []
    for run, decision in zip(schedule.runs, results.decisions, strict=True):
        assert run.creation_time is not None
        steps = [
            ("submission_time", run.submission_time),
            ("creation_time", run.creation_time),
            ("start_time", run.start_time),
            ("completion_time", run.end_time),
        ]
        for (early_key, early), (late_key, late) in itertools.pairwise(steps):
            if early > late:
                found.append(f"{run}: {early_key} {early} is after {late_key} {late}")
        for key, time in steps[:2]:
            found += check_close(f"{run}: {key} of the decision", getattr(decision, key), time)
    return found


def _check_completed_sets(results: Results, schedule: Schedule) -> list[str]:
    """What completes after a decision and no later than the next one's submission."""
    decided = [run.submission_time for run in schedule.runs]
    due: list[list[tuple[float, int, int]]] = [[] for _ in schedule.runs]
    for run in schedule.runs:
        # One that ends at the moment of its own decision ends after that.
        after = max(run.index, bisect.bisect_left(decided, run.end_time) - 1)
        due[after].append((run.end_time, *run.function))
    found = []
    for index, (decision, completed) in enumerate(zip(results.decisions, due, strict=True)):
        wanted = [function for _, *function in sorted(completed)]
        stated = [list(function) for function in decision.completed_before_next_decision]
        if stated != wanted:
            found.append(
                f"decision {index}: completed_before_next_decision is {stated}, by the "
                f"completion times it is {wanted}"
            )
    return found
