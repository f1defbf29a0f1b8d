"""What has to hold of a record before anything else can be told: all is there, once, somewhere.

A part of `env.sim.check.validate`; uses nothing of the engine.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from env.sim.episode.episode_parts import ActionModel, EpisodeFile, named
from env.sim.episode.recorded_schedule import placed_at
from env.sim.episode.world_episode import RunModel


def check_accounts(
    episode: EpisodeFile,
    counts: Mapping[str, Counter[tuple[int, int]]],
    placed: Iterable[ActionModel | RunModel],
    servers: Iterable[tuple[str, int]],
) -> list[str]:
    """Each function is counted once, is on a node that exists and could hold it.

    Args:
        episode: the file.
        counts: how often a record says something of the functions, by what it says.
        placed: who runs where.
        servers: that the record names.
    """
    known = episode.functions.keys()
    found = []
    for what, count in counts.items():
        found += [f"{named(one)} is unknown, but {what}" for one in sorted(count.keys() - known)]
        found += [
            f"{named(one)} is {what} {count[one]} times, exactly once is needed"
            for one in sorted(known)
            if count[one] != 1
        ]
    types = {declared.name: declared for declared in episode.cluster.server_types}
    for row in placed:
        shown = f"{named(row.function)} is placed on {placed_at(*row.place)}"
        if not place_exists(episode, row.place):
            found.append(f"{shown}, which does not exist")
            continue
        memory = types[row.server_type].memory_mb_per_numa_node
        if not 1 <= row.memory_allocated_mb <= memory:
            found.append(
                f"{shown} with {row.memory_allocated_mb} MB, 1 to {memory} MB are possible"
            )
    for server, times in Counter(servers).items():
        if not place_exists(episode, (*server, 0)):
            found.append(f"servers: {server[0]} {server[1]} does not exist")
        elif times > 1:
            found.append(f"servers: {server[0]} {server[1]} stands {times} times")
    return found


def place_exists(episode: EpisodeFile, place: tuple[str, int, int]) -> bool:
    """Whether the cluster has a (server type, server, NUMA node)."""
    name, server, node = place
    return any(
        declared.name == name
        and server < declared.server_count
        and node < declared.numa_nodes_per_server
        for declared in episode.cluster.server_types
    )
