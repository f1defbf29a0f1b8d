"""Data between regions: what they wait for, pay and emit on their way to a function."""

from __future__ import annotations

from env.base.jit import compiled, compiled_apart
from env.sim.events.carbon import intensity_at
from env.sim.state.block import State
from env.sim.state.calls import is_taken
from env.sim.state.records import NONE


@compiled
def link_to(state: State, source: int, node: int):
    """Index of the link between the regions of two NUMA nodes."""
    nodes, servers = state.nodes, state.servers
    first = servers[nodes[source].server].region * len(state.regions)
    return first + servers[nodes[node].server].region


@compiled_apart
def cross(state: State, function: int, node: int):
    """What a function meets beside the bandwidth of links; there are some.

    Round trips of all that comes from other regions, one after another. A function without
    predecessors is called from `home`.

    Returns:
        (seconds of round trips; USD of egress; gCO2e).
    """
    links, servers, time = state.links, state.servers, state.cluster[0].time
    declared = state.functions[function].declared
    region = servers[state.nodes[node].server].region
    first = function - state.functions[function].fn_id
    begin = state.template_functions[declared].first_predecessor
    count = state.template_functions[declared].predecessor_count
    if count == 0:
        start_hop = links[state.cluster[0].home * len(state.regions) + region].round_trip
        return start_hop, 0.0, 0.0
    certain = state.template_functions[declared].conditional == 0
    seconds = rent = grams = 0.0
    for edge in range(begin, begin + count):
        source = state.functions[first + state.predecessors[edge].function].node
        if source == NONE or not (certain or is_taken(state, function, edge)):
            continue
        link, data_bytes = link_to(state, source, node), state.predecessors[edge].data_bytes
        seconds += links[link].round_trip
        rent += data_bytes * links[link].egress
        origin = servers[state.nodes[source].server].region
        if origin != region:
            both = intensity_at(state, origin, time) + intensity_at(state, region, time)
            grams += data_bytes * state.cluster[0].transfer_kwh * both / 2
    return seconds, rent, grams


@compiled_apart
def pay_crossing(state: State, account: int, function: int, node: int) -> None:
    """Enters into the ledger what comes of `cross`."""
    _, rent, grams = cross(state, function, node)
    state.ledger[account].egress += rent
    state.ledger[account].carbon += grams
    state.cluster[0].total_rent += rent
    state.log[0].rent += rent
