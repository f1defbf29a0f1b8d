"""Numbers drawn for the engine, and by them which function calls which.

Which number it is follows from its place alone, so that it can be asked for again.
"""

import numpy as np

from env.base.jit import compiled, compiled_apart
from env.sim.state.block import State
from env.sim.state.records import FINISHED, NONE, NOT_CALLED
from env.tickets.lottery import STEP, mixed

BACK_OFF = 1 << 32
"""Of a stream of `uniform`; smaller ones are of servers, or of their groups."""
OFFSET = 1 << 33
"""Of the streams of what groups of servers draw."""
CALL = 3 << 32
"""Of the streams of what workflows draw: which of their functions call which."""
FORECAST = 4 << 32
"""Of the streams of what regions draw: the errors of forecasts of their grids."""


@compiled_apart
def uniform(seed, stream: int, number: int):
    """The number at a place of one of the streams of a seed, above 0 and below 1."""
    word = mixed(seed + STEP * np.uint64(stream + 1))
    word = mixed(word + STEP * np.uint64(number + 1))
    return (np.float64(word >> np.uint64(11)) + 0.5) * 2.0**-53


@compiled
def normal(seed, stream: int, number: int):
    """A standard normal variate from two numbers of a stream (Box and Muller, 1958)."""
    radius = np.sqrt(-2.0 * np.log(uniform(seed, stream, 2 * number)))
    return radius * np.cos(2.0 * np.pi * uniform(seed, stream, 2 * number + 1))


@compiled
def weibull(number, shape: float, scale: float):
    """A Weibull variate by inversion of a number between 0 and 1; exponential for the shape 1."""
    return scale * (-np.log(number)) ** (1.0 / shape)


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
