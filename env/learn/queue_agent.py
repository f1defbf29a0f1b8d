"""The agent `queue`: what it sees of the central queue, and what it may choose.

It chooses among the first K waiting functions in the order of `funcsched`, or holds the memory back
until something changes. It is asked where one of those K fits and two or more wait.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from env.base.jit import compiled, places
from env.learn.kind import Agent, Environments, Kind, Turn
from env.learn.observation import LOG_20, LOG_150, clip, copy, log_of, log_seconds
from env.sim.declared.ordering import ByChoice
from env.sim.declared.rules import Fit
from env.sim.node.fit import available_memory, free_memory
from env.sim.node.warm import newest_idle
from env.sim.queue.central_queue import choose, starving, time_and_memory
from env.sim.state.block import State
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
LOG_MB_SECONDS: Final = 10.0  # what logarithms of priorities are divided by
SHARE_LIMIT: Final = 2.0  # above 1 a function has no place, however much more it needs


class QueueAgent(ByChoice):
    """Key `queue` of the config group `agents`; an order of the central queue."""

    # K, how many waiting functions it chooses among, the first in the order of `funcsched`;
    # requests of one function are one choice.
    functions: Annotated[int, Field(ge=1, le=1000)]
    # Seconds of waiting from which on the oldest stands first in that order.
    starve_threshold: Annotated[float, Field(ge=0, le=1e9)]
    placement: Fit | None = None  # which of equally suited nodes is taken; None: agents place

    def kind(self) -> Kind:
        """Row r is waiting function r in that order; the last one is that of holding back."""
        rows = self.functions + 1
        queue = Agent("queue", "queue", QUEUE_ITEM, rows, context_features=QUEUE_CONTEXT)
        return Kind(CHOOSE, (Turn([queue], see_queue),), apply)


@compiled
def apply(state: State, envs: Environments, env: int):
    """Chooses the next function, or holds back; returns 0."""
    first, row = envs.queue[env], envs.choices[env].row
    if row < len(first):
        choose(state, first[row].declared)
    return 0


@compiled
def see_queue(agent, state: State, envs, env, context, items, mask) -> None:
    """Writes what `queue` sees: context (C,), items (K + 1, I), mask (K + 1,)."""
    first = envs.queue[env]
    waiting, images = state.waiting, state.images
    time = state.cluster[0].time
    memory = available = idle = largest = most = 0.0
    running = functions = 0
    for node in range(len(state.nodes)):
        room = float(available_memory(state, node))
        memory += state.nodes[node].memory
        available += room
        idle += room - free_memory(state, node)
        largest = max(largest, float(state.nodes[node].memory))
        most = max(most, room)
        running += state.nodes[node].running_count + state.nodes[node].waiting_count
    oldest_wait = backlog = 0.0
    declared = state.queue[0].first_that_waits
    while declared != NONE:
        functions += 1
        further = waiting[declared].execution * images[waiting[declared].image].memory
        backlog += time_and_memory(state, declared) + (waiting[declared].count - 1) * further
        since = state.functions[waiting[declared].first].submission_time
        oldest_wait = max(oldest_wait, time - since)
        declared = waiting[declared].next_that_waits
    items[:] = 0.0
    of_first = time_and_memory(state, first[0].declared)
    for row in range(len(first)):
        declared, node = first[row].declared, first[row].node
        if declared == NONE:
            break
        image, count = waiting[declared].image, waiting[declared].count
        index, execution = waiting[declared].first, waiting[declared].execution
        warm = images[image].warm > 0
        cold = 0.0 if warm else images[image].cold_start
        need = images[image].memory
        priority = time_and_memory(state, declared)
        item = items[row]
        item[ITEM.execution] = log_seconds(execution)
        item[ITEM.cold_start] = log_seconds(images[image].cold_start)
        item[ITEM.warm] = warm
        item[ITEM.seconds] = log_seconds(execution + cold)
        item[ITEM.memory] = need / largest
        item[ITEM.priority] = log_of(priority) / LOG_MB_SECONDS
        item[ITEM.over_first] = (log_of(priority) - log_of(of_first)) / LOG_20
        item[ITEM.priority_together] = log_of((execution + cold / count) * need) / LOG_MB_SECONDS
        item[ITEM.requests] = log_of(count) / LOG_20
        item[ITEM.wait] = log_seconds(time - state.functions[index].submission_time)
        item[ITEM.starving] = starving(state, index)
        item[ITEM.position] = row / len(first)
        if node != NONE:
            mask[row] = item[ITEM.fits] = 1.0
            item[ITEM.starts_warm] = newest_idle(state, node, image) != NONE
            short = free_memory(state, node) < need
            item[ITEM.evicts] = short and item[ITEM.starts_warm] == 0.0
        item[ITEM.running] = log_of(images[image].running) / LOG_20
        item[ITEM.share_of_available] = min(SHARE_LIMIT, need / max(1.0, most))
        clip(item)
    if running > 0:
        hold = len(first)
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
