"""Whether a function fits a node: memory that is free, reclaimable, or will be."""

from env.sim.jit import compiled
from env.sim.records import IN_SERVICE
from env.sim.server_state import is_leased, may_be_started


@compiled
def available_memory(state, node):
    """MB of a node that are free or reclaimable: all that admitted containers do not hold."""
    return state.nodes[node].memory - state.nodes[node].allocated_memory


@compiled
def free_memory(state, node):
    """MB of a node that no container holds, neither an admitted nor an idle one."""
    return available_memory(state, node) - state.nodes[node].idle_memory


@compiled
def suits(state, node, memory):
    """Whether the function in decision can be placed on a node with `memory` MB.

    Where it is placed once it is ready, it waits for memory on its node; a function in the central
    queue leaves it for a node that has room now, or to start a server if it may.
    """
    server = state.nodes[node].server
    if state.options[0].queued == 0:
        return memory <= state.nodes[node].memory and state.servers[server].condition == IN_SERVICE
    if is_leased(state, server):
        return memory <= available_memory(state, node)
    if state.queue[0].may_start == 0 or not may_be_started(state, server):
        return False
    return memory <= state.nodes[node].memory


@compiled
def need_of(state, index):
    """MB that a waiting function asks for: what its image was declared with."""
    return state.images[state.waiting[state.requests[index].declared].image].memory
