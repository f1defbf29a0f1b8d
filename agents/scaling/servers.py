"""What scaling rules look at: functions that wait, and how long a server has been idle."""

import numpy as np

from env.sim.state.block import State
from env.sim.state.records import NONE


def waiting(state: State) -> np.ndarray:
    """FUNCTION records of those that wait for a server or for memory."""
    found = state.submitted["index"][: int(state.cluster[0]["queue_size"])].tolist()
    declared = state.waiting[state.waiting["count"] > 0]
    found += np.repeat(declared["first"], declared["count"]).tolist()
    for index in state.nodes["first_waiting"][state.nodes["waiting_count"] > 0]:
        while index != NONE:
            found.append(int(state.containers[index]["function"]))
            index = state.containers[index]["next"]
    return state.functions[found]


def idle_seconds(state: State, server: int) -> float:
    """Since when nothing is on a server that is up; 0 where something is."""
    record = state.servers[server]
    if server == NONE or record["container_count"] > 0:
        return 0.0
    clocks = state.nodes["clock"][state.nodes["server"] == server]
    return max(0.0, float(state.cluster[0]["time"] - max(record["ready_time"], clocks.max())))
