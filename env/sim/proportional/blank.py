"""Records of a mechanism without any client."""

import numpy as np

from env.sim.jit import compiled, compiled_apart
from env.sim.proportional.records import CLIENT, HEAD, MECHANISMS, NEVER, NODE, PAIR, Shares
from env.sim.records import INF, NONE

BY_LEAST_KEY = tuple(MECHANISMS.index(name) for name in ("stride", "eevdf", "drf", "weighted_fair"))
"""Mechanisms whose first key wins, so that nobody's is the last."""


def new_shares(mechanism: str, clients: int, seed: np.random.SeedSequence) -> Shares:
    """Records without any client.

    Args:
        mechanism: one of MECHANISMS.
        clients: slots that are needed, at most MOST_CLIENTS.
        seed: of all draws.
    """
    slots = 1 << max(1, clients - 1).bit_length()
    head = np.zeros(1, HEAD)
    head["mechanism"] = MECHANISMS.index(mechanism)
    head["quantum"] = head["winners"] = 1
    head["seed"] = seed.generate_state(1, np.uint64)
    head["capacity"] = 1.0
    head["half_life"] = INF
    shares = Shares(
        head,
        np.zeros(slots, CLIENT),
        np.zeros(2 * slots, NODE),
        np.zeros(2 * slots if mechanism == "eevdf" else 2, NODE),
        np.zeros(slots if mechanism == "hierarchical_stride" else 1, PAIR),
    )
    reset(shares)
    return shares


@compiled_apart
def reset(shares):
    """Nobody has ever competed; the draws begin anew."""
    head, clients, pairs = shares.head, shares.clients, shares.pairs
    head[0].random = head[0].seed
    head[0].competing = head[0].tickets = head[0].weight = 0
    head[0].taken = head[0].winners
    head[0].first = head[0].step = head[0].space = head[0].space_rest = head[0].certain = 0
    head[0].last_won = NONE
    head[0].global_pass = head[0].global_rest = head[0].elapsed = 0
    head[0].held[:] = 0.0
    head[0].clock = head[0].remembered = head[0].remembered_at = 0.0
    for client in range(len(clients)):
        clients[client].tickets = clients[client].competing = clients[client].known = 0
        clients[client].pass_value = clients[client].pass_rest = clients[client].remain = 0
        clients[client].stride = clients[client].stride_rest = 0
        clients[client].quanta = clients[client].compensation = 1.0
        clients[client].weight = clients[client].place = 0
        clients[client].won = clients[client].consumed = 0.0
        clients[client].fresh = clients[client].out = 0.0
        clients[client].late = clients[client].chained = 0
        clients[client].next_won = NONE
        clients[client].demand[:] = 0.0
        clients[client].held[:] = 0.0
        clients[client].remembered = clients[client].remembered_at = 0.0
    key = NEVER if head[0].mechanism in BY_LEAST_KEY else 0
    clear_tree(shares.nodes, key)
    clear_tree(shares.waiting, key)
    for pair in range(len(pairs)):
        pairs[pair].lag = 0.0
        pairs[pair].bound = INF


@compiled
def clear_tree(tree, key):
    """Every client has the same key."""
    leaves = len(tree) // 2
    for node in range(len(tree)):
        tree[node].key = key
        tree[node].client = node - leaves if node >= leaves else 0
