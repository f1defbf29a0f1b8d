"""Conditional calls: which function calls which.

A draw follows from the place of its edge alone, so that it can be asked for again.
"""

from env.base.jit import compiled_apart
from env.sim.state.block import State
from env.sim.state.draws import CALL, uniform
from env.sim.state.records import FINISHED, NONE, NOT_CALLED


@compiled_apart
def calls(seed, wf_id: int, source: int, target: int, probability: float):
    """Whether function `source` of a workflow, once it ends, calls function `target`."""
    return (
        probability >= 1.0 or uniform(seed, CALL + wf_id, source * (1 << 20) + target) < probability
    )


@compiled_apart
def is_taken(state: State, function: int, edge: int) -> bool:
    """Whether a function is called along one of its `predecessors`: it is unless more is known.

    What is drawn shows once the caller has finished. One that a script skips calls all.
    """
    source = function - state.functions[function].fn_id + state.predecessors[edge].function
    caller, cluster = state.functions[source], state.cluster[0]
    if caller.state != FINISHED or caller.completion_time > cluster.drawn_until:
        return caller.state != NOT_CALLED
    callee = state.functions[function].fn_id
    return calls(cluster.seed, caller.wf_id, caller.fn_id, callee, state.probability[edge])


@compiled_apart
def is_called(state: State, function: int, source: int) -> bool:
    """Whether a function is called by a source, the fn_id of a caller; or by any, if that is NONE.

    All of them have ended.
    """
    declared = state.functions[function].declared
    begin = state.template_functions[declared].first_predecessor
    for edge in range(begin, begin + state.template_functions[declared].predecessor_count):
        asked = source == NONE or source == state.predecessors[edge].function
        if asked and is_taken(state, function, edge):
            return True
    return False
