"""What scaling rules look at: functions that wait, and how long a server has been idle."""

import numpy as np

from env.sim.state.block import State
from env.sim.state.records import NONE, SUBMITTED
from env.sim.view.hardware import waits_on_node


def waiting(state: State) -> np.ndarray:
    """FUNCTION records of those that wait for a server or for memory."""
    functions = state.functions
    return functions[(functions["state"] == SUBMITTED) | waits_on_node(functions)]


def idle_seconds(state: State, server: int) -> float:
    """Since when nothing is on a server that is up; 0 where something is."""
    record = state.servers[server]
    if server == NONE or record["container_count"] > 0:
        return 0.0
    clocks = state.nodes["clock"][state.nodes["server"] == server]
    return max(0.0, float(state.cluster[0]["time"] - max(record["ready_time"], clocks.max())))
