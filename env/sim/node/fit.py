"""Whether a function fits a node, over the vector of resources (env/sim/declared/resources.py).

Cores are shared, so nobody is short of them. Memory is free, reclaimable, or will be, and a
function may be given less than it needs. Of named resources it gets all that it needs.
"""

from typing import Final

from env.base.jit import compiled, compiled_apart
from env.resources.instances import acquire, holds, release
from env.sim.node.server_state import is_leased, may_be_started
from env.sim.state.block import State
from env.sim.state.records import IN_SERVICE, NONE

ELSEWHERE: Final = 0
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
    """What a function needs of a named resource, in 1/10,000."""
    count = len(state.named_first) - 1
    return state.named_needs[state.functions[function].declared * count + named]


@compiled
def short_of_named(state: State, node: int, function: int, empty: bool):
    """ELSEWHERE or the first named resource of which a node has too little; see `short_of`."""
    if len(state.named_kept) + len(state.links) == 0:
        return NONE
    return first_short(state, node, function, empty)


@compiled
def may_run_at(state: State, node: int, function: int) -> bool:
    """Whether a function may run in the region of a node, as is declared and has been chosen."""
    region = state.servers[state.nodes[node].server].region
    chosen = state.functions[function].region
    permitted = state.template_functions[state.functions[function].declared].regions
    permits = permitted == 0 or (permitted >> region) & 1 == 1
    return permits and chosen in (NONE, region)


# Apart, as the next two: inlined they slow down worlds without named resources, which are most.
@compiled_apart
def first_short(state: State, node: int, function: int, empty: bool):
    """As `short_of_named`."""
    if len(state.links) > 0 and not may_run_at(state, node, function):
        return ELSEWHERE
    places = len(state.named_kept)
    kind = state.servers[state.nodes[node].server].type
    for named in range(len(state.named_first) - 1):
        first = state.named_first[named]
        count = state.named_first[named + 1] - first
        need = named_need(state, function, named)
        if empty:
            enough = holds(state.named_capacity, kind * places + first, count, need)
        else:
            enough = holds(state.named_left, node * places + first, count, need)
        if not enough:
            return NAMED + named
    return NONE


@compiled
def short_of(state: State, node: int, function: int, memory: int, empty: bool):
    """The resource of which a node has too little for a function, NONE if it has enough of all.

    Memory comes last: who is short of it has enough of everything else. Where the function must not
    run in the region of the node it is ELSEWHERE.

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
def take_named(state: State, node: int, container: int) -> None:
    """A container takes the named resources that its function needs; the node has them."""
    if len(state.named_kept) > 0:
        acquire_named(state, node, container)


@compiled_apart
def acquire_named(state: State, node: int, container: int) -> None:
    """As `take_named`."""
    places, function = len(state.named_kept), state.containers[container].function
    for named in range(len(state.named_first) - 1):
        first = state.named_first[named]
        count = state.named_first[named + 1] - first
        need = named_need(state, function, named)
        begin, taken = node * places + first, container * places + first
        acquire(state.named_left, begin, count, need, state.named_taken, taken)


@compiled
def give_back_named(state: State, node: int, container: int) -> None:
    """A container gives its named resources back."""
    places = len(state.named_kept)
    if places > 0:
        release(state.named_left, node * places, places, state.named_taken, container * places)


@compiled
def copy_places(copy, begin: int, places, first: int, count: int) -> None:
    """Copies what is at `count` places of named resources, from `first` on, to `begin`."""
    for offset in range(count):
        copy[begin + offset] = places[first + offset]


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
    anywhere = len(state.links) == 0 or state.functions[function].region == NONE
    if state.cluster[0].out_of_service == 0 and anywhere:
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
    """MB that a function asks for: in the central queue, what its image was declared with."""
    if state.options[0].queued == 0:
        return state.functions[index].memory_req
    return state.images[state.waiting[state.functions[index].declared].image].memory
