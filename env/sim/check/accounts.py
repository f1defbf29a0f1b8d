"""Checks that all of a record is there, once, and in a place that exists."""

from collections import Counter
from collections.abc import Iterator

from env.sim.episode.model import EpisodeFile, Results, named


def check_accounts(episode: EpisodeFile, results: Results) -> Iterator[str]:
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
