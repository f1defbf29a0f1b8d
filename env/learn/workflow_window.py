"""What agents see of the workflow around the current function: a window of its DAG. Compiled.

The window holds the functions of the workflow that have not ended, nearest first: the current one,
its successors, their other predecessors, and so on. Its own predecessors have all ended; features
of the NUMA nodes say where their data is. Successors show how much a late end costs, and their
other predecessors whether this function is the one that is late.
"""

from __future__ import annotations

from typing import Final

from env.base.jit import compiled, places
from env.learn.observation import clip, log_of, log_seconds
from env.sim.state.block import State
from env.sim.state.draws import is_taken
from env.sim.state.records import FINISHED, NONE, NOT_CALLED, RUNNING, SUBMITTED

FUNCTION_FEATURES: Final = (
    "best_time",  # seconds at full speed, log
    "parallelism",  # / cores of the largest node
    "memory_req",  # / memory of the largest node
    "critical_path_left",  # upward rank / critical path of the workflow, 0 to 1
    "input_transfer",  # seconds to fetch all that may be its input from other servers, log
    "waits_for",  # predecessors that have not ended, log
    "submitted",  # 1: it waits for a decision
    "running",  # 1: it has been placed
    "running_for",  # seconds since its container was ready, log
)
FUNCTION: Final = places(FUNCTION_FEATURES)


@compiled
def write_window(state: State, window, functions, edges) -> None:
    """The window of the current function; rows that it does not fill are 0.

    Args:
        state: the simulator.
        window: scratch, int64 (F,).
        functions: out, float32 (F, G), FUNCTION_FEATURES.
        edges: out, float32 (F, F), 1 where the function of the column waits for that of the row.
    """
    functions[:] = 0.0
    edges[:] = 0.0
    window[0] = state.cluster[0].deciding
    row, count = 0, 1
    while row < count:
        function = window[row]
        write_function(state, function, functions[row])
        first = function - state.functions[function].fn_id
        declared = state.template_functions[state.functions[function].declared]
        begin = declared.first_successor
        for edge in range(begin, begin + declared.successor_count):
            waiting = row_of(window, count, first + state.successors[edge].function)
            if waiting != NONE:
                edges[row, waiting] = 1.0
                count = max(count, waiting + 1)
        begin = declared.first_predecessor
        for edge in range(begin, begin + declared.predecessor_count):
            if count == len(window):
                break
            source = first + state.predecessors[edge].function
            if state.functions[source].state not in (FINISHED, NOT_CALLED):
                count = max(count, row_of(window, count, source) + 1)
        row += 1


@compiled
def row_of(window, count: int, function: int):
    """Where a function is in the window, which it joins if there is room, else NONE."""
    for row in range(count):
        if window[row] == function:
            return row
    if count == len(window):
        return NONE
    window[count] = function
    return count


@compiled
def write_function(state: State, function: int, out) -> None:
    """FUNCTION_FEATURES of a function into `out` (G,), which is 0."""
    cluster = state.cluster[0]
    record = state.functions[function]
    declared = state.template_functions[record.declared]
    critical_path = state.templates[state.workflows[record.slot].template].critical_path
    data_bytes, begin = 0, declared.first_predecessor
    for edge in range(begin, begin + declared.predecessor_count):
        if declared.conditional == 0 or is_taken(state, function, edge):
            data_bytes += state.predecessors[edge].data_bytes
    out[FUNCTION.best_time] = log_seconds(declared.best_time)
    out[FUNCTION.parallelism] = declared.parallelism / cluster.largest_node_cpu
    out[FUNCTION.memory_req] = declared.memory_req / cluster.largest_node_memory
    out[FUNCTION.critical_path_left] = declared.upward_rank / critical_path
    out[FUNCTION.input_transfer] = log_seconds(data_bytes / cluster.network_bandwidth)
    out[FUNCTION.waits_for] = log_of(record.unfinished_predecessors)
    out[FUNCTION.submitted] = record.state == SUBMITTED
    out[FUNCTION.running] = record.state == RUNNING
    if record.state == RUNNING:
        out[FUNCTION.running_for] = log_seconds(cluster.time - record.creation_time)
    clip(out)
