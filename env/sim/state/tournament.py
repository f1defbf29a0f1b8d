"""Which NUMA node completes a container next: a tournament (winner tree) over all nodes."""

from env.base.jit import compiled
from env.sim.state.block import State
from env.sim.state.records import NONE


@compiled
def update_tree(state: State, node: int) -> None:
    """Plays the matches of a node whose next completion has changed; the winner ends at entry 1."""
    tree, nodes = state.tree, state.nodes
    match = (len(tree) // 2 + node) // 2
    while match >= 1:
        left, right = tree[2 * match], tree[2 * match + 1]
        wins = right == NONE or nodes[left].next_completion <= nodes[right].next_completion
        tree[match] = left if wins else right
        match //= 2


@compiled
def reset_tree(state: State) -> None:
    """Every node is a leaf; NONE fills up to a power of two."""
    tree = state.tree
    leaves = len(tree) // 2
    for leaf in range(leaves):
        tree[leaves + leaf] = leaf if leaf < len(state.nodes) else NONE
    for match in range(leaves - 1, 0, -1):
        tree[match] = tree[2 * match]


@compiled
def earliest_node(state: State):
    """The node with the next completion; the lowest index of equal ones."""
    return state.tree[1]
