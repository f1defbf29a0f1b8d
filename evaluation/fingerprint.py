"""Hashes of what arrives: equal only where the same functions are asked for at the same times."""

import hashlib
from collections.abc import Iterable

import numpy as np

from env.sim.declared.episode import EpisodeWorkload
from env.workloads.source import WorkloadSource
from env.workloads.traces.trace_samples import TraceGenerator


def fingerprint(sources: Iterable[WorkloadSource], episodes: int) -> str:
    """A hash of all that arrives in so many held-out episodes of each source."""
    digest = hashlib.sha256()
    for source in sources:
        if isinstance(source, TraceGenerator):
            _add_samples(digest, source, episodes)
        else:
            for episode in range(episodes):
                _add_episode(digest, source.evaluation_episode(episode))
    return digest.hexdigest()


def _add_episode(digest: "hashlib._Hash", workload: EpisodeWorkload) -> None:
    """Workflows, times and tenants."""
    digest.update(repr(workload.arrival_times).encode())
    for each in workload.templates:
        sizes = each.computation, each.memory_req, each.parallelism
        for array in (*sizes, each.edges, each.data_bytes):
            digest.update(array.tobytes())
        for name, units in sorted(each.resources.items()):
            digest.update(repr(name).encode() + units.tobytes())
        if (each.probability < 1).any():  # without conditions, the hash is that of older ones
            digest.update(each.probability.tobytes())
    if workload.tenants:  # without any, the hash is that of older evaluations
        digest.update(repr(workload.tenants).encode())


def _add_samples(digest: "hashlib._Hash", source: TraceGenerator, episodes: int) -> None:
    """The trace, and the functions that are drawn of it.

    Requests are drawn from these alone, by rules and seeds that the configuration has. Drawing all
    of them just for a hash would take longer than to play some of them.
    """
    digest.update(repr(source.recording.names).encode())
    for numbers in vars(source.recording.invocations).values():
        digest.update(np.asarray(numbers).tobytes())
    for episode in range(episodes):
        profiles = source.sample(episode).profiles
        digest.update(repr(profiles.names).encode())
        times = profiles.execution, profiles.cold_start
        # One thread each is in the hash of older evaluations.
        for array in (*times, profiles.memory, np.ones_like(profiles.memory)):
            digest.update(array.tobytes())
