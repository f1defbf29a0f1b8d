"""A binary heap of EVENT records, ordered by (time, major, minor). The caller keeps the size."""

from env.base.jit import compiled


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
