"""Agents that place what the agent `queue` has chosen, in the layouts of the config group `agents`.

`placer` chooses among all NUMA nodes; in the hierarchy `placer` chooses a server type and the agent
of that type a node; in `server_types` every type bids and names a node. Memory is what is declared,
so there is no agent `memory` and nobody chooses any. Nodes with a warm container go first, as
everywhere under queued dispatch: where there are any, the others are masked.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from env.learn.actions import NO_PLACE, Action
from env.learn.agent import Agent, Observation
from env.learn.layouts import AgentsConfig
from env.learn.observation import TYPE_FEATURES, clip, log_of, log_seconds
from env.learn.queue_agent import (
    QUEUE_CRITIC,
    Decide,
    QueueAgent,
    QueueTurns,
    funcsched_choice,
    play_to_choice,
)
from env.learn.turns import (
    BID_TURN,
    CHOICE,
    NODE_TURN,
    PLACE_TURN,
    QUEUE_TURN,
    TYPE_TURN,
    allow_bids,
    decide,
    new_sight,
    see_nodes,
    see_nodes_of_type,
    see_types,
)
from env.sim.block import State
from env.sim.central_queue import choose
from env.sim.hardware import ClusterConfig
from env.sim.jit import compiled, places
from env.sim.placing import transfer
from env.sim.records import INF, NONE
from env.sim.room import available_memory, free_memory, short_of
from env.sim.warm import newest_idle

PLACE_CONTEXT: Final = (
    "execution",  # E of the function, seconds
    "cold_start",  # D, seconds
    "memory",  # R, share of the largest node
    "parallelism",  # share of the cores of the largest node
    "wait",  # of the request, seconds
    "requests",  # of the function that wait
    "requests_waiting",  # of all functions
    "running",  # functions of its image
    "available_memory",  # of all nodes, free or reclaimable, share
    "load",  # threads of all containers over all cores
)
CONTEXT: Final = places(PLACE_CONTEXT)
PLACE_ITEM: Final = (
    "cores",  # share of those of the largest node
    "memory",  # share of that of the largest node
    "load",  # threads of its containers over its cores
    "load_after",  # the same with the function
    "available",  # memory that is free or reclaimable, share of the node's
    "free",  # share
    "left",  # available behind it, share of the largest node
    "warm",  # whether it has a warm container of it
    "evicts",  # whether others have to be removed for it
    "transfer",  # of its input, seconds
    "seconds",  # to its end at the load after it: cold start, transfer and execution
    "seconds_over_best",  # logarithm of that over the least
    "allowed",  # whether it has room, and is not passed over for a warm one
    "by_rule",  # whether it is what `worst_fit` gives
)
ITEM: Final = places(PLACE_ITEM)
PLACE_TURNS: Final = {
    "placer": (PLACE_TURN,),
    "hierarchical": (TYPE_TURN, NODE_TURN),
    "server_types": (BID_TURN,),
}
"""The turns of a placement, by layout."""

LAST: Final = 1e15
"""MB that no node has: where others have to be removed comes behind all that has free memory."""
NO_WEIGHTS: Final = np.zeros(0)
"""Of the greedy score, which needs a lease."""


@compiled
def observe_places(state, declared, sight):
    """Looks at all NUMA nodes for the first waiting request of a declared function.

    Args:
        sight: out, its `candidates`, `scores` (those of `worst_fit`, the least is what it gives),
            `nodes`, `able` and, at the beginning of `context`, PLACE_CONTEXT.
    """
    context = sight.context
    time, nodes, images = state.cluster[0].time, state.nodes, state.images
    candidates, scores = sight.candidates[0], sight.scores[0]
    waiting = state.waiting[declared]
    index, image = waiting.first, waiting.image
    need, threads = images[image].memory, state.functions[index].parallelism
    largest, most_cores = state.cluster[0].largest_node_memory, state.cluster[0].largest_node_cpu
    memory = available = 0.0
    cores = load = 0
    any_warm = False
    for node in range(len(nodes)):
        own = available_memory(state, node)
        memory += nodes[node].memory
        available += own
        cores += nodes[node].cpu
        load += nodes[node].parallelism
        fits = short_of(state, node, index, need, False) == NONE
        if fits and newest_idle(state, node, image) != NONE:
            any_warm = True
    best = NONE
    least = INF
    for node in range(len(nodes)):
        own, free = available_memory(state, node), free_memory(state, node)
        warm = newest_idle(state, node, image) != NONE
        fits = short_of(state, node, index, need, False) == NONE
        allowed = fits and (warm or not any_warm)
        after = (nodes[node].parallelism + threads) / nodes[node].cpu
        moving, _ = transfer(state, index, node)
        cold = 0.0 if warm else images[image].cold_start
        seconds = cold + moving + waiting.execution * max(1.0, after)
        candidates[node].feasible = 1 if allowed else 0
        candidates[node].lease_left = INF
        candidates[node].parallelism = nodes[node].parallelism
        scores[node] = INF
        if allowed:
            scores[node] = (0.0 if warm or free >= need else LAST) - own
            least = min(least, seconds)
            if best == NONE or scores[node] < scores[best]:
                best = node
        row = sight.nodes[0, node]
        row[ITEM.cores] = nodes[node].cpu / most_cores
        row[ITEM.memory] = nodes[node].memory / largest
        row[ITEM.load] = clip(nodes[node].parallelism / nodes[node].cpu)
        row[ITEM.load_after] = clip(after)
        row[ITEM.available] = own / nodes[node].memory
        row[ITEM.free] = free / nodes[node].memory
        row[ITEM.left] = clip((own - need) / largest)
        row[ITEM.warm] = 1.0 if warm else 0.0
        row[ITEM.evicts] = 1.0 if not warm and free < need else 0.0
        row[ITEM.transfer] = clip(log_seconds(moving))
        row[ITEM.seconds] = clip(log_seconds(seconds))
        row[ITEM.seconds_over_best] = seconds
        row[ITEM.allowed] = candidates[node].feasible
        row[ITEM.by_rule] = 0.0
    sight.nodes[0, best, ITEM.by_rule] = 1.0
    for node in range(len(nodes)):
        row = sight.nodes[0, node]
        over = np.log((1.0 + row[ITEM.seconds_over_best]) / (1.0 + least))
        row[ITEM.seconds_over_best] = clip(over) if candidates[node].feasible == 1 else 0.0
    for kind in range(len(sight.able)):
        sight.able[kind] = 0
        for node in range(sight.first_node[kind], sight.first_node[kind + 1]):
            sight.able[kind] |= candidates[node].feasible
    context[CONTEXT.execution] = clip(log_seconds(waiting.execution))
    context[CONTEXT.cold_start] = clip(log_seconds(images[image].cold_start))
    context[CONTEXT.memory] = need / largest
    context[CONTEXT.parallelism] = clip(threads / most_cores)
    context[CONTEXT.wait] = clip(log_seconds(time - state.functions[index].submission_time))
    context[CONTEXT.requests] = log_of(waiting.count) / 3.0
    context[CONTEXT.requests_waiting] = log_of(state.queue[0].waiting) / 5.0
    context[CONTEXT.running] = log_of(images[image].running) / 3.0
    context[CONTEXT.available_memory] = available / memory
    context[CONTEXT.load] = clip(load / cores)


@compiled
def see_place(turn, agent, sight, choice, items, mask):
    """Writes `items` and `mask` of an agent at its turn; arguments as for `env.learn.turns.see`."""
    mask[:] = 0.0
    if turn == TYPE_TURN:
        see_types(sight, 0, items, mask)
    elif turn == NODE_TURN:
        see_nodes_of_type(sight, 0, choice[0].type, items, mask)
    elif turn == PLACE_TURN:
        see_nodes(sight, 0, 0, sight.first_node[-1], items, mask)
    else:
        bids = len(mask) - len(items)
        begin, end = sight.first_node[agent], sight.first_node[agent + 1]
        see_nodes(sight, 0, begin, end, items, mask[bids:])
        allow_bids(mask, bids, sight.able[agent])


def place_agents(config: AgentsConfig, cluster: ClusterConfig) -> dict[str, Agent]:
    """The agents of a layout by name, as they are under queued dispatch."""
    counts = {kind.name: kind.count * kind.numa_nodes for kind in cluster.server_types}
    most, bids = max(counts.values()), config.bid_levels or 0
    servers = [Agent(f"server_{name}", "server", PLACE_ITEM, most, 1, bids) for name in counts]
    agents = {
        "placer": [Agent("placer", "placer", PLACE_ITEM, sum(counts.values()))],
        "hierarchical": [
            Agent("placer", "placer", TYPE_FEATURES + PLACE_ITEM, len(counts)),
            *servers,
        ],
        "server_types": servers,
    }[config.layout]
    return {
        agent.name: agent._replace(context_features=PLACE_CONTEXT, critic_features=QUEUE_CRITIC)
        for agent in agents
    }


class PlacingTurns(QueueTurns):
    """The agent `queue`, then the agents of a layout, who place what it has chosen.

    It is asked wherever a function can start, even if one waits alone: that one is placed too.

    Args:
        settings: of the agent `queue`.
        layout: its memory tiers, score and window are not looked at.
        cluster: the hardware.
        decide: as for `QueueTurns`.
    """

    def __init__(
        self,
        settings: QueueAgent,
        layout: AgentsConfig,
        cluster: ClusterConfig,
        decide: Decide | None = None,
    ) -> None:
        super().__init__(settings, decide)
        self.agents |= place_agents(layout, cluster)
        self.turns += PLACE_TURNS[layout.layout]
        counts = [kind.count * kind.numa_nodes for kind in cluster.server_types]
        self._sight = new_sight((1.0,), NO_WEIGHTS, len(counts), sum(counts), 0, 0, len(PLACE_ITEM))
        self._sight.first_node[1:] = np.cumsum(counts)
        self._choice = np.zeros(1, CHOICE)

    def play(self, state: State) -> int:
        """As `QueueTurns.play`, and up to where one function alone could start."""
        return int(play_to_choice(state, self._first, self._keys, True))

    def acting(self, turn: int) -> list[int]:
        """As `QueueTurns.acting`; nobody places where `queue` holds back."""
        if turn == QUEUE_TURN:
            return [0]
        if self._chosen == NONE:
            return []
        if turn == BID_TURN:
            return list(range(len(self._sight.able)))
        return [int(self._choice[0]["type"])] if turn == NODE_TURN else [0]

    def see(self, turn: int, agent: int, state: State, out: Observation) -> None:
        """As `QueueTurns.see`."""
        if turn == QUEUE_TURN:
            super().see(turn, agent, state, out)
            return
        out["context"][:] = self._sight.context[: len(PLACE_CONTEXT)]
        see_place(turn, agent, self._sight, self._choice, out["items"], out["mask"])

    def act(self, turn: int, agent: int, state: State, action: Action) -> None:
        """As `QueueTurns.act`."""
        if turn == QUEUE_TURN:
            super().act(turn, agent, state, action)
            if self._chosen != NONE:
                observe_places(state, self._chosen, self._sight)
            return
        bid, place = action if turn == BID_TURN else (0, action)
        decide(turn, agent, self._sight, self._choice, int(place), int(bid))

    def finish(self, state: State) -> None:
        """What was chosen starts where it was placed."""
        node = NONE if self._chosen == NONE else int(self._choice[0]["node"])
        choose(state, self._chosen, node)


def new_turns(
    settings: QueueAgent,
    layout: AgentsConfig | None,
    cluster: ClusterConfig,
    decide: Decide | None = None,
) -> QueueTurns:
    """The turns of one simulator: with a layout its agents place, without one a rule does."""
    if layout is None:
        return QueueTurns(settings, decide)
    return PlacingTurns(settings, layout, cluster, decide)


def choice_by_rule(agent: Agent, seen: Observation) -> Action:
    """What `funcsched` with `worst_fit` does: `funcsched_choice`, and the node that the rule gives.

    The type of that node bids the highest, the others 0.
    """
    if agent.kind == "queue":
        return funcsched_choice(seen)
    given = seen["items"][:, agent.item_features.index("by_rule")]
    row = int(given.argmax())
    if not agent.bids:
        return row
    return np.array([agent.bids - 1, row] if given[row] > 0.0 else [0, NO_PLACE])
