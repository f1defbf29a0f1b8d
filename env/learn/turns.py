"""What an agent sees at its turn of a decision, and what its action decides. Compiled.

One simulator is looked at through a `Sight`; N of them have the same arrays with one more dimension
(env/learn/batch.py). T server types, K memory tiers, M rows of `items`, F functions in the window
of the workflow, Q waiting functions that `queue` chooses among, L numbers of tickets that a
workflow can get.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from env.base.jit import compiled
from env.learn.observation import (
    CONTEXT,
    CONTEXT_FEATURES,
    CRITIC_FEATURES,
    NODE_FEATURES,
    TIER,
    TIER_FEATURES,
    TYPE,
    TYPE_FEATURES,
    copy,
    log_of,
    observe_nodes,
    write_context,
    write_critic,
)
from env.learn.queue_agent import see_queue
from env.learn.tenant_agents import see_newcomer
from env.learn.workflow_window import FUNCTION_FEATURES, write_window
from env.score.reward import potential
from env.sim.events.choosing import FIRST
from env.sim.node.fit import suits
from env.sim.state.containers import memory_tier
from env.sim.state.records import CANDIDATE, NONE

# Turns.
PLACE_TURN: Final = 0  # `placer` of its layout: NUMA node and memory tier
TIER_TURN: Final = 1  # `memory`: memory tier
TYPE_TURN: Final = 2  # `placer` of the hierarchy: server type
NODE_TURN: Final = 3  # agent of the chosen server type: NUMA node
BID_TURN: Final = 4  # every server type: bid, NUMA node and memory tier
QUEUE_TURN: Final = 5  # `queue`: which of the waiting functions goes next
SHARE_TURN: Final = 6  # agent of a tenant: how many tickets its workflow that has arrived gets

OF_TIER: Final = len(TIER_FEATURES)
OF_TYPE: Final = len(TYPE_FEATURES)

# What has been decided: of a placement; which declared function goes next, NONE to hold back; which
# of the numbers of tickets a workflow gets.
CHOICE = np.dtype(
    [(name, np.int64) for name in ("tier", "type", "node", "bid", "declared", "level")]
)


class Sight(NamedTuple):
    """What a simulator is looked at with: constants of the episode and buffers of the decision."""

    first_node: np.ndarray  # int64 (T + 1,), NUMA nodes of type t are first_node[t : t + 2]
    candidates: np.ndarray  # CANDIDATE (K, nodes)
    scores: np.ndarray  # float64 (K, nodes), greedy scores
    nodes: np.ndarray  # float32 (K, nodes, I), NODE_FEATURES
    context: np.ndarray  # float32 (C,), CONTEXT_FEATURES
    critic: np.ndarray  # float32 (V,), CRITIC_FEATURES
    able: np.ndarray  # int64 (T,), 1: the server type has room for the function; BID_TURN
    trace: np.ndarray  # float64 (D, 2), time and potential of the reference
    cursor: np.ndarray  # int64 (1,), its last row that is not after the present
    window: np.ndarray  # int64 (F,), scratch of the next two
    functions: np.ndarray  # float32 (F, G), FUNCTION_FEATURES
    edges: np.ndarray  # float32 (F, F), see env/learn/workflow_window.py
    queue: np.ndarray  # FIRST (Q,), what `queue` chooses among; see env/sim/events/choosing.py
    tiers: np.ndarray  # float64 (K,), ratios of memory_req
    weights: np.ndarray  # float64 (10,), of the greedy score
    levels: np.ndarray  # float64 (L,), tickets that a workflow can get


OF_ALL: Final = 3
"""The last fields of a `Sight`, which never change: many of them share these."""


def new_sight(
    tiers: tuple[float, ...],
    weights: np.ndarray,
    types: int,
    nodes: int,
    functions: int,
    window: int,
    queue: int,
    levels: tuple[float, ...],
) -> Sight:
    """Empty buffers.

    Args:
        tiers, weights, levels: of all episodes, see `Sight`.
        types: T.
        nodes, functions: of an episode, at most.
        window: F, 0 for none.
        queue: Q, 0 where nobody chooses.
    """
    count = len(tiers)
    return Sight(
        np.zeros(types + 1, np.int64),
        np.zeros((count, nodes), CANDIDATE),
        np.zeros((count, nodes)),
        np.zeros((count, nodes, len(NODE_FEATURES)), np.float32),
        np.zeros(len(CONTEXT_FEATURES), np.float32),
        np.zeros(len(CRITIC_FEATURES), np.float32),
        np.zeros(types, np.int64),
        np.zeros((functions + 1, 2)),
        np.zeros(1, np.int64),
        np.zeros(window, np.int64),
        np.zeros((window, len(FUNCTION_FEATURES)), np.float32),
        np.zeros((window, window), np.float32),
        np.zeros(queue, FIRST),
        np.array(tiers),
        np.array(weights),
        np.array(levels),
    )


@compiled
def turn_to_episode(state, sight):
    """Reads from a new episode which NUMA nodes each server type has."""
    sight.cursor[0] = 0
    first_node = sight.first_node
    first_node[:] = 0
    for node in range(len(state.nodes)):
        first_node[state.servers[state.nodes[node].server].type + 1] += 1
    for kind in range(1, len(first_node)):
        first_node[kind] += first_node[kind - 1]


@compiled
def tier_memory(state, sight, tier):
    """MB that a memory tier gives to the current function."""
    return memory_tier(state.functions[state.cluster[0].deciding].memory_req, sight.tiers[tier])


@compiled
def observe_tier(state, sight, tier):
    """Brings candidates, scores and node features of a memory tier up to date."""
    count = len(state.nodes)
    observe_nodes(
        state,
        tier_memory(state, sight, tier),
        sight.weights,
        sight.candidates[tier][:count],
        sight.scores[tier][:count],
        sight.nodes[tier][:count],
    )


@compiled
def start_decision(turn, state, sight, weights, cheapest, see_future):
    """Looks at a simulator before the first turn; `see` shows what was found to the agents.

    All at once, while its records are in the processor's caches. Finish bounds have to be up to
    date (`update_finish_bounds`).

    Args:
        turn: the first one of the decision; at QUEUE_TURN `queue` has to be there.
        state: the simulator.
        sight: its own.
        weights: float64 (4,), those of the objective as rewards count them.
        cheapest: USD, see `cheapest_cost`.
        see_future: whether `critic` is filled; the trace of the reference has to be there.
    """
    if see_future:
        trace, cursor = sight.trace, sight.cursor
        while trace[cursor[0] + 1, 0] <= state.cluster[0].time:
            cursor[0] += 1
        reached = potential(state, weights, cheapest)
        reference = trace[len(trace) - 1, 1]
        write_critic(state, cheapest, reached, trace[cursor[0], 1], reference, sight.critic)
    if turn in (QUEUE_TURN, SHARE_TURN):
        return
    write_context(state, sight.context)
    if len(sight.window) > 0:
        write_window(state, sight.window, sight.functions, sight.edges)
    top = len(sight.tiers) - 1
    for tier in range(0 if turn == TIER_TURN else top, top + 1):
        observe_tier(state, sight, tier)


@compiled
def best_node(sight, tier, begin, end):
    """The first of the nodes with the smallest greedy score."""
    best = begin
    for node in range(begin + 1, end):
        if sight.scores[tier, node] < sight.scores[tier, best]:
            best = node
    return best


@compiled
def see(turn, agent, state, sight, choice, context, items, mask, critic):
    """Writes the observation of an agent at its turn.

    Args:
        turn: one of the turns above.
        agent: index of the server type that sees; BID_TURN alone, first type first.
        state: the simulator.
        sight: its own.
        choice: CHOICE (1,), what the turns before have decided.
        context, items, mask, critic: out, float32 (C,), (M, I), (A,), (V,).
    """
    copy(sight.critic, critic)
    mask[:] = 0.0
    if turn == QUEUE_TURN:
        see_queue(state, sight.queue, context, items, mask)
        return
    if turn == SHARE_TURN:
        see_newcomer(state, sight.levels, context, items, mask)
        return
    copy(sight.context, context)
    if turn == PLACE_TURN:
        see_places(state, sight, 0, len(state.nodes), items, mask)
    elif turn == TIER_TURN:
        see_tiers(state, sight, items, mask)
    elif turn == TYPE_TURN:
        context[CONTEXT.memory_ratio] = sight.tiers[choice[0].tier]
        see_types(sight, choice[0].tier, items, mask)
    elif turn == NODE_TURN:
        context[CONTEXT.memory_ratio] = sight.tiers[choice[0].tier]
        see_nodes(sight, choice[0].tier, choice[0].type, items, mask)
    else:
        places = len(items) * len(sight.tiers)
        bids = len(mask) - places
        begin, end = sight.first_node[agent], sight.first_node[agent + 1]
        able = see_places(state, sight, begin, end, items, mask[bids:])
        sight.able[agent] = able
        mask[:bids] = able
        mask[0] = 1.0
        if able == 0:
            mask[bids] = 1.0  # it bids 0 and is not asked for a place


@compiled
def see_places(state, sight, begin, end, items, mask):
    """NUMA nodes `begin` to `end`, and which memory tiers each has; returns 1 if any has any."""
    count = len(sight.tiers)
    able = 0
    items[:] = 0.0
    for node in range(begin, end):
        copy(sight.nodes[count - 1, node], items[node - begin])
    for tier in range(count):
        memory_alloc = tier_memory(state, sight, tier)
        for node in range(begin, end):
            if suits(state, node, memory_alloc):
                mask[(node - begin) * count + tier] = 1.0
                able = 1
    return able


@compiled
def see_tiers(state, sight, items, mask):
    """A row for each memory tier, with the best NUMA node it could have."""
    count = len(state.nodes)
    for tier in range(len(sight.tiers)):
        memory_alloc = tier_memory(state, sight, tier)
        feasible = 0
        for node in range(count):
            if suits(state, node, memory_alloc):
                feasible += 1
        items[tier, TIER.ratio] = sight.tiers[tier]
        items[tier, TIER.feasible_nodes] = feasible / count
        items[tier, OF_TIER:] = 0.0
        if feasible > 0:
            best = best_node(sight, tier, 0, count)
            copy(sight.nodes[tier, best], items[tier, OF_TIER:])
            mask[tier] = 1.0


@compiled
def see_types(sight, tier, items, mask):
    """A row for each server type, with the best NUMA node it has."""
    for kind in range(len(sight.able)):
        begin, end = sight.first_node[kind], sight.first_node[kind + 1]
        items[kind] = 0.0
        if begin == end:
            continue
        leased = idle = feasible = 0
        for node in range(begin, end):
            if sight.candidates[tier, node].lease_left > 0.0:
                leased += 1
                if sight.candidates[tier, node].parallelism == 0:
                    idle += 1
            feasible |= sight.candidates[tier, node].feasible
        items[kind, TYPE.nodes] = log_of(end - begin)
        items[kind, TYPE.leased_nodes] = leased / (end - begin)
        items[kind, TYPE.idle_nodes] = idle / (end - begin)
        best = best_node(sight, tier, begin, end)
        copy(sight.nodes[tier, best], items[kind, OF_TYPE:])
        mask[kind] = feasible


@compiled
def see_nodes(sight, tier, kind, items, mask):
    """A row for each NUMA node of a server type."""
    begin, end = sight.first_node[kind], sight.first_node[kind + 1]
    items[:] = 0.0
    for node in range(begin, end):
        copy(sight.nodes[tier, node], items[node - begin])
        mask[node - begin] = sight.candidates[tier, node].feasible


@compiled
def decide(turn, agent, sight, choice, action, bid):
    """Notes in `choice` (CHOICE (1,)) what an action decides.

    Args:
        turn, agent: as for `see`.
        action: index of the choice.
        bid: of a server type; BID_TURN alone. The first of the highest bids wins.
    """
    count = len(sight.tiers)
    if turn == QUEUE_TURN:
        held = action == len(sight.queue)
        choice[0].declared = NONE if held else sight.queue[action].declared
    elif turn == SHARE_TURN:
        choice[0].level = action
    elif turn == TIER_TURN:
        choice[0].tier = action
    elif turn == TYPE_TURN:
        choice[0].type = action
    elif turn == NODE_TURN:
        choice[0].node = sight.first_node[choice[0].type] + action
    elif turn == PLACE_TURN:
        choice[0].node = action // count
        choice[0].tier = action % count
    else:
        if agent == 0:
            choice[0].bid = -1
        if sight.able[agent] == 1 and bid > choice[0].bid:
            choice[0].bid = bid
            choice[0].type = agent
            choice[0].node = sight.first_node[agent] + action // count
            choice[0].tier = action % count
