"""Whether a function fits a node, over the vector of resources (env/sim/declared/resources.py).

Cores are shared, so nobody is short of them. Memory is free, reclaimable, or will be, and a
function may be given less than it needs. Of named resources it gets all that it needs.
"""

from typing import Final

from env.base.jit import compiled, compiled_apart
from env.sim.node.server_state import is_leased, may_be_started
from env.sim.state.block import State
from env.sim.state.records import IN_SERVICE, NONE

MEMORY: Final = 1
NAMED: Final = 2
"""The first of the named resources."""


@compiled
def available_memory(state: State, node: int):
    """MB of a node that are free or reclaimable: all that admitted containers do not hold."""
    return state.nodes[node].memory - state.nodes[node].allocated_memory


@compiled
def free_memory(state: State, node: int):
    """MB of a node that no container holds, neither an admitted nor an idle one."""
    return available_memory(state, node) - state.nodes[node].idle_memory


@compiled
def named_need(state: State, function: int, named: int):
    """Units of a named resource that a function needs."""
    return state.named_needs[state.functions[function].declared * len(state.named_kept) + named]


@compiled
def named_left(state: State, node: int, named: int, empty: bool):
    """Units of a named resource that a node has; with `empty` those that are held count, too."""
    count = len(state.named_kept)
    left = state.named_capacity[state.servers[state.nodes[node].server].type * count + named]
    return left if empty else left - state.named_held[node * count + named]


@compiled
def short_of_named(state: State, node: int, function: int, empty: bool):
    """The first named resource of which a node has too little; arguments as for `short_of`."""
    for named in range(len(state.named_kept)):
        if named_need(state, function, named) > named_left(state, node, named, empty):
            return NAMED + named
    return NONE


@compiled
def short_of(state: State, node: int, function: int, memory: int, empty: bool):
    """The resource of which a node has too little for a function, NONE if it has enough of all.

    Memory comes last: who is short of it has enough of everything else.

    Args:
        memory: MB that the function is given.
        empty: whether all that the node has counts, or only what admitted containers leave.
    """
    short = short_of_named(state, node, function, empty)
    if short != NONE:
        return short
    left = state.nodes[node].memory if empty else available_memory(state, node)
    return MEMORY if memory > left else NONE


@compiled
def hold_named(state: State, node: int, function: int, sign: int) -> None:
    """A container of a function takes its named resources (`sign` 1) or gives them back (-1)."""
    if len(state.named_kept) > 0:
        add_held(state, node, function, sign)


# Apart: inlined it slows down worlds without named resources, which are most.
@compiled_apart
def add_held(state: State, node: int, function: int, sign: int) -> None:
    """As `hold_named`."""
    count = len(state.named_kept)
    for named in range(count):
        state.named_held[node * count + named] += sign * named_need(state, function, named)


@compiled
def keep_named(state: State, node: int) -> None:
    """Notes what is held of the named resources of a node."""
    count = len(state.named_kept)
    for named in range(count):
        state.named_kept[named] = state.named_held[node * count + named]


@compiled
def restore_named(state: State, node: int) -> None:
    """Brings back what `keep_named` noted."""
    count = len(state.named_kept)
    for named in range(count):
        state.named_held[node * count + named] = state.named_kept[named]


@compiled
def can_go_to(state: State, node: int, function: int, memory: int):
    """Whether a function can be placed on a node with `memory` MB.

    Where it is placed once it is ready, it waits for resources on its node; a function in the
    central queue leaves it for a node that has room now, or to start a server if it may.
    """
    server = state.nodes[node].server
    if state.options[0].queued == 0:
        fits = short_of(state, node, function, memory, True) == NONE
        return fits and state.servers[server].condition == IN_SERVICE
    if is_leased(state, server):
        return short_of(state, node, function, memory, False) == NONE
    if state.queue[0].may_start == 0 or not may_be_started(state, server):
        return False
    return short_of(state, node, function, memory, True) == NONE


@compiled
def any_holds(state: State, function: int, memory: int) -> bool:
    """Whether any server in service holds a function with `memory` MB, once it has room."""
    if state.cluster[0].out_of_service == 0:
        return True  # what fits no server is refused when the episode is built
    for node in range(len(state.nodes)):
        in_service = state.servers[state.nodes[node].server].condition == IN_SERVICE
        if in_service and short_of(state, node, function, memory, True) == NONE:
            return True
    return False


@compiled
def suits(state: State, node: int, memory: int):
    """`can_go_to` of the function in decision."""
    return can_go_to(state, node, state.cluster[0].deciding, memory)


@compiled
def need_of(state: State, index: int):
    """MB that a waiting function asks for: what its image was declared with."""
    return state.images[state.waiting[state.functions[index].declared].image].memory
