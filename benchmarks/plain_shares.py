"""The mechanisms of proportional shares in plain Python: lists, heapq, whole quanta alone.

What `benchmarks.tickets` compares with. They go by the same rules; lotteries draw other numbers.
"""

from __future__ import annotations

import heapq
from random import Random
from typing import Protocol


class Plain(Protocol):
    """What all of them can do."""

    def join(self, client: int, tickets: int) -> None:
        """A client starts to compete."""

    def leave(self, client: int) -> None:
        """A client stops to compete."""

    def change(self, client: int, tickets: int) -> None:
        """A client gets another number of tickets."""

    def allocate(self) -> int:
        """Who goes next."""


class TreeLottery:
    """Lottery over a tree of sums, in a list."""

    def __init__(self, clients: int) -> None:
        self.leaves = 1 << max(1, clients - 1).bit_length()
        self.sums = [0] * (2 * self.leaves)
        self.random = Random(0)

    def _add(self, client: int, more: int) -> None:
        sums, node = self.sums, self.leaves + client
        while node:
            sums[node] += more
            node >>= 1

    def join(self, client: int, tickets: int) -> None:
        """Its tickets count."""
        self._add(client, tickets)

    def leave(self, client: int) -> None:
        """Its tickets count no longer."""
        self._add(client, -self.sums[self.leaves + client])

    def change(self, client: int, tickets: int) -> None:
        """Another number of tickets."""
        self._add(client, tickets - self.sums[self.leaves + client])

    def _holder(self, offset: float) -> int:
        sums, node, leaves = self.sums, 1, self.leaves
        while node < leaves:
            node += node
            if offset >= sums[node]:
                offset -= sums[node]
                node += 1
        return node - leaves

    def allocate(self) -> int:
        """Who holds the ticket that is drawn."""
        return self._holder(self.random.random() * self.sums[1])


class MultiLottery(TreeLottery):
    """Lottery of several winners, over the same tree."""

    def __init__(self, clients: int, winners: int) -> None:
        super().__init__(clients)
        bits = winners.bit_length() - 1
        self.order = [int(f"{number:0{bits}b}"[::-1], 2) for number in range(winners)]
        self.taken = winners
        self.first = 0.0

    def _add(self, client: int, more: int) -> None:
        super()._add(client, more)
        self.taken = len(self.order)

    def allocate(self) -> int:
        """The next winner of the superquantum."""
        total, winners = self.sums[1], len(self.order)
        if self.taken == winners:
            self.taken, self.first = 0, self.random.random() * total
        offset = (self.first + self.order[self.taken] * total / winners) % total
        self.taken += 1
        return self._holder(offset)


class Stride:
    """Stride with a heap; who has left or changed is skipped when its entry comes up."""

    def __init__(self, clients: int) -> None:
        self.heap: list[tuple[float, int, int]] = []
        self.version = [0] * clients
        self.tickets = [0] * clients
        self.stride = [0.0] * clients
        self.passes = [0.0] * clients
        self.remain: list[float | None] = [None] * clients
        self.total = 0
        self.global_pass = 0.0

    def join(self, client: int, tickets: int) -> None:
        """With what remained when it left."""
        remain, before = self.remain[client], self.stride[client]
        stride = self.stride[client] = 1 / tickets
        self.tickets[client] = tickets
        self.total += tickets
        self._enter(client, stride if remain is None else remain * stride / before)

    def _enter(self, client: int, remain: float) -> None:
        now = self.passes[client] = self.global_pass + remain
        heapq.heappush(self.heap, (now, client, self.version[client]))

    def leave(self, client: int) -> None:
        """Keeps what remains."""
        self.remain[client] = self.passes[client] - self.global_pass
        self.version[client] += 1
        self.total -= self.tickets[client]

    def change(self, client: int, tickets: int) -> None:
        """What remains is scaled."""
        self.leave(client)
        self.join(client, tickets)

    def allocate(self) -> int:
        """The lowest pass."""
        heap = self.heap
        while True:
            now, client, version = heap[0]
            if version == self.version[client]:
                break
            heapq.heappop(heap)
        now = self.passes[client] = now + self.stride[client]
        heapq.heapreplace(heap, (now, client, version))
        self.global_pass += 1 / self.total
        return client


class HierarchicalStride(TreeLottery):
    """Stride between the halves of a tree and within them."""

    def __init__(self, clients: int) -> None:
        super().__init__(clients)
        self.lags = [0.0] * self.leaves

    def _add(self, client: int, more: int) -> None:
        sums, lags, node = self.sums, self.lags, self.leaves + client
        sums[node] += more
        while node > 1:
            node >>= 1
            if sums[node]:
                lags[node] *= 1 + more / sums[node]
            sums[node] += more

    def allocate(self) -> int:
        """Down the tree."""
        sums, lags, node, leaves = self.sums, self.lags, 1, self.leaves
        while node < leaves:
            left, right = sums[2 * node], sums[2 * node + 1]
            if right == 0 or (left and lags[node] <= left - right):
                lags[node] += right
                node = 2 * node
            else:
                lags[node] -= left
                node = 2 * node + 1
        return node - leaves


class Drf:
    """Dominant resource fairness with a heap; every task needs a core and a MB."""

    def __init__(self, clients: int, capacity: float) -> None:
        self.heap: list[tuple[float, int, int]] = []
        self.version = [0] * clients
        self.tickets = [0] * clients
        self.held = [[0.0, 0.0] for _ in range(clients)]
        self.demand = [[1.0, 1.0] for _ in range(clients)]
        self.in_use = [0.0, 0.0]
        self.capacity = [capacity, capacity]

    def _share(self, client: int) -> float:
        shares = zip(self.held[client], self.capacity, strict=True)
        return max(held / of for held, of in shares) / self.tickets[client]

    def join(self, client: int, tickets: int) -> None:
        """With what it holds."""
        self.tickets[client] = tickets
        heapq.heappush(self.heap, (self._share(client), client, self.version[client]))

    def leave(self, client: int) -> None:
        """Holds what it has."""
        self.version[client] += 1

    def change(self, client: int, tickets: int) -> None:
        """Another number of tickets."""
        self.leave(client)
        self.join(client, tickets)

    def allocate(self) -> int:
        """The lowest dominant share."""
        heap = self.heap
        while heap[0][2] != self.version[heap[0][1]]:
            heapq.heappop(heap)
        _, client, version = heap[0]
        held = self.held[client]
        for resource, amount in enumerate(self.demand[client]):
            if self.in_use[resource] + amount > self.capacity[resource]:
                return -1
        for resource, amount in enumerate(self.demand[client]):
            held[resource] += amount
            self.in_use[resource] += amount
        heapq.heapreplace(heap, (self._share(client), client, version))
        return client
