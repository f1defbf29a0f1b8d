"""The pool of container records: a container is a function being run."""

import numpy as np

from env.base.jit import compiled
from env.sim.state.block import State
from env.sim.state.records import NONE


@compiled
def memory_ratio(memory_alloc: int, memory_req: int):
    """Share of its full speed that a container has: 1, or less with less memory than required."""
    return min(1.0, memory_alloc / memory_req)


@compiled
def memory_tier(memory_req: int, ratio):
    """MB of a tier: the ratio of what a function needs, rounded up."""
    return int(np.ceil(memory_req * ratio))


@compiled
def declared_left(functions: np.ndarray, index: int):
    """Operations that a function has left as far as anybody can know: its draw shows at its end."""
    return max(1, functions[index].remaining_computation - functions[index].surplus)


@compiled
def take_container(state: State):
    """Index of an unused container record, NONE if there is none left."""
    cluster = state.cluster
    index = cluster[0].free_container
    if index != NONE:
        cluster[0].free_container = state.containers[index].next
    elif cluster[0].containers_used < len(state.containers) - 1:
        index = cluster[0].containers_used
        cluster[0].containers_used += 1
    return index


@compiled
def give_back_container(state: State, index: int) -> None:
    """Returns a container record to the pool."""
    state.containers[index].next = state.cluster[0].free_container
    state.cluster[0].free_container = index
