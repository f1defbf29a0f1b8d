"""How long a container stays warm where carbon counts; `EcoLife` in keep_alive_policy.py."""

from env.base.jit import compiled_apart
from env.sim.events.carbon import intensity_at
from env.sim.state.block import State


@compiled_apart
def weigh_keeping(state: State, node: int, image: int) -> None:
    """Sets until when the container is kept that has just ended on a node."""
    options, images, counts = state.options[0], state.images, state.histograms[image]
    observed, region = images[image].idle_times, state.servers[state.nodes[node].server].region
    images[image].keep_until = options.keep_seconds
    if observed < options.least_idle_times:
        return
    home, grid, time = state.regions[0], state.regions[region], state.cluster[0].time
    mean = home.pue * home.cycle / home.hours
    dirt = grid.pue * intensity_at(state, region, time) / mean if mean > 0.0 else 0.0
    cold_start = images[image].cold_start
    service = cold_start + state.waiting[images[image].first_declared].execution
    of_cold = options.time_weight + (1.0 - options.time_weight) * dirt
    of_held = (1.0 - options.time_weight) * dirt / len(counts)
    longer, held, least = observed, 0.0, 0.0
    for period in range(len(counts) + 1):
        cost = (longer * cold_start / service * of_cold + held * of_held) / observed
        if period == 0 or cost < least:
            images[image].keep_until, least = period * options.bin, cost
        if period < len(counts):
            held += longer
            longer -= counts[period]
