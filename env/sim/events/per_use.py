"""Pay per use: a run pays when it ends, for itself and for its memory times seconds."""

from __future__ import annotations

from env.base.jit import compiled, compiled_apart
from env.sim.events.carbon import emit_work
from env.sim.state.block import State
from env.sim.state.queue_records import USES
from env.sim.state.records import COMPLETED, MB_PER_GB


@compiled
def beyond(used, more, free):
    """How much of `more` lies beyond what is free."""
    return max(0.0, used + more - free) - max(0.0, used - free)


@compiled_apart
def use_price(state: State, server: int, memory: int, seconds: float):
    """USD of a run that executes for so long with `memory` MB, if it ends next."""
    cluster, options = state.cluster[0], state.options[0]
    gb_seconds = memory / MB_PER_GB * seconds
    requests = beyond(cluster.requests, 1.0, options.free_requests)
    paid = beyond(cluster.gb_seconds, gb_seconds, options.free_gb_seconds)
    return requests * state.servers[server].request_price + (
        paid * state.servers[server].gb_second_price
    )


@compiled_apart
def meter_run(state: State, index, server: int, account: int, seconds: float, outcome: int) -> None:
    """Enters what `meters` count of a container that has left its node, and its energy.

    Args:
        state: of an episode.
        index: of the container.
        server: where it was.
        account: row of the ledger.
        seconds: core-seconds of its work.
        outcome: how it has ended; one that is killed before it starts does not pay.
    """
    memory, started = state.containers[index].memory_alloc, state.containers[index].start_time
    emit_work(state, server, account, seconds, started)
    executed = state.cluster[0].time - started
    if state.options[0].meters & USES == 0 or not (executed > 0.0 or outcome == COMPLETED):
        return
    price = use_price(state, server, memory, executed)
    state.cluster[0].requests += 1
    state.cluster[0].gb_seconds += memory / MB_PER_GB * executed
    state.ledger[account].rent += price
    state.cluster[0].total_rent += price
    state.log[0].rent += price
