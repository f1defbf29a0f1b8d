"""What the containers need that wait on their node."""

import numpy as np

from env.base.jit import compiled_apart
from env.resources.quantity import UNIT
from env.sim.node.fit import named_need
from env.sim.state.block import State
from env.sim.state.records import NONE


@compiled_apart
def sum_waiting(state: State, load: np.ndarray) -> None:
    """Adds to `load` (N, 2 + X) the threads, MB and named resources, in 1/10,000."""
    containers = state.containers
    for node in range(len(state.nodes)):
        index = state.nodes[node].first_waiting
        while index != NONE:
            load[node, 0] += containers[index].parallelism * UNIT
            load[node, 1] += containers[index].memory_alloc * UNIT
            for named in range(len(state.named_first) - 1):
                load[node, 2 + named] += named_need(state, containers[index].function, named)
            index = containers[index].next
