"""What comes next: timers, on a heap of EVENT records, and the node that completes a container.

A timer is not taken back: what it was for carries another number by the time it fires.
"""

from env.base.jit import compiled, compiled_apart
from env.sim.state import records
from env.sim.state.block import State
from env.sim.state.records import NONE


@compiled
def up_to_date(state: State, position: int) -> bool:
    """Whether a timer still means something."""
    kind, number = state.timers[position].major, state.timers[position].minor
    index = state.timers[position].index
    if kind == records.SLICE_END:
        return state.requests[state.containers[index].function].run == number
    if kind == records.EXPIRY:
        return state.idle[index].number == number
    if kind == records.PREWARMING:
        return state.images[index].number == number
    if kind == records.LEASE_END:
        return state.servers[number].lease_number == index
    if kind == records.PATIENCE:
        return state.queue[0].patience_timer == state.timers[position].time
    if kind == records.STARVATION:
        return state.queue[0].starvation_timer == state.timers[position].time
    if kind == records.RETRY:
        return state.retried[number].backs_off == 1 and state.functions[number].attempt == index
    if kind == records.FOLLOW_UP:
        return state.servers[number].follow_up == index
    return True


@compiled_apart
def set_timer(state: State, time: float, kind: int, number: int, index: int) -> None:
    """Sets a timer; when the heap is full, those that are out of date make room.

    The heap holds twice as many as can be up to date at once.
    """
    timers, cluster = state.timers, state.cluster
    if cluster[0].timers_size == len(timers):
        kept = 0
        for position in range(len(timers)):
            if up_to_date(state, position):
                event_time, event_index = timers[position].time, timers[position].index
                major, minor = timers[position].major, timers[position].minor
                push(timers, kept, event_time, major, minor, event_index)
                kept += 1
        cluster[0].timers_size = kept
    push(timers, cluster[0].timers_size, time, kind, number, index)
    cluster[0].timers_size += 1


@compiled
def drop_timer(state: State) -> None:
    """Removes the first timer."""
    drop(state.timers, state.cluster[0].timers_size, 0)
    state.cluster[0].timers_size -= 1


# A binary heap, ordered by (time, major, minor). The caller keeps its size.


@compiled
def before(heap, a: int, b: int) -> bool:
    """Whether entry `a` comes before entry `b`."""
    if heap[a].time != heap[b].time:
        return heap[a].time < heap[b].time
    if heap[a].major != heap[b].major:
        return heap[a].major < heap[b].major
    return heap[a].minor < heap[b].minor


@compiled
def swap(heap, a: int, b: int) -> None:
    """Exchanges two entries."""
    heap[a].time, heap[b].time = heap[b].time, heap[a].time
    heap[a].major, heap[b].major = heap[b].major, heap[a].major
    heap[a].minor, heap[b].minor = heap[b].minor, heap[a].minor
    heap[a].index, heap[b].index = heap[b].index, heap[a].index


@compiled
def push(heap, size: int, time: float, major: int, minor: int, index: int) -> None:
    """Adds an entry to a heap of `size` entries."""
    heap[size].time = time
    heap[size].major = major
    heap[size].minor = minor
    heap[size].index = index
    rise(heap, size)


@compiled
def rise(heap, child: int) -> None:
    """Brings an entry before those that it comes before."""
    while child > 0:
        parent = (child - 1) // 2
        if not before(heap, child, parent):
            break
        swap(heap, child, parent)
        child = parent


@compiled
def drop(heap, size: int, position: int) -> None:
    """Removes an entry, the first at position 0, of a heap of `size` entries."""
    last = size - 1
    swap(heap, position, last)
    if position < last:
        rise(heap, position)
    parent = position
    while True:
        child = 2 * parent + 1
        if child >= last:
            break
        if child + 1 < last and before(heap, child + 1, child):
            child += 1
        if not before(heap, child, parent):
            break
        swap(heap, child, parent)
        parent = child


# Which NUMA node completes a container next: a tournament (winner tree) over all nodes.


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
