"""Hashes of what arrives: equal only where the same functions are asked for at the same times."""

import hashlib
from collections.abc import Iterable

import numpy as np

from env.workloads.generator import EpisodeWorkload
from env.workloads.traces.trace import FunctionProfiles
from env.workloads.traces.trace_recording import Recording


def fingerprint(workloads: Iterable[EpisodeWorkload]) -> str:
    """A hash of all that arrives: equal only for the same workflows, times and tenants."""
    digest = hashlib.sha256()
    for workload in workloads:
        digest.update(repr(workload.arrival_times).encode())
        for template in workload.templates:
            for array in (
                template.computation,
                template.memory_req,
                template.parallelism,
                template.edges,
                template.data_bytes,
            ):
                digest.update(array.tobytes())
        if workload.tenants:  # without any, the hash is that of older evaluations
            digest.update(repr(workload.tenants).encode())
    return digest.hexdigest()


def fingerprint_of_samples(recording: Recording, profiles: Iterable[FunctionProfiles]) -> str:
    """The same of samples of a trace: of the trace, and of the functions that each sample draws.

    Requests are drawn from these alone, by rules and seeds that the configuration has. Drawing all
    of them just for a hash would take longer than to play some of them.

    Args:
        recording: the trace.
        profiles: of each sample with each seed.
    """
    digest = hashlib.sha256(repr(recording.names).encode())
    for numbers in vars(recording.invocations).values():
        digest.update(np.asarray(numbers).tobytes())
    for each in profiles:
        digest.update(repr(each.names).encode())
        for array in (each.execution, each.cold_start, each.memory, each.parallelism):
            digest.update(array.tobytes())
    return digest.hexdigest()
