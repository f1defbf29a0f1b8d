"""The kind of decision `place`: which NUMA node runs the function, with how much memory. Compiled.

Row r is NUMA node r // K with memory tier r % K. Agents choose it in one of three ways: the placer
at once; tier by tier, group by group in the hierarchy; or server types by bids. M rows of `items`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from env.base.errors import InputError
from env.base.jit import compiled
from env.learn.actions import NO_PLACE
from env.learn.kind import Agent, Environments, Kind, Turn
from env.learn.observation import (
    CONTEXT,
    TIER,
    TIER_FEATURES,
    TYPE,
    TYPE_FEATURES,
    copy,
    log_of,
    observe_nodes,
    write_context,
)
from env.learn.workflow_window import write_window
from env.sim.events.placing import place
from env.sim.node.fit import suits
from env.sim.state.block import State
from env.sim.state.containers import memory_tier
from env.sim.state.records import PLACE

OF_TIER: Final = len(TIER_FEATURES)
OF_TYPE: Final = len(TYPE_FEATURES)


@compiled
def tier_memory(state: State, envs: Environments, tier: int):
    """MB that a memory tier gives to the current function."""
    return memory_tier(state.functions[state.cluster[0].deciding].memory_req, envs.tiers[tier])


@compiled
def look_at_nodes(state: State, envs: Environments, env: int) -> None:
    """Brings context, window, candidates, scores and node features up to date.

    Finish bounds have to be up to date (`update_finish_bounds`).
    """
    write_context(state, envs.context[env])
    if len(envs.window[env]) > 0:
        write_window(state, envs.window[env], envs.functions[env], envs.edges[env])
    count, seen = len(state.nodes), len(envs.candidates[env])
    for tier in range(seen):
        observe_nodes(
            state,
            tier_memory(state, envs, len(envs.tiers) - seen + tier),
            envs.weights,
            envs.candidates[env][tier][:count],
            envs.scores[env][tier][:count],
            envs.nodes[env][tier][:count],
        )


@compiled
def apply(state: State, envs: Environments, env: int):
    """Places the current function; as `place` returns."""
    row, count = envs.choices[env].row, len(envs.tiers)
    return place(state, row // count, tier_memory(state, envs, row % count))


@compiled
def best_node(scores: np.ndarray, begin: int, end: int):
    """The first of the nodes with the smallest greedy score."""
    best = begin
    for node in range(begin + 1, end):
        if scores[node] < scores[best]:
            best = node
    return best


@compiled
def see_places(agent, state: State, envs, env, context, items, mask) -> None:
    """NUMA nodes and their memory tiers: all for the placer; for a bidder its own, and its bids."""
    copy(envs.context[env], context)
    tiers = len(envs.tiers)
    bids = len(mask) - len(items) * tiers
    begin, end = 0, len(state.nodes)
    if bids > 0:
        begin, end = envs.first_node[env, agent], envs.first_node[env, agent + 1]
    items[:] = 0.0
    for node in range(begin, end):
        copy(envs.nodes[env, envs.nodes.shape[1] - 1, node], items[node - begin])
    able = 0
    for tier in range(tiers):
        memory_alloc = tier_memory(state, envs, tier)
        for node in range(begin, end):
            if suits(state, node, memory_alloc):
                mask[bids + (node - begin) * tiers + tier] = 1.0
                able = 1
    if bids > 0:
        envs.able[env, agent] = able
        mask[:bids] = able
        mask[0] = 1.0
        if able == 0:
            mask[bids] = 1.0  # it bids 0 and is not asked for a place


def highest_bid(envs: Environments, due: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """`Turn.decide` of bidders: the row of the first of the highest bids wins."""
    winners = np.where(envs.able[due] == 1, actions[:, :, 0], -1).argmax(axis=1)
    places = actions[np.arange(len(due)), winners, 1]
    return envs.first_node[due, winners] * len(envs.tiers) + places


@compiled
def see_tiers(agent, state: State, envs, env, context, items, mask) -> None:
    """`memory` of the hierarchy: a row for each tier, with the best NUMA node it could have."""
    copy(envs.context[env], context)
    count = len(state.nodes)
    for tier in range(len(envs.tiers)):
        memory_alloc, feasible = tier_memory(state, envs, tier), 0
        for node in range(count):
            feasible += suits(state, node, memory_alloc)  # candidates have left the caches
        items[tier, TIER.ratio] = envs.tiers[tier]
        items[tier, TIER.feasible_nodes] = feasible / count
        items[tier, OF_TIER:] = 0.0
        if feasible > 0:
            best = best_node(envs.scores[env, tier], 0, count)
            copy(envs.nodes[env, tier, best], items[tier, OF_TIER:])
            mask[tier] = 1.0


@compiled
def see_types(agent, state: State, envs, env, context, items, mask) -> None:
    """`placer` of the hierarchy: a row for each server type, with the best NUMA node it has."""
    tier = envs.choices[env].tier
    copy(envs.context[env], context)
    context[CONTEXT.memory_ratio] = envs.tiers[tier]
    items[:] = 0.0
    for kind in range(len(envs.able[env])):
        begin, end = envs.first_node[env, kind], envs.first_node[env, kind + 1]
        if begin == end:
            continue
        leased = idle = feasible = 0
        for node in range(begin, end):
            candidate = envs.candidates[env, tier, node]
            feasible |= candidate.feasible
            if candidate.lease_left > 0.0:
                leased += 1
                idle += candidate.parallelism == 0
        items[kind, TYPE.nodes] = log_of(end - begin)
        items[kind, TYPE.leased_nodes] = leased / (end - begin)
        items[kind, TYPE.idle_nodes] = idle / (end - begin)
        best = best_node(envs.scores[env, tier], begin, end)
        copy(envs.nodes[env, tier, best], items[kind, OF_TYPE:])
        mask[kind] = feasible


@compiled
def type_chosen(agent: int, envs: Environments, env: int):
    """The agent of the server type that `placer` has chosen acts."""
    return envs.choices[env].type


@compiled
def see_nodes(agent, state: State, envs, env, context, items, mask) -> None:
    """A server type of the hierarchy: a row for each of its NUMA nodes."""
    tier, kind = envs.choices[env].tier, envs.choices[env].type
    copy(envs.context[env], context)
    context[CONTEXT.memory_ratio] = envs.tiers[tier]
    begin, end = envs.first_node[env, kind], envs.first_node[env, kind + 1]
    items[:] = 0.0
    for node in range(begin, end):
        copy(envs.nodes[env, tier, node], items[node - begin])
        mask[node - begin] = envs.candidates[env, tier, node].feasible


def node_of_type(envs: Environments, due: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """`Turn.decide` of a server type of the hierarchy: the row of its node, with the tier."""
    choices = envs.choices[due]
    nodes = envs.first_node[due, choices["type"]] + actions
    return nodes * len(envs.tiers) + choices["tier"]


def at_once(nodes: int, tiers: int, features: tuple[str, ...], window: int) -> Kind:
    """`placer` chooses the row, one of `tiers` on each of at most `nodes` NUMA nodes."""
    placer = Agent("placer", "placer", features, nodes, tiers, window=window)
    return Kind(PLACE, (Turn([placer], see_places),), apply)


def by_groups(
    types: Sequence[str], most_nodes: int, tiers: int, features: tuple[str, ...], window: int
) -> Kind:
    """`memory` chooses the tier, `placer` the server type, then that type's agent the node.

    Nobody is asked for the tier where there is but one. Of `types`, names of server types, none has
    more than `most_nodes`.
    """
    of_tiers, of_types = TIER_FEATURES + features, TYPE_FEATURES + features
    memory = Agent("memory", "memory", of_tiers, tiers, window=window)
    placer = Agent("placer", "placer", of_types, len(types), window=window)
    server = Agent("", "server", features, most_nodes, window=window)
    turns = (
        Turn([memory], see_tiers, decides="tier"),
        Turn([placer], see_types, decides="type"),
        Turn(server.of_each(types), see_nodes, type_chosen, decide=node_of_type),
    )

    def actions(row: int, first_node: np.ndarray) -> list[np.ndarray]:
        kind, node = _place(row // tiers, first_node)
        return [np.array([action]) for action in (row % tiers, kind, node)][tiers == 1 :]

    return Kind(PLACE, turns[tiers == 1 :], apply, actions)


def by_bids(
    types: Sequence[str],
    most_nodes: int,
    tiers: int,
    features: tuple[str, ...],
    window: int,
    bids: int,
) -> Kind:
    """Every server type makes one of B bids for a row of its own; the first of the highest wins."""
    server = Agent("", "server", features, most_nodes, tiers, bids, window)

    def actions(row: int, first_node: np.ndarray) -> list[np.ndarray]:
        kind, node = _place(row // tiers, first_node)
        offers = np.tile([0, NO_PLACE], (len(types), 1))
        offers[kind] = bids - 1, node * tiers + row % tiers
        return [offers]

    return Kind(
        PLACE, (Turn(server.of_each(types), see_places, decide=highest_bid),), apply, actions
    )


def _place(node: int, first_node: np.ndarray) -> tuple[int, int]:
    """Server type of a NUMA node, and which one of the type's it is."""
    kind = int(np.searchsorted(first_node, node, side="right")) - 1
    return kind, node - int(first_node[kind])


def row_of(tiers: Sequence[float], memory_req: int, node: int, memory_alloc: int) -> int:
    """The row of a placement; of equal tiers, as small functions can have, the highest.

    Raises:
        InputError: its memory is that of no tier.
    """
    given = [int(memory_tier(memory_req, tier)) for tier in tiers]
    if memory_alloc not in given:
        raise InputError(
            f"{memory_alloc} MB is no tier of agents.memory_tiers, which are "
            f"{', '.join(map(str, given))} MB for this function"
        )
    tier = max(tier for tier, memory in enumerate(given) if memory == memory_alloc)
    return node * len(given) + tier
