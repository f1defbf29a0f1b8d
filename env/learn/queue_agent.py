"""The agent `queue`: what it sees of the central queue, and what it may choose.

It chooses among the first K waiting functions in the order of `funcsched`, or holds the memory back
until something changes. It is asked where one of those K fits and two or more wait.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from env.base.jit import compiled, places
from env.learn.agent import Agent
from env.learn.kind import Kind, Turn
from env.learn.observation import LOG_20, LOG_150, clip, copy, log_of, log_seconds
from env.sim.declared.ordering import ByChoice
from env.sim.declared.rules import Fit
from env.sim.node.fit import available_memory, free_memory
from env.sim.node.warm import newest_idle
from env.sim.queue.central_queue import choose, starving, time_and_memory
from env.sim.state.records import CHOOSE, NONE

QUEUE_CONTEXT: Final = (
    "available_memory",  # of all nodes, free or reclaimable, share
    "largest_available",  # of one node, share of the largest node
    "idle_memory",  # of warm containers, share of all
    "running",  # functions
    "functions_waiting",
    "requests_waiting",
    "oldest_wait",  # seconds
    "backlog",  # of all that wait, (E + D * [W = 0] once) * R over all memory, seconds
    "first_fits",  # whether the first in the order does
)
CONTEXT: Final = places(QUEUE_CONTEXT)
QUEUE_ITEM: Final = (
    "hold",  # 1: the row of holding back, otherwise as that of the first in the order
    "execution",  # E, seconds
    "cold_start",  # D, seconds
    "warm",  # whether W > 0
    "seconds",  # E + D * [W = 0]
    "memory",  # R, share of the largest node
    "priority",  # (E + D * [W = 0]) * R
    "over_first",  # logarithm of that over that of the first
    "priority_together",  # the same with the cold start shared by all that wait
    "requests",  # of the function that wait
    "wait",  # of the first of them, seconds
    "starving",  # whether that is too long
    "position",  # in the order, share of K
    "fits",  # whether a node has room now
    "starts_warm",  # whether that node has a warm container of it
    "evicts",  # whether others have to be removed for it
    "running",  # functions of its image
    "share_of_available",  # R over the most that a node has available
)
ITEM: Final = places(QUEUE_ITEM)
LOG_MB_SECONDS: Final = 10.0
"""What logarithms of priorities are divided by."""


class QueueAgent(ByChoice):
    """Key `queue` of the config group `agents`; an order of the central queue.

    Attributes:
        functions: K, how many waiting functions it chooses among, the first in the order of
            `funcsched`; requests of one function are one choice.
        starve_threshold: seconds of waiting from which on the oldest stands first in that order.
        placement: which of several equally suited nodes a function goes to; None where agents
            place.
    """

    functions: Annotated[int, Field(ge=1, le=1000)]
    starve_threshold: Annotated[float, Field(ge=0, le=1e9)]
    placement: Fit | None = None

    def kind(self) -> Kind:
        """Row r is waiting function r in that order; the last one is that of holding back."""
        rows = self.functions + 1
        queue = Agent("queue", "queue", QUEUE_ITEM, rows, context_features=QUEUE_CONTEXT)
        return Kind(CHOOSE, (Turn([queue], see_queue),), apply)


@compiled
def apply(state, sight, choice):
    """Chooses who goes next, or holds back; returns 0."""
    row = choice[0].row
    if row < len(sight.queue):
        choose(state, sight.queue[row].declared)
    return 0


@compiled
def see_queue(agent, state, sight, choice, context, items, mask):
    """Writes what `queue` sees: context (C,), items (K + 1, I), mask (K + 1,)."""
    first = sight.queue
    waiting, images = state.waiting, state.images
    time = state.cluster[0].time
    memory = available = idle = 0.0
    running = 0
    largest, most = 0.0, 0.0
    for node in range(len(state.nodes)):
        own = float(available_memory(state, node))
        memory += state.nodes[node].memory
        available += own
        idle += own - free_memory(state, node)
        largest = max(largest, float(state.nodes[node].memory))
        most = max(most, own)
        running += state.nodes[node].running_count + state.nodes[node].waiting_count
    functions = 0
    oldest_wait = backlog = 0.0
    declared = state.queue[0].first_that_waits
    while declared != NONE:
        functions += 1
        own = time_and_memory(state, declared)
        more = waiting[declared].execution * images[waiting[declared].image].memory
        backlog += own + (waiting[declared].count - 1) * more
        since = state.functions[waiting[declared].first].submission_time
        oldest_wait = max(oldest_wait, time - since)
        declared = waiting[declared].next_that_waits
    hold = len(first)
    items[:] = 0.0
    of_first = time_and_memory(state, first[0].declared)
    for row in range(len(first)):
        declared = first[row].declared
        if declared == NONE:
            break
        image = waiting[declared].image
        count = waiting[declared].count
        cold = 0.0 if images[image].warm > 0 else images[image].cold_start
        need = images[image].memory
        own = time_and_memory(state, declared)
        together = (waiting[declared].execution + cold / count) * need
        index, node = waiting[declared].first, first[row].node
        items[row, ITEM.execution] = log_seconds(waiting[declared].execution)
        items[row, ITEM.cold_start] = log_seconds(images[image].cold_start)
        items[row, ITEM.warm] = 1.0 if images[image].warm > 0 else 0.0
        items[row, ITEM.seconds] = log_seconds(waiting[declared].execution + cold)
        items[row, ITEM.memory] = need / largest
        items[row, ITEM.priority] = log_of(own) / LOG_MB_SECONDS
        items[row, ITEM.over_first] = (log_of(own) - log_of(of_first)) / LOG_20
        items[row, ITEM.priority_together] = log_of(together) / LOG_MB_SECONDS
        items[row, ITEM.requests] = log_of(count) / LOG_20
        items[row, ITEM.wait] = log_seconds(time - state.functions[index].submission_time)
        items[row, ITEM.starving] = 1.0 if starving(state, index) else 0.0
        items[row, ITEM.position] = row / len(first)
        if node != NONE:
            mask[row] = 1.0
            items[row, ITEM.fits] = 1.0
            if newest_idle(state, node, image) != NONE:
                items[row, ITEM.starts_warm] = 1.0
            elif free_memory(state, node) < need:
                items[row, ITEM.evicts] = 1.0
        items[row, ITEM.running] = log_of(images[image].running) / LOG_20
        items[row, ITEM.share_of_available] = min(2.0, need / max(1.0, most))
        clip(items[row])
    if running > 0:
        mask[hold] = 1.0
        copy(items[0], items[hold])
        items[hold, ITEM.hold] = 1.0
    context[CONTEXT.available_memory] = available / memory
    context[CONTEXT.largest_available] = most / largest
    context[CONTEXT.idle_memory] = idle / memory
    context[CONTEXT.running] = log_of(running) / LOG_20
    context[CONTEXT.functions_waiting] = log_of(functions) / LOG_20
    context[CONTEXT.requests_waiting] = log_of(state.queue[0].waiting) / LOG_150
    context[CONTEXT.oldest_wait] = log_seconds(oldest_wait)
    context[CONTEXT.backlog] = log_seconds(backlog / memory)
    context[CONTEXT.first_fits] = mask[0]
