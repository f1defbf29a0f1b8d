"""What RUN records say together."""

import numpy as np


def most_memory(runs: np.ndarray, node: int) -> int:
    """MB that runs on a NUMA node hold at most, from dispatch to end."""
    own = runs[runs["node"] == node]
    times = np.concatenate([own["end_time"], own["dispatch_time"]])
    changes = np.concatenate([-own["memory_alloc"], own["memory_alloc"]])
    # Of one moment, ends come first: they stand in front.
    return int(np.cumsum(changes[np.argsort(times, kind="stable")]).max(initial=0))
