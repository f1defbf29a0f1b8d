"""Data on their way to a function: seconds, and between regions also what is paid and emitted."""

from __future__ import annotations

from env.base.jit import compiled, compiled_apart
from env.sim.events.carbon import intensity_at
from env.sim.state.block import State
from env.sim.state.calls import is_taken
from env.sim.state.records import NONE


@compiled
def transfer_speed(state: State, source: int, target: int):
    """Bytes/s between two NUMA nodes: within one, within one server, between servers."""
    if source == target:
        return state.cluster[0].memory_bandwidth
    if state.nodes[source].server == state.nodes[target].server:
        return state.cluster[0].numa_bandwidth
    return state.cluster[0].network_bandwidth


@compiled
def transfer(state: State, function: int, node: int):
    """What it takes to move all predecessors' data to a node (rule 3), where there are no regions.

    A predecessor that was skipped, or did not call the function, left none.

    Returns:
        (seconds, added in ascending function id; bytes that come from other servers).
    """
    nodes = state.nodes
    declared = state.functions[function].declared
    first = function - state.functions[function].fn_id
    begin = state.template_functions[declared].first_predecessor
    certain = state.template_functions[declared].conditional == 0
    seconds = egress = 0.0
    for edge in range(begin, begin + state.template_functions[declared].predecessor_count):
        source = state.functions[first + state.predecessors[edge].function].node
        if source != NONE and (certain or is_taken(state, function, edge)):
            data_bytes = state.predecessors[edge].data_bytes
            seconds += data_bytes / transfer_speed(state, source, node)
            if nodes[source].server != nodes[node].server:
                egress += data_bytes
    return seconds, egress


@compiled_apart
def transfer_between_regions(state: State, function: int, node: int):
    """As `transfer`, where there are regions.

    Round trips come one after another. A function without predecessors is called from `home`.

    Returns:
        (seconds, bytes that come from other servers, USD of egress, gCO2e).
    """
    nodes, servers, regions = state.nodes, state.servers, len(state.regions)
    time = state.cluster[0].time
    declared = state.functions[function].declared
    region = servers[nodes[node].server].region
    first = function - state.functions[function].fn_id
    begin = state.template_functions[declared].first_predecessor
    count = state.template_functions[declared].predecessor_count
    seconds = egress = rent = grams = 0.0
    if count == 0:
        seconds = state.links[state.cluster[0].home * regions + region].round_trip
    certain = state.template_functions[declared].conditional == 0
    for edge in range(begin, begin + count):
        source = state.functions[first + state.predecessors[edge].function].node
        if source == NONE or not (certain or is_taken(state, function, edge)):
            continue
        data_bytes = state.predecessors[edge].data_bytes
        if nodes[source].server == nodes[node].server:
            seconds += data_bytes / transfer_speed(state, source, node)
            continue
        egress += data_bytes
        origin = servers[nodes[source].server].region
        link = state.links[origin * regions + region]
        seconds += link.round_trip
        seconds += data_bytes / link.bandwidth
        rent += data_bytes * link.egress
        if origin != region:
            both = intensity_at(state, origin, time) + intensity_at(state, region, time)
            grams += data_bytes * state.cluster[0].transfer_kwh * both / 2
    return seconds, egress, rent, grams


@compiled_apart
def pay_between_regions(state: State, account: int, function: int, node: int):
    """Enters a transfer into the ledger; returns (seconds, bytes that come from other servers)."""
    seconds, egress, rent, grams = transfer_between_regions(state, function, node)
    state.ledger[account].egress += rent
    state.ledger[account].carbon += grams
    state.cluster[0].total_rent += rent
    state.log[0].rent += rent
    return seconds, egress
