"""Checks that all of a record is there, once, and in a place that exists."""

from collections import Counter
from collections.abc import Iterator

from env.sim.episode.model import EpisodeFile, Results, named


def check_accounts(episode: EpisodeFile, results: Results) -> Iterator[str]:
    """Each function completes once; all is on nodes and of images that exist, and fits there."""
    functions, memory = episode.functions, episode.node_memory
    queued = episode.options.queue is not None
    completed = Counter(run.function for run in results.runs if run.outcome == "completed")
    for function in functions:
        if completed[function] != 1:
            times = completed[function]
            yield f"{named(function)} is finished {times} times, exactly once is needed"
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
